// Learning rate over training, as a function of the tokens seen.
#pragma once

#include <cstdint>

namespace moelab {

struct Schedule {
  // After a linear warm-up from 0 over `warmup_tokens`:
  //   cosine    half a cosine from 1 to min_lr_ratio at max_tokens
  //   linear    a line from 1 to min_lr_ratio at max_tokens
  //   constant  1
  //   wsd       1, and a line to min_lr_ratio over the last decay_tokens (warmup-stable-decay, Hu et al.
  //   2024)
  enum class Kind { cosine, linear, constant, wsd } kind = Kind::cosine;
  std::int64_t max_tokens = 0;  // of the whole training
  std::int64_t warmup_tokens = 0;
  double min_lr_ratio = 0;
  std::int64_t decay_tokens = 0;

  // The share of the peak rate for the step that is taken after `tokens_seen` tokens. The first step of a
  // warm-up has 0.
  double factor(std::int64_t tokens_seen) const;
};

}  // namespace moelab
