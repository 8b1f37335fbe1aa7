// The `train:`, `eval:` and `log:` blocks of an experiment.
#pragma once

#include "core/fields.hpp"
#include "core/tensor.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moelab {

struct OptimizerConfig {
  std::string kind = "adamw";  // adamw | sgd
  double lr = 1e-3;
  double weight_decay = 0.1;
  std::vector<double> betas = {0.9, 0.95};  // adamw
  double eps = 1e-8;                        // adamw
  double momentum = 0.0;                    // sgd
  void fields(FieldVisitor& v);
};

// The learning rate as a function of the tokens seen: linear warm-up from 0, then `kind` down to
// lr * min_lr_ratio at the end of training.
struct ScheduleConfig {
  std::string kind = "cosine";  // cosine | linear | constant | wsd
  Index warmup_tokens = 0;
  double min_lr_ratio = 0.1;  // cosine, linear, wsd
  Index decay_tokens = 0;     // wsd: length of the final linear decay
  void fields(FieldVisitor& v);
};

struct CheckpointConfig {
  Index every_tokens = 0;
  Index keep = 2;
  void fields(FieldVisitor& v);
};

struct TrainConfig {
  // One of the three is given.
  std::optional<Index> max_tokens;
  std::optional<Index> max_steps;
  // Rising numbers of tokens, each a run of its own that decays from the longest one (wsd only).
  std::optional<std::vector<Index>> branches;
  Index batch_tokens = 4096;                // tokens in one optimizer step
  std::optional<Index> micro_batch_tokens;  // absent: the whole batch at once
  std::string precision = "float32";        // float32 | bfloat16 (matrix products only)
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  std::optional<double> grad_clip = 1.0;  // largest global gradient norm; absent: not clipped
  std::optional<CheckpointConfig> checkpoint;
  void fields(FieldVisitor& v);

  // Optimizer steps of a whole run, the longest of branches; max_tokens is rounded up to a whole step.
  Index num_steps() const;
  // wsd: steps before the rate falls. The state after so many is that of a longer run, too.
  Index num_stable_steps() const;
  Index num_micro_batches() const;

 private:
  Index steps_of(Index tokens) const;
};

struct EvalConfig {
  std::optional<Index> every_tokens;  // absent: only at the end
  std::optional<Index> max_tokens;    // absent: all held-out data
  void fields(FieldVisitor& v);
};

struct LogConfig {
  Index every_steps = 10;
  Index routing_every_steps = 50;
  Index sample_tokens = 64;  // tokens whose routing is kept token by token, at the end; 0: none
  void fields(FieldVisitor& v);
};

}  // namespace moelab
