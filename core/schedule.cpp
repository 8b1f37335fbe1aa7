#include "core/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace moelab {

double Schedule::factor(std::int64_t tokens_seen) const {
  const auto seen = static_cast<double>(tokens_seen);
  if (tokens_seen < warmup_tokens) return seen / static_cast<double>(warmup_tokens);
  if (kind == Kind::constant) return 1;
  // The decay goes over the last `length` tokens: `left` is 1 at its start and 0 at its end.
  const std::int64_t length = kind == Kind::wsd ? decay_tokens : max_tokens - warmup_tokens;
  const auto remaining = static_cast<double>(max_tokens - tokens_seen);
  const double left = length > 0 ? std::clamp(remaining / static_cast<double>(length), 0.0, 1.0)
                                 : (remaining > 0 ? 1.0 : 0.0);
  const double shape = kind == Kind::cosine ? 0.5 - 0.5 * std::cos(std::numbers::pi * left) : left;
  return min_lr_ratio + (1 - min_lr_ratio) * shape;
}

}  // namespace moelab
