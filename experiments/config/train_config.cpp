#include "experiments/config/train_config.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moelab {

namespace {

Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }

// Bounds that nobody comes to; within them sums and products of two fit into 64 bits.
constexpr double kMostTokens = 1e15;
constexpr double kMostSteps = 1e9;
constexpr double kMostBatchTokens = 1e9;

}  // namespace

void OptimizerConfig::fields(FieldVisitor& v) {
  v.kind(kind, {.help = "adamw: Adam with decoupled weight decay; sgd", .choices = {"adamw", "sgd"}});
  v("lr", lr, {.help = "Peak learning rate", .min = 0, .min_exclusive = true, .required = true});
  v("weight_decay", weight_decay, {.help = "Weight decay of matrices; vectors are never decayed", .min = 0});
  if (kind == "adamw") {
    v("betas", betas, {.help = "Decay rates of the two moments", .min = 0, .max = 1, .max_exclusive = true});
    v("eps", eps, {.help = "Added to the root of the second moment", .min = 0, .min_exclusive = true});
    v.check(betas.size() == 2, "betas", fmt::format("there are two betas, not {}", betas.size()));
  } else {
    v("momentum", momentum, {.help = "Momentum", .min = 0, .max = 1, .max_exclusive = true});
  }
}

void ScheduleConfig::fields(FieldVisitor& v) {
  v.kind(kind, {.help = "cosine, linear: down to the end; constant; wsd: constant, then a linear decay",
                .choices = {"cosine", "linear", "constant", "wsd"}});
  v("warmup_tokens", warmup_tokens,
    {.help = "Linear warm-up from 0", .unit = "tokens", .min = 0, .max = kMostTokens});
  if (kind != "constant") {
    v("min_lr_ratio", min_lr_ratio, {.help = "Rate at the end, relative to the peak", .min = 0, .max = 1});
  }
  if (kind == "wsd") {
    v("decay_tokens", decay_tokens,
      {.help = "Length of the decay at the end",
       .unit = "tokens",
       .min = 1,
       .max = kMostTokens,
       .required = true});
  }
}

void CheckpointConfig::fields(FieldVisitor& v) {
  v("every_tokens", every_tokens,
    {.help = "Tokens between checkpoints",
     .unit = "tokens",
     .min = 1,
     .max = kMostTokens,
     .required = true,
     .shorthand = true});
  v("keep", keep, {.help = "How many of the newest are kept", .min = 1, .max = kMostSteps});
}

void TrainConfig::fields(FieldVisitor& v) {
  v("max_tokens", max_tokens,
    {.help = "Tokens to train on",
     .unit = "tokens",
     .min = 1,
     .max = kMostTokens,
     .when_absent = "max_steps counts"});
  v("max_steps", max_steps,
    {.help = "Optimizer steps to train for",
     .unit = "steps",
     .min = 1,
     .max = kMostSteps,
     .when_absent = "max_tokens counts"});
  v("branches", branches,
    {.help =
         "Several lengths, rising; each is a run that leaves the longest one where its decay begins (wsd)",
     .unit = "tokens",
     .min = 1,
     .max = kMostTokens,
     .when_absent = "one length"});
  v("batch_tokens", batch_tokens,
    {.help = "Tokens in one optimizer step", .unit = "tokens", .min = 1, .max = kMostBatchTokens});
  v("micro_batch_tokens", micro_batch_tokens,
    {.help = "Tokens in one forward and backward pass; gradients are accumulated",
     .unit = "tokens",
     .min = 1,
     .max = kMostBatchTokens,
     .when_absent = "batch_tokens"});
  v("precision", precision,
    {.help = "Of matrix products; weights stay float32", .choices = {"float32", "bfloat16"}});
  v("optimizer", optimizer, {.help = "Update rule", .required = true});
  v("schedule", schedule, {.help = "Learning rate over time"});
  v("grad_clip", grad_clip,
    {.help = "Largest global norm of the gradient",
     .min = 0,
     .min_exclusive = true,
     .when_absent = "gradients are not clipped"});
  v("non_finite", non_finite,
    {.help =
         "A step whose loss or gradient is not finite ends the run, or leaves the weights as they are; more "
         "than 10 such steps in a row, and weights that are not finite, always end it",
     .choices = {"stop", "skip"}});
  v("checkpoint", checkpoint,
    {.help = "When to save what a resumed run needs", .when_absent = "none are kept"});

  const int lengths = int{max_tokens.has_value()} + int{max_steps.has_value()} + int{branches.has_value()};
  v.check(lengths > 0, "", "needs `max_tokens` or `max_steps`");
  v.check(!max_tokens || !max_steps, "max_steps", "give `max_tokens` or `max_steps`, not both");
  v.check(!branches || lengths == 1, "branches",
          "branches say the lengths: leave out `max_tokens` and `max_steps`");
  v.check(!branches || schedule.kind == "wsd", "branches",
          "only a wsd schedule goes the same way to every length: schedule: {kind: wsd, decay_tokens: ...}");
  const auto steps_rise = [this] {
    if (branches->empty()) return false;
    for (std::size_t i = 1; i < branches->size(); ++i) {
      if (steps_of((*branches)[i]) <= steps_of((*branches)[i - 1])) return false;
    }
    return true;
  };
  v.check(!branches || steps_rise(), "branches",
          "branches rise, each by one step of `batch_tokens` at least");
  const Index micro = std::max<Index>(micro_batch_tokens.value_or(batch_tokens), 1);
  v.check(batch_tokens % micro == 0, "micro_batch_tokens",
          fmt::format("batch_tokens {} is not a multiple of {}", batch_tokens, micro));
  const Index total =
      (branches && !branches->empty() ? steps_of(branches->front()) : num_steps()) * batch_tokens;
  v.check(schedule.warmup_tokens < total, "schedule.warmup_tokens",
          fmt::format("the warm-up of {} tokens does not end within the {} of training",
                      schedule.warmup_tokens, total));
  v.check(schedule.kind != "wsd" || schedule.warmup_tokens + schedule.decay_tokens <= total,
          "schedule.decay_tokens",
          fmt::format("warm-up and decay take more than the {} tokens of training", total));
}

Index TrainConfig::steps_of(Index tokens) const { return ceil_div(tokens, std::max<Index>(batch_tokens, 1)); }

Index TrainConfig::num_steps() const {
  if (branches && !branches->empty()) return steps_of(branches->back());
  return max_steps.value_or(steps_of(max_tokens.value_or(0)));
}

Index TrainConfig::num_stable_steps() const {
  return std::max<Index>(0, num_steps() * batch_tokens - schedule.decay_tokens) / batch_tokens;
}

Index TrainConfig::num_micro_batches() const {
  return batch_tokens / std::max<Index>(micro_batch_tokens.value_or(batch_tokens), 1);
}

void EvalConfig::fields(FieldVisitor& v) {
  v("every_tokens", every_tokens,
    {.help = "Training tokens between evaluations",
     .unit = "tokens",
     .min = 1,
     .max = kMostTokens,
     .when_absent = "only at the end"});
  v("max_tokens", max_tokens,
    {.help = "Held-out tokens an evaluation reads",
     .unit = "tokens",
     .min = 1,
     .max = kMostTokens,
     .when_absent = "all that are held out"});
}

void LogConfig::fields(FieldVisitor& v) {
  v("every_steps", every_steps,
    {.help = "Steps between lines of the journal", .unit = "steps", .min = 1, .max = kMostSteps});
  v("routing_every_steps", routing_every_steps,
    {.help = "Steps between records of the routing", .unit = "steps", .min = 1, .max = kMostSteps});
  v("sample_tokens", sample_tokens,
    {.help = "Held-out tokens whose routing is kept token by token",
     .unit = "tokens",
     .min = 0,
     .max = kMostTokens});
}

}  // namespace moelab
