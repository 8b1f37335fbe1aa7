#include "moe/capacity.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace moelab::moe {

namespace {

__extension__ using Wide = unsigned __int128;

// factor = digits / 10^decimals, from the shortest decimal that reads back as the same double.
struct Decimal {
  std::uint64_t digits = 0;
  int decimals = 0;
};

Decimal shortest_decimal(double factor) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, factor, std::chars_format::scientific);
  require(error == std::errc{}, "[capacity] factor {} cannot be written", factor);
  Decimal decimal;
  const char* c = text;
  bool after_point = false;
  for (; *c != 'e'; ++c) {
    if (*c == '.') {
      after_point = true;
      continue;
    }
    decimal.digits = decimal.digits * 10 + static_cast<std::uint64_t>(*c - '0');
    if (after_point) ++decimal.decimals;
  }
  int exponent = 0;
  const char* first = c[1] == '+' ? c + 2 : c + 1;
  std::from_chars(first, end, exponent);
  decimal.decimals -= exponent;
  return decimal;
}

Wide power_of_ten(int exponent) {
  Wide power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

// Lets each choice in, in the order of the calls, while its expert has room.
class Seats {
 public:
  Seats(Index num_experts, Index capacity)
      : taken_(static_cast<std::size_t>(num_experts), 0), capacity_(capacity) {}
  bool take(std::int32_t expert) {
    Index& taken = taken_[static_cast<std::size_t>(expert)];
    return taken < capacity_ ? (++taken, true) : false;
  }

 private:
  std::vector<Index> taken_;
  Index capacity_;
};

// All first choices in the order of `tokens`, then all second choices, ...
std::vector<std::uint8_t> keep_by_rank(const Choices& choices, const std::vector<Index>& tokens,
                                       Seats seats) {
  std::vector<std::uint8_t> kept(choices.expert_of.size(), 0);
  bool more = true;
  for (Index rank = 0; more; ++rank) {
    more = false;
    for (const Index t : tokens) {
      const Index c = choices.offsets[static_cast<std::size_t>(t)] + rank;
      if (c >= choices.offsets[static_cast<std::size_t>(t) + 1]) continue;
      more = true;
      kept[static_cast<std::size_t>(c)] = seats.take(choices.expert_of[static_cast<std::size_t>(c)]) ? 1 : 0;
    }
  }
  return kept;
}

std::vector<std::uint8_t> keep_in_order(const Choices& choices, const std::vector<Index>& order,
                                        Seats seats) {
  std::vector<std::uint8_t> kept(choices.expert_of.size(), 0);
  for (const Index c : order) {
    kept[static_cast<std::size_t>(c)] = seats.take(choices.expert_of[static_cast<std::size_t>(c)]) ? 1 : 0;
  }
  return kept;
}

std::vector<Index> iota(Index n) {
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  return order;
}

}  // namespace

void CapacityConfig::fields(FieldVisitor& v) {
  v("factor", factor,
    {.help = "C = ceil(factor * k * N / E) rows an expert, N real tokens of the micro-batch",
     .min = 1e-6,
     .max = 1e6,
     .required = true});
  v("eval_factor", eval_factor,
    {.help = "Factor in evaluation", .min = 1e-6, .max = 1e6, .when_absent = "same as factor"});
  v("min", min, {.help = "Least C", .unit = "rows", .min = 0});
  v("drop", drop,
    {.help = "Which choices an expert keeps when it is full",
     .choices = {"position", "probability", "batch_priority", "random"}});
  v("renormalize", renormalize, {.help = "Divide the kept weights of a token by their sum"});
}

Index expert_capacity(double factor, Index top_k, Index num_tokens, Index num_experts, Index min) {
  require(factor >= 1e-6 && factor <= 1e6, "[capacity] factor {} is not between 1e-6 and 1e6", factor);
  const Decimal decimal = shortest_decimal(factor);
  Wide numerator = Wide{decimal.digits} * static_cast<Wide>(top_k) * static_cast<Wide>(num_tokens);
  auto denominator = static_cast<Wide>(num_experts);
  if (decimal.decimals < 0) {
    numerator *= power_of_ten(-decimal.decimals);
  } else {
    denominator *= power_of_ten(decimal.decimals);
  }
  const Wide rows = (numerator + denominator - 1) / denominator;
  const Index capacity = rows > static_cast<Wide>(num_tokens) ? num_tokens : static_cast<Index>(rows);
  return std::min(std::max(min, capacity), num_tokens);
}

std::vector<std::uint8_t> drop_choices(const std::string& order, const Choices& choices, In weights,
                                       const std::vector<Scalar>& priority, Index num_experts, Index capacity,
                                       const random::Stream& stream) {
  const Seats seats(num_experts, capacity);
  if (order == "position") return keep_by_rank(choices, iota(choices.num_tokens()), seats);
  if (order == "batch_priority") {
    require(static_cast<Index>(priority.size()) == choices.num_tokens(),
            "[capacity] batch_priority needs a score of each of {} tokens, got {}", choices.num_tokens(),
            priority.size());
    // Padding has no choices; its score may be NaN, which no order holds.
    std::vector<Index> tokens = iota(choices.num_tokens());
    tokens.erase(std::remove_if(tokens.begin(), tokens.end(),
                                [&](Index t) {
                                  return choices.offsets[static_cast<std::size_t>(t)] ==
                                         choices.offsets[static_cast<std::size_t>(t) + 1];
                                }),
                 tokens.end());
    std::stable_sort(tokens.begin(), tokens.end(), [&](Index a, Index b) {
      return priority[static_cast<std::size_t>(a)] > priority[static_cast<std::size_t>(b)];
    });
    return keep_by_rank(choices, tokens, seats);
  }
  if (order == "probability") {
    // Choices are stored by token, so equal weights of one expert stay in token order.
    std::vector<Index> by_weight = iota(choices.size());
    std::stable_sort(by_weight.begin(), by_weight.end(),
                     [&](Index a, Index b) { return weights(a, 0) > weights(b, 0); });
    return keep_in_order(choices, by_weight, seats);
  }
  require(order == "random", "[capacity] unknown drop order '{}'", order);
  return keep_in_order(choices, random::permutation(choices.size(), stream), seats);
}

}  // namespace moelab::moe
