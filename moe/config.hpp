// The `ffn:` block of an experiment file. Reading it through fields() checks everything that can be known
// without the model around it.
#pragma once

#include "core/fields.hpp"
#include "moe/capacity.hpp"
#include "moe/expert.hpp"
#include "moe/experts/ffn_options.hpp"
#include "moe/kinds.hpp"
#include "moe/losses.hpp"
#include "moe/router.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moelab::moe {

// `count` experts of the same kind and options, each with its own parameters.
struct ExpertGroup {
  ExpertGroup();
  Kinded<ExpertOptions> expert;
  Index count = 1;
  void fields(FieldVisitor& v);
};

// Experts that every token visits (DeepSeekMoE, Dai et al. 2024); with a sigmoid gate: Qwen1.5-MoE,
// Qwen2-MoE.
struct SharedConfig {
  Index count = 1;
  FfnExpertOptions expert;
  std::string gate = "none";  // none | sigmoid
  void fields(FieldVisitor& v);
};

struct MoeConfig {
  MoeConfig();
  std::vector<ExpertGroup> experts;  // numbered through all groups, in order
  std::optional<SharedConfig> shared;
  Kinded<RouterOptions> router;
  std::optional<CapacityConfig> capacity;
  LossesConfig losses;
  Index granularity = 1;
  void fields(FieldVisitor& v);

  // The same layer with `granularity` carried out: counts and k multiplied, d_ff divided.
  MoeConfig expanded() const;
  // E, with `granularity` carried out.
  Index num_experts() const;
  // The names of the auxiliary losses that the layer has: those with a weight, and the router's own.
  std::vector<std::string> loss_names() const;

 private:
  void check(FieldVisitor& v) const;
};

struct FfnConfig {
  std::string kind = "dense";  // dense | moe
  FfnExpertOptions dense;      // of kind dense
  MoeConfig moe;               // of kind moe
  void fields(FieldVisitor& v);
};

}  // namespace moelab::moe
