#include "experiments/cli/terminal.hpp"

#include "core/visible.hpp"
#include "experiments/compare/text_table.hpp"

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

}  // namespace

bool has_colour(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return isatty(fileno(stream)) != 0;
}

std::string paint_diagnostics(const std::string& text, bool colour) {
  std::string out = visible_text(text);
  if (!colour) return out;
  replace_all(out, ": error: ", ": \033[1;31merror:\033[0m ");
  replace_all(out, ": warning: ", ": \033[1;33mwarning:\033[0m ");
  replace_all(out, "      help: ", "      \033[1;36mhelp:\033[0m ");
  return out;
}

void tell(const std::string& text) {
  std::fputs(paint_diagnostics(text, has_colour(stderr)).c_str(), stderr);
}

void print(const std::string& text) { fmt::print("{}", visible_text(text)); }

std::string shell_word(const std::string& argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string word = argument;
  replace_all(word, "'", "'\\''");
  return "'" + word + "'";
}

std::string short_bytes(double bytes) { return with_si_prefix(bytes) + "B"; }

std::string short_time(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace moelab::cli
