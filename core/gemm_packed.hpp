// The weight of a linear map in the layout that products want. A weight is packed when a product first asks
// for it after a change, so once per optimizer step, and shared by all blocks and micro-batches.
#pragma once

#include "core/bfloat16.hpp"
#include "core/gemm.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace moelab {
class Parameter;
}

namespace moelab::gemm {

// In which product a packed weight is an operand: y = x w^T, or dx = dy w.
enum class Use { forward, backward_input };

class AlignedBuffer;
class Operand;

// One packed form, opaque outside of the backend. Movable, owns its memory.
struct PackedForm;

// A weight (out, in), or several weights of the same `in` stacked along `out` (gate and up of a gated FFN),
// so that one product computes all of them side by side. Parameter owns one of itself; a module that stacks
// weights owns its own. Parameters must outlive it and stay where they are.
//
// Any number of threads may use it at once: the first one packs, the others wait. Nobody may change the
// parameters meanwhile.
class PackedWeight {
 public:
  // Error if `parts` is empty or their `in` differ.
  explicit PackedWeight(std::vector<const Parameter*> parts);
  PackedWeight(const PackedWeight&) = delete;
  PackedWeight& operator=(const PackedWeight&) = delete;
  ~PackedWeight();

  Index out() const { return out_; }
  Index in() const { return in_; }
  // The form for one use, packed now if its parameters changed since.
  const PackedForm& form(Use use, Precision precision) const;
  const std::vector<const Parameter*>& parts() const { return parts_; }
  // All parts under one another in bfloat16, (out, in) and not packed; converted now if they changed since.
  const Bfloat16* plain_bfloat16() const;

 private:
  struct Slot {
    std::atomic<std::uint64_t> version{0};  // of the parameters when it was packed; 0: never
    std::mutex packing;
    std::unique_ptr<PackedForm> form;
  };
  std::uint64_t version() const;
  // Runs fill(form) if the slot is older than the parameters.
  const PackedForm& refresh(Slot& slot, const std::function<void(PackedForm&)>& fill) const;
  // All parts under one another, (out, in), in `buffer`.
  template <class T>
  Operand stack(AlignedBuffer& buffer) const;

  std::vector<const Parameter*> parts_;
  Index out_ = 0;
  Index in_ = 0;
  mutable std::array<Slot, 4> slots_;  // use x precision
  mutable Slot plain_bfloat16_;
};

// As the functions of core/gemm.hpp, with a packed weight.
void forward(In x, const PackedWeight& w, Out y, Precision precision, bool accumulate = false);
void backward_input(In dy, const PackedWeight& w, Out dx, Precision precision, bool accumulate = false);

}  // namespace moelab::gemm
