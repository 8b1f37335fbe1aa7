#include "experiments/compare/condition.hpp"

#include "core/error.hpp"
#include "core/visible.hpp"
#include "experiments/compare/figures.hpp"

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
  // From the end: the label of a swept variant has relations of its own, as in "moe lr=1e-1.delta > 0".
  const std::size_t last_of_relation = text.find_last_of("<>=!");
  if (last_of_relation == std::string::npos) throw wrong("no relation");
  const std::size_t before = text.find_last_not_of("<>=!", last_of_relation);
  const std::size_t at = before == std::string::npos ? 0 : before + 1;
  const std::size_t end = last_of_relation + 1;
  Condition c;
  c.relation = text.substr(at, end - at);
  const std::vector<std::string> relations = {"<", "<=", ">", ">=", "==", "!="};
  if (std::ranges::find(relations, c.relation) == relations.end())
    throw wrong("no relation '" + c.relation + "'");
  c.figure = trimmed(text.substr(0, at));
  // Figures have no dots, variants and values may.
  const std::size_t dot = c.figure.rfind('.');
  if (dot != std::string::npos) {
    c.variant = c.figure.substr(0, dot);
    c.figure.erase(0, dot + 1);
  }
  if (std::ranges::find(figure_names(), c.figure) == figure_names().end())
    throw wrong("no figure '" + c.figure + "'");
  const std::string number = trimmed(text.substr(end));
  const auto [last, error] = std::from_chars(number.data(), number.data() + number.size(), c.value);
  if (number.empty() || error != std::errc() || last != number.data() + number.size() || std::isnan(c.value))
    throw wrong("no number '" + number + "'");
  return c;
}

std::string holds_for(const Condition& condition, const Comparison& comparison) {
  std::string held;
  bool found = false;
  for (std::size_t i = 0; i < comparison.variants.size(); ++i) {
    const VariantResult& v = comparison.variants[i];
    if (condition.variant.empty() ? baseline_of(v, comparison) == &v : v.label != condition.variant) continue;
    found = true;
    const double value = figure(v, condition.figure);
    require(!std::isnan(value), "[compare] {} of {} is not known, so '{} {} {}' cannot be decided",
            condition.figure, v.label, condition.figure, condition.relation, condition.value);
    if (compare_values(value, condition.relation, condition.value))
      held += fmt::format("{}{}.{} = {}", held.empty() ? "" : ", ", visible_line(v.label), condition.figure,
                          value);
  }
  require(found || !condition.variant.empty(),
          "[compare] there is nothing but the baseline {}, so '{} {} {}' cannot be decided",
          baseline_name(comparison), condition.figure, condition.relation, condition.value);
  std::string known;
  for (const VariantResult& v : comparison.variants) known += (known.empty() ? "" : ", ") + v.label;
  require(found, "[compare] there is no variant '{}' to hold to the condition; there are {}",
          condition.variant, known);
  return held;
}

}  // namespace moelab
