#include "core/gemm_packed.hpp"

#include "core/error.hpp"
#include "core/gemm_kernel.hpp"
#include "core/module.hpp"

#include <algorithm>
#include <new>
#include <type_traits>

namespace moelab::gemm {

AlignedBuffer::~AlignedBuffer() { ::operator delete (data_, std::align_val_t{64}); }

void* AlignedBuffer::reserve(std::size_t bytes) {
  if (bytes > bytes_) {
    ::operator delete (data_, std::align_val_t{64});
    data_ = nullptr;
    bytes_ = 0;
    data_ = ::operator new (bytes, std::align_val_t{64});
    bytes_ = bytes;
  }
  return data_;
}

PackedWeight::PackedWeight(std::vector<const Parameter*> parts) : parts_(std::move(parts)) {
  require(!parts_.empty(), "[gemm] a packed weight without parameters");
  in_ = parts_.front()->cols();
  for (const Parameter* part : parts_) {
    require(part->cols() == in_, "[gemm] stacked weights have {} and {} inputs", in_, part->cols());
    out_ += part->rows();
  }
}

PackedWeight::~PackedWeight() = default;

// Versions only go up, so their sum changes when one of them does.
std::uint64_t PackedWeight::version() const {
  std::uint64_t sum = 0;
  for (const Parameter* part : parts_) sum += part->version();
  return sum;
}

template <class T>
Operand PackedWeight::stack(AlignedBuffer& buffer) const {
  auto* stacked = static_cast<T*>(buffer.reserve(static_cast<std::size_t>(out_ * in_) * sizeof(T)));
  T* to = stacked;
  for (const Parameter* part : parts_) {
    const Scalar* from = part->value().data();
    if constexpr (std::is_same_v<T, Bfloat16>) {
      to_bfloat16(from, to, part->size());
    } else {
      std::copy_n(from, part->size(), to);
    }
    to += part->size();
  }
  return {stacked, out_, in_, in_};
}

const PackedForm& PackedWeight::refresh(Slot& slot, const std::function<void(PackedForm&)>& fill) const {
  const std::uint64_t wanted = version();
  if (slot.version.load(std::memory_order_acquire) == wanted) return *slot.form;
  const std::lock_guard lock(slot.packing);
  if (slot.version.load(std::memory_order_relaxed) == wanted) return *slot.form;
  if (!slot.form) slot.form = std::make_unique<PackedForm>();
  fill(*slot.form);
  slot.version.store(wanted, std::memory_order_release);
  return *slot.form;
}

const PackedForm& PackedWeight::form(Use use, Precision precision) const {
  const bool is_bfloat16 = uses_bfloat16(precision);
  return refresh(slots_[(use == Use::forward ? 0U : 2U) + (is_bfloat16 ? 1U : 0U)], [&](PackedForm& form) {
    form.k = use == Use::forward ? in_ : out_;
    form.n = use == Use::forward ? out_ : in_;
    form.is_bfloat16 = is_bfloat16;
    // A single Scalar weight is packed from where it lies; else the parts are stacked, and converted, in
    // memory that the thread keeps.
    thread_local AlignedBuffer buffer;
    Operand weight(parts_.front()->value());
    if (is_bfloat16) {
      weight = stack<Bfloat16>(buffer);
    } else if (parts_.size() > 1) {
      weight = stack<Scalar>(buffer);
    }
    kernel::pack(use == Use::forward ? weight.transposed() : weight, form);
  });
}

const Bfloat16* PackedWeight::plain_bfloat16() const {
  const PackedForm& form = refresh(plain_bfloat16_, [&](PackedForm& made) { stack<Bfloat16>(made.data); });
  return static_cast<const Bfloat16*>(form.data.data());
}

}  // namespace moelab::gemm
