#include "experiments/report/html.hpp"

#include "experiments/plot/drawing.hpp"

namespace moelab::report {

namespace {

// Dark on white; narrow screens get one column and tables that scroll.
constexpr const char* kStyle = R"css(
  :root { color-scheme: light; }
  * { box-sizing: border-box; }
  body { margin: 0 auto; max-width: 62rem; padding: 1rem; background: #fff; color: #222; overflow-wrap: anywhere;
         font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
  h1 { font-size: 1.7rem; line-height: 1.2; margin: 1rem 0 .3rem; }
  h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid #ddd; padding-bottom: .2rem; }
  .question { color: #444; margin: 0 0 1rem; white-space: pre-line; }
  .verdict { background: #eef4fa; border-left: 4px solid #0072b2; padding: .7rem 1rem; margin: 1rem 0; }
  .scroll { overflow-x: auto; }
  table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
  th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid #e6e6e6; white-space: nowrap; }
  th:first-child, td:first-child { text-align: left; padding-left: 0; }
  th { border-bottom: 2px solid #bbb; font-weight: 600; }
  .notes { font-size: .85rem; color: #555; padding-left: 1.1rem; }
  .figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1.2rem; }
  figure { margin: 0; }
  figure svg { width: 100%; height: auto; display: block; }
  .wide { grid-column: 1 / -1; overflow-x: auto; }
  .wide svg { width: auto; }
  figcaption { font-size: .85rem; color: #555; }
  pre { background: #f6f6f6; padding: .8rem; overflow-x: auto; font-size: .8rem; line-height: 1.4; }
  details { margin: .5rem 0; }
  summary { cursor: pointer; }
  .added { color: #00602b; }
  .removed { color: #a32d00; }
)css";

}  // namespace

std::string escaped(const std::string& text) { return plot::xml_escaped(text); }

std::string table(const TextTable& cells) {
  const auto row = [](const std::vector<std::string>& texts, const char* tag) {
    std::string html = "<tr>";
    for (const std::string& t : texts) html += std::string("<") + tag + ">" + escaped(t) + "</" + tag + ">";
    return html + "</tr>\n";
  };
  std::string html =
      "<div class=\"scroll\"><table>\n<thead>" + row(cells.header, "th") + "</thead>\n<tbody>\n";
  for (const auto& r : cells.rows) html += row(r, "td");
  return html + "</tbody></table></div>\n";
}

std::string section(const std::string& id, const std::string& title, const std::string& content) {
  return "<section id=\"" + id + "\">\n<h2>" + escaped(title) + "</h2>\n" + content + "</section>\n";
}

std::string folded(const std::string& title, const std::string& content) {
  return "<details><summary>" + escaped(title) + "</summary>\n" + content + "</details>\n";
}

std::string preformatted(const std::string& text) { return "<pre>" + escaped(text) + "</pre>\n"; }

std::string page(const std::string& title, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; img-src data:\">\n"
         "<link rel=\"icon\" href=\"data:,\">\n<title>" +
         escaped(title) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n" + body +
         "</body>\n</html>\n";
}

}  // namespace moelab::report
