#include "core/yaml_scalar.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace moelab::yaml {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A decimal number taken apart: sign, digits before and after the point, exponent.
struct Decimal {
  bool negative = false;
  std::string whole;
  std::string fraction;
  bool has_point = false;
  bool has_exponent = false;
  int exponent = 0;

  std::string text() const {
    return fmt::format("{}{}.{}e{}", negative ? "-" : "", whole.empty() ? "0" : whole,
                       fraction.empty() ? "0" : fraction, exponent);
  }
};

// Reads digits, with single underscores between digits, off the front of `text`. Empty if an underscore is
// misplaced.
std::optional<std::string> take_digits(std::string_view& text) {
  std::string digits;
  bool last_is_digit = false;
  while (!text.empty() && (is_digit(text[0]) || text[0] == '_')) {
    if (text[0] == '_' && !last_is_digit) return std::nullopt;
    last_is_digit = text[0] != '_';
    if (last_is_digit) digits += text[0];
    text.remove_prefix(1);
  }
  if (!digits.empty() && !last_is_digit) return std::nullopt;
  return digits;
}

std::optional<Decimal> take_apart(std::string_view text) {
  Decimal d;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    d.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const auto whole = take_digits(text);
  if (!whole) return std::nullopt;
  d.whole = *whole;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    d.has_point = true;
    const auto fraction = take_digits(text);
    if (!fraction) return std::nullopt;
    d.fraction = *fraction;
  }
  if (d.whole.empty() && d.fraction.empty()) return std::nullopt;
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    d.has_exponent = true;
    if (text.starts_with("+-")) return std::nullopt;
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), d.exponent);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return d;
  }
  if (!text.empty()) return std::nullopt;
  return d;
}

std::string without_leading_zeros(std::string_view text) {
  std::string out;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    out = text.substr(0, 1);
    text.remove_prefix(1);
  }
  const std::size_t first = text.find_first_not_of("0_");
  if (first == std::string_view::npos) return "0";
  const bool point_follows = text[first] == '.' || text[first] == 'e' || text[first] == 'E';
  return out + (point_follows ? "0" : "") + std::string(text.substr(first));
}

// The parts of a number, or why the node is not one. `what` is "an integer" or "a number".
Parsed<Decimal> decimal_of(const Node& node, const char* what) {
  const std::string& text = node.text;
  if (!node.is_scalar()) return ScalarError{fmt::format("{} where {} belongs", describe(node), what), ""};
  if (node.quoted) {
    const bool would_do = take_apart(text).has_value();
    return ScalarError{fmt::format("the text \"{}\" where {} belongs", text, what),
                       would_do ? "leave the quotes out" : ""};
  }
  const std::string_view digits = text.starts_with('-') || text.starts_with('+')
                                      ? std::string_view(text).substr(1)
                                      : std::string_view(text);
  if (digits.starts_with("0x") || digits.starts_with("0o") || digits.starts_with("0b")) {
    return ScalarError{fmt::format("`{}` is not decimal", text), "write it in decimal"};
  }
  const std::optional<Decimal> parts = take_apart(text);
  if (!parts) return ScalarError{fmt::format("`{}` is not {}", text, what), ""};
  if (parts->whole.size() > 1 && parts->whole[0] == '0') {
    return ScalarError{fmt::format("`{}` has a leading zero, which some readers take for octal", text),
                       fmt::format("write {}", without_leading_zeros(text))};
  }
  return *parts;
}

}  // namespace

Parsed<std::int64_t> read_integer(const Node& node) {
  const Parsed<Decimal> parsed = decimal_of(node, "an integer");
  if (const auto* error = std::get_if<ScalarError>(&parsed)) return *error;
  const auto& d = std::get<Decimal>(parsed);
  // value = digits * 10^scale, exactly
  std::string digits = d.whole + d.fraction;
  const std::size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) {
    if (d.has_point && !d.has_exponent) {
      return ScalarError{fmt::format("`{}` is not an integer", node.text), "write 0"};
    }
    return std::int64_t{0};
  }
  digits.erase(0, first);
  long scale = static_cast<long>(d.exponent) - static_cast<long>(d.fraction.size());
  while (scale < 0 && digits.back() == '0') {
    digits.pop_back();
    ++scale;
  }
  if (scale < 0) return ScalarError{fmt::format("`{}` is not an integer", node.text), ""};
  const bool fits_digits = scale <= 18 && digits.size() + static_cast<std::size_t>(scale) <= 19;
  std::int64_t value = 0;
  if (fits_digits) {
    digits.append(static_cast<std::size_t>(scale), '0');
    if (d.negative) digits.insert(0, "-");
  }
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (!fits_digits || error != std::errc()) {
    return ScalarError{fmt::format("`{}` is past the largest integer, 9223372036854775807", node.text), ""};
  }
  if (d.has_point && !d.has_exponent) {
    return ScalarError{fmt::format("`{}` is not an integer", node.text), fmt::format("write {}", value)};
  }
  return value;
}

Parsed<double> read_number(const Node& node) {
  static constexpr std::string_view kNotFinite[] = {".inf", "inf", ".nan", "nan", "infinity"};
  std::string lower = node.text.starts_with('-') ? node.text.substr(1) : node.text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (node.is_scalar() &&
      std::find(std::begin(kNotFinite), std::end(kNotFinite), lower) != std::end(kNotFinite)) {
    return ScalarError{fmt::format("`{}` is not a finite number", node.text), ""};
  }
  const Parsed<Decimal> parsed = decimal_of(node, "a number");
  if (const auto* error = std::get_if<ScalarError>(&parsed)) return *error;
  const std::string text = std::get<Decimal>(parsed).text();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) {
    return ScalarError{fmt::format("`{}` is past the range of numbers", node.text), ""};
  }
  return value;
}

Parsed<bool> read_boolean(const Node& node) {
  if (node.is_scalar() && !node.quoted && node.text == "true") return true;
  if (node.is_scalar() && !node.quoted && node.text == "false") return false;
  return ScalarError{fmt::format("{} where true or false belongs", describe(node)), "write true or false"};
}

}  // namespace moelab::yaml
