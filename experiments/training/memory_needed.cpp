#include "experiments/training/memory_needed.hpp"

#include "experiments/accounting/variants.hpp"
#include "experiments/compare/text_table.hpp"
#include "experiments/config/recorded_metrics.hpp"
#include "experiments/training/resources.hpp"

#include <algorithm>
#include <new>

#include <fmt/format.h>

namespace moelab {

double memory_needed(const RunConfig& config) { return memory_needed(config, account_run(config)); }

double memory_needed(const RunConfig& config, const Accounting& accounting) {
  const DataShape shape = planned_shape(config.data);
  const auto rows = static_cast<double>(config.train.batch_tokens / config.train.num_micro_batches());
  const auto width = static_cast<double>(24 * config.model.d_model * config.model.num_layers);
  const auto logits = static_cast<double>(2 * std::max(shape.vocab_size, shape.num_targets));
  return static_cast<double>(accounting.bytes_training_float32()) + 4 * rows * (width + logits) +
         routing_record_bytes(config);
}

std::string reason_of(const std::exception& error, const RunConfig& config) {
  if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) return error.what();
  try {
    return fmt::format(
        "not enough memory: the run needs about {}B, and of the {}B of the machine {}B are left",
        with_si_prefix(memory_needed(config)), with_si_prefix(memory_of_machine()),
        with_si_prefix(available_memory()));
  } catch (const std::exception&) {
    return "not enough memory";
  }
}

}  // namespace moelab
