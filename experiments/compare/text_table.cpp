#include "experiments/compare/text_table.hpp"

#include "core/utf8.hpp"
#include "core/visible.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace moelab {

namespace {

// Characters on the screen.
std::size_t width(const std::string& text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, utf8::continues_character));
}

std::vector<std::size_t> column_widths(const TextTable& table) {
  std::vector<std::size_t> widths;
  for (const std::string& h : table.header) widths.push_back(width(h));
  for (const auto& row : table.rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  return widths;
}

std::string escaped(const std::string& text, std::string_view characters, std::string_view prefix) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) != std::string_view::npos) result += prefix;
    result += c;
  }
  return result;
}

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// A spreadsheet takes a cell that begins so for a formula and would carry it out.
bool is_formula(std::string_view cell) {
  return !cell.empty() && std::string_view("=+-@").find(cell[0]) != std::string_view::npos && cell != "-" &&
         !is_number(cell);
}

std::string csv_escaped(const std::string& text) {
  const std::string cell = (is_formula(text) ? "'" : "") + visible_line(text);
  return cell.find_first_of(",\"") == std::string::npos ? cell : '"' + escaped(cell, "\"", "\"") + '"';
}

// The widths of the columns are counted in what is shown.
TextTable visible(TextTable table) {
  for (std::string& cell : table.header) cell = visible_line(cell);
  for (auto& row : table.rows)
    for (std::string& cell : row) cell = visible_line(cell);
  return table;
}

}  // namespace

std::string latex_escaped(const std::string& text) {
  std::string result;
  for (const char c : visible_line(text)) {
    switch (c) {
      case '\\':
        result += "\\textbackslash{}";
        break;
      case '~':
        result += "\\textasciitilde{}";
        break;
      case '^':
        result += "\\textasciicircum{}";
        break;
      case '<':
        result += "\\textless{}";
        break;
      case '>':
        result += "\\textgreater{}";
        break;
      case '|':
        result += "\\textbar{}";
        break;
      case '%':
      case '&':
      case '#':
      case '$':
      case '_':
      case '{':
      case '}':
        result += '\\';
        result += c;
        break;
      default:
        result += c;
    }
  }
  const std::string plus_minus = "±";
  for (std::size_t at = result.find(plus_minus); at != std::string::npos; at = result.find(plus_minus, at))
    result.replace(at, plus_minus.size(), "$\\pm$");
  return result;
}

std::string markdown_escaped(const std::string& text) {
  std::string result = escaped(visible_line(text), "\\`*_<>|&~$#", "\\");
  // Brackets are a link only where what it leads to follows at once; those of intervals stay as they are.
  for (std::size_t at = 0; at + 1 < result.size(); ++at) {
    if (result[at] != ']' || std::string_view("([:").find(result[at + 1]) == std::string_view::npos) continue;
    result.insert(at, "\\");
    ++at;
  }
  return result;
}

namespace {

template <class Escape>
std::string joined(const std::vector<std::string>& cells, std::string_view separator, const Escape& escape) {
  std::string line;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (c > 0) line += separator;
    line += escape(cells[c]);
  }
  return line;
}

}  // namespace

std::string to_terminal(const TextTable& raw, std::size_t columns) {
  const TextTable table = visible(raw);
  const std::vector<std::size_t> widths = column_widths(table);
  std::string text;
  std::vector<std::size_t> part;  // columns
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string row;
    for (const std::size_t c : part) {
      const std::string padding(widths[c] - width(cells[c]), ' ');
      row += c == 0 ? cells[c] + padding : "  " + padding + cells[c];
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  };
  std::size_t next = table.num_keys;
  do {
    part.clear();
    std::size_t used = 0;
    for (std::size_t c = 0; c < table.num_keys; ++c) {
      part.push_back(c);
      used += widths[c] + 2;
    }
    for (bool first = true; next < widths.size() && (first || used + widths[next] <= columns);
         first = false) {
      used += widths[next] + 2;
      part.push_back(next++);
    }
    if (!text.empty()) text += '\n';
    line(table.header);
    for (const auto& row : table.rows) line(row);
  } while (next < widths.size());
  return text;
}

std::string to_markdown(const TextTable& table) {
  std::string text = "| " + joined(table.header, " | ", markdown_escaped) + " |\n|";
  for (std::size_t c = 0; c < table.header.size(); ++c) text += c == 0 ? " --- |" : " ---: |";
  text += '\n';
  for (const auto& row : table.rows) text += "| " + joined(row, " | ", markdown_escaped) + " |\n";
  return text;
}

std::string to_csv(const TextTable& table) {
  std::string text = joined(table.header, ",", csv_escaped) + "\n";
  for (const auto& row : table.rows) text += joined(row, ",", csv_escaped) + "\n";
  return text;
}

std::string to_latex(const TextTable& table) {
  std::string text = "\\begin{tabular}{l" + std::string(table.header.size() - 1, 'r') + "}\n\\toprule\n";
  text += joined(table.header, " & ", latex_escaped) + " \\\\\n\\midrule\n";
  for (const auto& row : table.rows) text += joined(row, " & ", latex_escaped) + " \\\\\n";
  return text + "\\bottomrule\n\\end{tabular}\n";
}

std::string with_si_prefix(double value) {
  if (std::isnan(value)) return "-";
  constexpr std::array<const char*, 7> prefixes = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t p = 0;
  // 999.95 would be written as 1000.
  while (std::abs(value) >= 999.5 && p + 1 < prefixes.size()) {
    value /= 1000;
    ++p;
  }
  if (p == 0 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  const double size = std::abs(value);
  return fmt::format("{:.{}f}{}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2, prefixes[p]);
}

std::string with_digits(double value, int digits) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, digits);
}

std::string exact(double value) { return std::isnan(value) ? std::string() : fmt::format("{}", value); }

}  // namespace moelab
