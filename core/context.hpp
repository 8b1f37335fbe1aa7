// What a forward pass needs to know besides its inputs. Passed down by const reference; nothing of it is
// global.
#pragma once

#include "core/autograd.hpp"
#include "core/gemm.hpp"
#include "core/random.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
namespace moelab {

struct ForwardContext {
  bool training = false;  // dropout, jitter, noise, training capacity
  bool record = false;    // build the tape, so that backward() can follow
  gemm::Precision precision = gemm::Precision::float32;
  std::uint64_t seed = 0;
  std::uint64_t step = 0;         // optimizer steps taken so far
  std::uint64_t micro_batch = 0;  // which micro-batch of the step
  std::uint64_t num_micro_batches = 1;

  // When set, models call it with the path and value of each sub-layer's output, in order. The trainer
  // repeats a step with it to name the first tensor that is not finite; normal steps pay nothing.
  using Observer = std::function<void(const std::string& path, const Variable& value)>;
  const Observer* observer = nullptr;
  void observe(const std::string& path, const Variable& value) const {
    if (observer) (*observer)(path, value);
  }

  // The numbers of this micro-batch for one purpose; `name` holds the module's path.
  random::Stream stream(std::string_view name) const {
    return {seed, name, step * num_micro_batches + micro_batch};
  }
};

}  // namespace moelab
