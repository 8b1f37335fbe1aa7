#include "experiments/compare/condition.hpp"

#include "core/error.hpp"
#include "experiments/compare/render.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moelab {

namespace {

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

bool compare_values(double left, const std::string& relation, double right) {
  if (relation == "<") return left < right;
  if (relation == "<=") return left <= right;
  if (relation == ">") return left > right;
  if (relation == ">=") return left >= right;
  return relation == "==" ? left == right : left != right;
}

}  // namespace

Condition parse_condition(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return ConfigError(fmt::format(
        "'{}' is no condition ({}); write [VARIANT.]FIGURE < NUMBER, with <, <=, >, >=, == or !=, as "
        "in 'delta > 0'. Figures: {}",
        text, why, fmt::join(figure_names(), ", ")));
  };
  const std::size_t at = text.find_first_of("<>=!");
  if (at == std::string::npos) throw wrong("no relation");
  const std::size_t end = text.find_first_not_of("<>=!", at);
  Condition c;
  c.relation = text.substr(at, end - at);
  const std::vector<std::string> relations = {"<", "<=", ">", ">=", "==", "!="};
  if (std::ranges::find(relations, c.relation) == relations.end())
    throw wrong("no relation '" + c.relation + "'");
  c.figure = trimmed(text.substr(0, at));
  const std::size_t dot = c.figure.rfind('.');
  if (dot != std::string::npos) {
    c.variant = c.figure.substr(0, dot);
    c.figure.erase(0, dot + 1);
  }
  if (std::ranges::find(figure_names(), c.figure) == figure_names().end())
    throw wrong("no figure '" + c.figure + "'");
  const std::string number = end == std::string::npos ? std::string() : trimmed(text.substr(end));
  const auto [last, error] = std::from_chars(number.data(), number.data() + number.size(), c.value);
  if (number.empty() || error != std::errc() || last != number.data() + number.size())
    throw wrong("no number '" + number + "'");
  return c;
}

std::string holds_for(const Condition& condition, const Comparison& comparison) {
  std::string held;
  bool found = false;
  for (std::size_t i = 0; i < comparison.variants.size(); ++i) {
    const VariantResult& v = comparison.variants[i];
    if (condition.variant.empty() ? &baseline_of(v, comparison) == &v : v.label != condition.variant)
      continue;
    found = true;
    const double value = figure(v, condition.figure);
    require(!std::isnan(value), "[compare] {} of {} is not known, so '{} {} {}' cannot be decided",
            condition.figure, v.label, condition.figure, condition.relation, condition.value);
    if (compare_values(value, condition.relation, condition.value))
      held += fmt::format("{}{}.{} = {}", held.empty() ? "" : ", ", v.label, condition.figure, value);
  }
  require(found, "[compare] there is no variant '{}' to hold to the condition", condition.variant);
  return held;
}

}  // namespace moelab
