#include "experiments/cli/terminal.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

namespace moelab::cli {

namespace {

void replace_all(std::string& text, std::string_view what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

bool is_number(const std::string& cell) {
  return !cell.empty() &&
         (std::isdigit(static_cast<unsigned char>(cell[0])) != 0 || cell[0] == '-' || cell[0] == '+');
}

}  // namespace

bool has_colour(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return isatty(fileno(stream)) != 0;
}

std::string paint_diagnostics(const std::string& text, bool colour) {
  if (!colour) return text;
  std::string out = text;
  replace_all(out, ": error: ", ": \033[1;31merror:\033[0m ");
  replace_all(out, ": warning: ", ": \033[1;33mwarning:\033[0m ");
  replace_all(out, "      help: ", "      \033[1;36mhelp:\033[0m ");
  return out;
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      if (c == widths.size()) {
        widths.push_back(0);
        right.push_back(rows.size() > 1);
      }
      widths[c] = std::max(widths[c], rows[r][c].size());
      if (r > 0 && !rows[r][c].empty() && !is_number(rows[r][c])) right[c] = false;
    }
  }
  std::string out;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string pad(widths[c] - row[c].size(), ' ');
      if (c > 0) line += "  ";
      line += right[c] ? pad + row[c] : row[c] + pad;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string short_number(double value) {
  static constexpr std::array<const char*, 6> kUnits = {"", " k", " M", " G", " T", " P"};
  std::size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.4g}", value) : fmt::format("{:.3g}{}", value, kUnits[unit]);
}

std::string short_bytes(double bytes) {
  const std::string number = short_number(bytes);
  return number.find(' ') == std::string::npos ? number + " B" : number + "B";
}

std::string short_time(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace moelab::cli
