// The data of one run as plain values.
#pragma once

#include "core/hdf5.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace moelab {

inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

enum class RunStatus : std::uint8_t { running, done, failed, diverged, interrupted };
const std::vector<std::string>& run_status_names();
const std::string& to_string(RunStatus status);

// One row of the accounting: a module of the model.
struct AccountingRow {
  std::string module;  // path
  std::string kind;    // embedding, attention, router, experts, shared_experts, dense_ffn, norm, head
  std::int64_t params_total = 0;
  double params_active = 0;            // a token uses
  double flops_forward_per_token = 0;  // one multiply-add = 2 FLOPs, full attention square
};

struct AccountingTable {
  std::vector<AccountingRow> rows;
  std::int64_t params_total = 0;
  double params_active = 0;
  double params_active_without_input_embedding = kNotMeasured;  // leaves an untied input table out
  double params_active_without_embeddings = kNotMeasured;       // leaves every embedding and the head out
  double flops_forward_per_token = 0;                           // full attention square
  double flops_forward_per_token_causal = kNotMeasured;         // half of it
  double active_compute_ratio = 1;                              // planned, before training
  std::string conventions;                                      // how it was counted, in words
};

// A mixture layer: where it is in the model and how many experts it has.
struct MoeLayer {
  std::int64_t layer = 0;
  std::int64_t num_experts = 0;
  double top_k = kNotMeasured;
};

// What is known of a run before it starts.
struct RunInfo {
  std::string name;  // <variant>-s<seed>[-p<point>], the name of its folder
  std::string variant;
  std::uint64_t seed = 0;
  std::string sweep_point = "{}";  // JSON: dotted key -> value
  std::string config_resolved;     // YAML text
  std::string dataset;             // a word or two, for people
  std::vector<std::string> domains;
  std::vector<MoeLayer> moe_layers;
  AccountingTable accounting;
  std::vector<std::pair<std::string, std::string>> provenance;  // see experiments/results/provenance.hpp
};

struct TrainRecord {
  std::int64_t step = 0;       // optimizer steps done
  std::int64_t tokens = 0;     // training tokens seen
  double time = kNotMeasured;  // s of training since the start, evaluations left out
  double loss = kNotMeasured;  // mean task loss, nat a token
  std::vector<std::pair<std::string, double>> auxiliary_losses;  // by name, without their weights
  double lr = kNotMeasured;
  double grad_norm = kNotMeasured;  // before clipping
  double step_seconds = kNotMeasured;
  double tokens_per_second = kNotMeasured;
  double active_compute_ratio = kNotMeasured;  // measured, after drops
};

struct EvalRecord {
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  double time = kNotMeasured;
  double loss = kNotMeasured;           // nat a token
  double bits_per_byte = kNotMeasured;  // text only
  double accuracy = kNotMeasured;       // classification only
  std::vector<double> loss_by_domain;   // as many as RunInfo::domains, or empty
};

struct LayerRouting {
  std::vector<std::int32_t> expert_tokens;     // (E) chosen, before drops
  std::vector<std::int32_t> expert_dropped;    // (E) empty: none were dropped
  std::vector<float> router_probability_mean;  // (E) empty: the router has no scores
  std::vector<float> expert_bias;              // (E) empty: none
  double router_entropy = kNotMeasured;        // nat
  double load_cv = kNotMeasured;
  double max_violation = kNotMeasured;
  double dead_fraction = kNotMeasured;
  double load_entropy = kNotMeasured;  // relative to log E
  double top1_weight = kNotMeasured;
  double margin = kNotMeasured;
  double fraction_dropped = kNotMeasured;         // of assignments
  double fraction_without_expert = kNotMeasured;  // of tokens
  double active_compute_ratio = kNotMeasured;
};

// The scalars of LayerRouting, each with the name that it has in the journal and in files.
struct RoutingScalar {
  const char* name;
  const char* units;
  const char* long_name;
  double LayerRouting::*member;
};
const std::vector<RoutingScalar>& routing_scalars();

struct RoutingRecordRow {
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  std::vector<LayerRouting> layers;  // as RunInfo::moe_layers
};

// Measured on the evaluation set at the end. One entry a mixture layer, or empty where not measured.
struct EvaluationStatistics {
  std::vector<std::vector<std::int64_t>> coactivation;  // (E, E) tokens that chose both; diagonal: chose it
  std::vector<std::vector<std::int64_t>> expert_tokens_by_domain;  // (E, domains)
  std::vector<double> vocabulary_specialisation;
  std::vector<double> information_token;   // I(expert; token id), nat
  std::vector<double> information_domain;  // I(expert; domain), nat
  // Share of the final choice that was already made at an earlier step, on a fixed probe batch.
  std::vector<std::int64_t> saturation_steps;
  std::vector<std::vector<double>> saturation;  // [step][layer]
};

// The routing of a few sequences, token by token, at the end of training.
struct RoutingSamples {
  std::int64_t num_samples = 0, num_positions = 0,
               num_slots = 0;           // slots: largest number of experts of a token
  std::vector<std::int32_t> domain;     // (samples) index into RunInfo::domains, -1: none
  std::vector<std::int32_t> token_id;   // (samples, positions), -1: padding
  std::vector<std::string> token_text;  // (samples, positions), or empty
  std::vector<std::int32_t> expert_id;  // (samples, positions, layers, slots), -1: dropped or no choice
  std::vector<float> weight;            // the same shape, 0 where there is no expert
};

struct Resources {
  double wall_seconds = kNotMeasured;
  double peak_rss_bytes = kNotMeasured;  // of the process
  double train_flops = kNotMeasured;     // 3 x planned forward, of the tokens trained
};

struct RunData {
  RunInfo info;
  RunStatus status = RunStatus::running;
  std::string status_reason;
  std::vector<TrainRecord> train;
  std::vector<EvalRecord> eval;
  std::vector<RoutingRecordRow> routing;
  EvaluationStatistics statistics;
  RoutingSamples samples;
  Resources resources;
};

}  // namespace moelab
