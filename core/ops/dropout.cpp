#include "core/ops/dropout.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"

#include <cmath>

namespace moelab::ops {

namespace {

constexpr Index kBlock = 4096;  // entries of a task

Matrix masked(const DropoutMask& mask, const Scalar* x, Index rows, Index cols) {
  Matrix y(rows, cols);
  parallel::for_blocks(y.size(), kBlock, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) y.data()[i] = x[i] * mask.factor(static_cast<std::uint64_t>(i));
  });
  return y;
}

}  // namespace

DropoutMask::DropoutMask(double rate, const random::Stream& stream)
    : stream_(stream),
      threshold_(static_cast<std::uint64_t>(std::ldexp(rate, 64))),
      kept_(static_cast<Scalar>(1 / (1 - rate))) {
  require(rate >= 0 && rate < 1, "[dropout] rate={} is not in [0, 1)", rate);
}

Variable dropout(const Variable& x, double rate, const random::Stream& stream) {
  if (rate == 0) return x;
  const DropoutMask mask(rate, stream);
  return Variable::result(masked(mask, x.value().data(), x.rows(), x.cols()), {x},
                          [x, mask](const Matrix&, const Matrix& dy) {
                            x.add_grad(masked(mask, dy.data(), dy.rows(), dy.cols()));
                          });
}

}  // namespace moelab::ops
