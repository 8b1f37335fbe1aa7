// Matrix products through oneDNN 2 or 3: programs made once per shape, operands in place, no allocation after
// the first product of a shape on a thread.
#include "core/gemm_kernel.hpp"

#ifdef MOELAB_GEMM_ONEDNN

#include "core/error.hpp"
#include "core/parallel.hpp"

#include <array>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>

namespace moelab::gemm::kernel {

namespace {

using dnnl::matmul;
using dnnl::memory;

// What a program depends on besides the values.
struct Shape {
  Index m, n, k;
  Index a_stride, b_stride, c_stride;
  bool a_is_transposed, b_is_transposed, b_is_packed, is_bfloat16, accumulate;
  bool operator==(const Shape&) const = default;
};

struct ShapeHash {
  std::size_t operator()(const Shape& s) const {
    const unsigned flags = (s.a_is_transposed ? 1U : 0U) + (s.b_is_transposed ? 2U : 0U) +
                           (s.b_is_packed ? 4U : 0U) + (s.is_bfloat16 ? 8U : 0U) + (s.accumulate ? 16U : 0U);
    std::size_t hash = flags;
    for (const Index part : {s.m, s.n, s.k, s.a_stride, s.b_stride, s.c_stride}) {
      hash = hash * 0x9e3779b97f4a7c15U + static_cast<std::size_t>(part);
    }
    return hash;
  }
};

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

memory::data_type operand_type(bool is_bfloat16) {
  return is_bfloat16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc strided(Index rows, Index cols, memory::data_type type, Index stride, bool is_transposed) {
  const memory::dims strides = is_transposed ? memory::dims{1, stride} : memory::dims{stride, 1};
  return {memory::dims{rows, cols}, type, strides};
}

memory::desc layout_of(const Operand& operand) {
  // A single row may come with any stride, but the library asks for one that covers the row.
  const Index width = operand.is_transposed() ? operand.rows() : operand.cols();
  return strided(operand.rows(), operand.cols(), operand_type(operand.is_bfloat16()),
                 std::max(operand.stride(), width), operand.is_transposed());
}

matmul::primitive_desc describe(const memory::desc& a, const memory::desc& b, const memory::desc& c,
                                bool accumulate) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), a, b, c, attributes};
#else
  return {matmul::desc(a, b, c), attributes, engine()};
#endif
}

// The layout of a packed b (k, n). It is asked for with a block of 128 rows and serves every height.
memory::desc packed_layout(Index k, Index n, bool is_bfloat16) {
  constexpr Index m = 128;
  const memory::desc b({k, n}, operand_type(is_bfloat16), memory::format_tag::any);
  return describe(strided(m, k, operand_type(is_bfloat16), k, false), b,
                  strided(m, n, memory::data_type::f32, n, false), false)
      .weights_desc();
}

// A program for one shape; may run on several threads at once.
struct Program {
  memory::desc scratchpad;
  matmul primitive;
};

std::shared_mutex programs_mutex;
std::unordered_map<Shape, std::unique_ptr<Program>, ShapeHash>& programs() {
  static std::unordered_map<Shape, std::unique_ptr<Program>, ShapeHash> made;
  return made;
}

const Program& program(const Shape& shape, const memory::desc& a, const memory::desc& b,
                       const memory::desc& c) {
  {
    const std::shared_lock lock(programs_mutex);
    const auto found = programs().find(shape);
    if (found != programs().end()) return *found->second;
  }
  try {
    const matmul::primitive_desc description = describe(a, b, c, shape.accumulate);
    auto made = std::make_unique<Program>(Program{description.scratchpad_desc(), matmul(description)});
    const std::unique_lock lock(programs_mutex);
    return *programs().try_emplace(shape, std::move(made)).first->second;
  } catch (const dnnl::error& error) {
    fail("[gemm] oneDNN cannot multiply ({}, {}) by ({}, {}){}: {}", shape.m, shape.k, shape.k, shape.n,
         shape.is_bfloat16 ? " in bfloat16" : "", error.what());
  }
}

// A program with the memory objects of one thread, whose pointers are set before each run.
struct Call {
  const Program* program;
  memory a, b, c, scratchpad;
  std::size_t scratch_bytes;
};

struct ThreadState {
  dnnl::stream stream{engine()};
  std::unordered_map<Shape, Call, ShapeHash> calls;
  AlignedBuffer scratchpad;
};

ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

Call& call_for(const Shape& shape, const memory::desc& b, const Operand& a_operand, Out c) {
  ThreadState& state = thread_state();
  const auto found = state.calls.find(shape);
  if (found != state.calls.end()) return found->second;
  // Programs are made for one thread, and products run with the policy of all threads.
  parallel::prepare_thread();
  const memory::desc a = layout_of(a_operand);
  const memory::desc c_layout =
      strided(shape.m, shape.n, memory::data_type::f32, std::max(c.outerStride(), shape.n), false);
  const Program& made = program(shape, a, b, c_layout);
  Call call{&made,
            memory(a, engine(), nullptr),
            shape.b_is_packed ? memory() : memory(b, engine(), nullptr),
            memory(c_layout, engine(), nullptr),
            memory(made.scratchpad, engine(), nullptr),
            made.scratchpad.get_size()};
  return state.calls.emplace(shape, std::move(call)).first->second;
}

void run(Call& call, const void* a, const memory& b, Out c) {
  ThreadState& state = thread_state();
  call.a.set_data_handle(const_cast<void*>(a));
  call.c.set_data_handle(c.data());
  if (call.scratch_bytes > 0) call.scratchpad.set_data_handle(state.scratchpad.reserve(call.scratch_bytes));
  // The C call takes its arguments without allocating.
  const std::array<dnnl_exec_arg_t, 4> arguments{{{DNNL_ARG_SRC, call.a.get()},
                                                  {DNNL_ARG_WEIGHTS, b.get()},
                                                  {DNNL_ARG_DST, call.c.get()},
                                                  {DNNL_ARG_SCRATCHPAD, call.scratchpad.get()}}};
  const dnnl_status_t status = dnnl_primitive_execute(call.program->primitive.get(), state.stream.get(),
                                                      static_cast<int>(arguments.size()), arguments.data());
  require(status == dnnl_success, "[gemm] oneDNN product failed with status {}", static_cast<int>(status));
}

}  // namespace

void multiply(const Operand& a, const Operand& b, Out c, bool accumulate) {
  const Shape shape{.m = a.rows(),
                    .n = b.cols(),
                    .k = a.cols(),
                    .a_stride = a.stride(),
                    .b_stride = b.stride(),
                    .c_stride = c.outerStride(),
                    .a_is_transposed = a.is_transposed(),
                    .b_is_transposed = b.is_transposed(),
                    .b_is_packed = false,
                    .is_bfloat16 = a.is_bfloat16(),
                    .accumulate = accumulate};
  Call& call = call_for(shape, layout_of(b), a, c);
  call.b.set_data_handle(const_cast<void*>(b.data()));
  run(call, a.data(), call.b, c);
}

void multiply(const Operand& a, const PackedForm& b, Out c, bool accumulate) {
  const Shape shape{.m = a.rows(),
                    .n = b.n,
                    .k = b.k,
                    .a_stride = a.stride(),
                    .b_stride = 0,
                    .c_stride = c.outerStride(),
                    .a_is_transposed = a.is_transposed(),
                    .b_is_transposed = false,
                    .b_is_packed = true,
                    .is_bfloat16 = b.is_bfloat16,
                    .accumulate = accumulate};
  const auto& weights = *static_cast<const memory*>(b.layout.get());
  run(call_for(shape, weights.get_desc(), a, c), a.data(), weights, c);
}

void pack(const Operand& b, PackedForm& form) {
  parallel::prepare_thread();
  if (!form.layout) {
    const memory::desc layout = packed_layout(form.k, form.n, form.is_bfloat16);
    form.layout = std::make_shared<const memory>(layout, engine(), form.data.reserve(layout.get_size()));
  }
  memory source(layout_of(b), engine(), const_cast<void*>(b.data()));
  memory packed = *static_cast<const memory*>(form.layout.get());
  dnnl::reorder(source, packed).execute(thread_state().stream, source, packed);
}

namespace {

std::string describe_implementation(bool is_bfloat16) {
  constexpr Index n = 128;
  const memory::desc plain = strided(n, n, operand_type(is_bfloat16), n, false);
  const memory::desc c = strided(n, n, memory::data_type::f32, n, false);
  return describe(plain, packed_layout(n, n, is_bfloat16), c, false).impl_info_str();
}

}  // namespace

std::string name(Precision precision) {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} {}", version->major, version->minor, version->patch,
                     describe_implementation(precision == Precision::bfloat16 && bfloat16_is_native()));
}

bool bfloat16_is_native() {
  static const bool is_native = [] {
    const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    return (has & needed) == needed;
  }();
  return is_native;
}

}  // namespace moelab::gemm::kernel

#endif
