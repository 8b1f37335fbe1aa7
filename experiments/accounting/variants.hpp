// Accounting of the variants of an experiment: what each costs, twins of equal cost, and whether compared
// variants are comparable.
#pragma once

#include "experiments/accounting/accounting.hpp"
#include "experiments/accounting/report.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/models/make_model.hpp"

#include <functional>
#include <string>
#include <vector>

namespace moelab {

// What a model must know of its data, without opening them.
DataShape planned_shape(const DataConfig& config);

// Counts the model of a run at the `seq_len` of its data, or at another context.
Accounting account_run(const RunConfig& config);
Accounting account_run(const RunConfig& config, Index context);

// Every variant at every sweep point, once (seeds change no count).
std::vector<CountedModel> count_variants(const Experiment& experiment, std::optional<Index> context = {});

// The width in [1, ...) whose figure is nearest to the target; the lower of two that are equally near.
// `figure` must not fall with the width. Error where already width 1 is above the target, or where the width
// has no effect.
Index nearest_width(const std::function<std::int64_t(Index)>& figure, std::int64_t target);

// Sets the width of the dense FFN of `twin`, or of its experts if it is a mixture, so that its figure of
// `match` (active_flops | active_params | total_params) is as near to that of `target` as an integer width
// allows. Returns a sentence that says how near; nothing where it is the same. Error where there is no such
// width.
std::string solve_twin(RunConfig& twin, const RunConfig& target, const std::string& match);

// What the comparison sets a run against: the run of the baseline at the point of the same settings (see
// same_point), of the first seed. Null where there is none; a run of the baseline is its own.
const Run* baseline_run(const Experiment& experiment, const Run& run);

// A sentence for each variant whose figure of `compare.match` differs from that of its baseline by more than
// `compare.tolerance`, and one for each that has no baseline to be compared with.
std::vector<std::string> comparability_warnings(const Experiment& experiment);

}  // namespace moelab
