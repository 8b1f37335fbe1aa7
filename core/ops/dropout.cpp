#include "core/ops/dropout.hpp"

#include "core/error.hpp"
#include "core/ops/math.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <cmath>

namespace moelab::ops {

namespace {

constexpr Index kBlock = 4096;  // entries of a task
constexpr Index kLanes = 64;    // draws that are made at once

// The words of Philox 4x32-10 (Salmon et al. 2011) for the counters first, ..., first + kLanes - 1: a dropout
// mask needs a number for every entry of every activation, and this loop vectorises. Word w of draw i goes to
// words[4 * i + w].
void philox_words(std::uint64_t key, std::uint64_t first, std::uint32_t* words) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  std::uint32_t a[kLanes], b[kLanes], c[kLanes] = {}, d[kLanes] = {};
  for (Index l = 0; l < kLanes; ++l) {
    const std::uint64_t counter = first + static_cast<std::uint64_t>(l);
    a[l] = low(counter), b[l] = high(counter);
  }
  std::uint32_t key0 = low(key), key1 = high(key);
  for (int round = 0; round < 10; ++round, key0 += kWeyl0, key1 += kWeyl1) {
    for (Index l = 0; l < kLanes; ++l) {
      const std::uint64_t p = kMultiplier0 * a[l], q = kMultiplier1 * c[l];
      a[l] = high(q) ^ b[l] ^ key0;
      b[l] = low(q);
      c[l] = high(p) ^ d[l] ^ key1;
      d[l] = low(p);
    }
  }
  for (Index l = 0; l < kLanes; ++l) {
    words[4 * l] = a[l], words[4 * l + 1] = b[l], words[4 * l + 2] = c[l], words[4 * l + 3] = d[l];
  }
}

Matrix masked(const DropoutMask& mask, const Scalar* x, Index rows, Index cols) {
  Matrix y(rows, cols);
  parallel::for_blocks(y.size(), kBlock, [&](Index begin, Index end) {
    Scalar* out = y.data() + begin;
    const Scalar* in = x + begin;
    mask.factors(static_cast<std::uint64_t>(begin), end - begin, out);
    math::for_entries(end - begin, [=](Index i) { out[i] *= in[i]; });
  });
  return y;
}

}  // namespace

DropoutMask::DropoutMask(double rate, const random::Stream& stream)
    : key_(stream.bits(0)), kept_(static_cast<Scalar>(1 / (1 - rate))) {
  require(rate >= 0 && rate < 1, "[dropout] rate={} is not in [0, 1)", rate);
  threshold_ = static_cast<std::uint32_t>(std::ldexp(rate, 32));
}

void DropoutMask::factors(std::uint64_t first, Index n, Scalar* out) const {
  // Entry i uses word i % 4 of draw i / 4; the first draw may be needed from its middle on.
  std::uint32_t words[4 * kLanes];
  for (Index done = 0; done < n;) {
    const std::uint64_t entry = first + static_cast<std::uint64_t>(done);
    philox_words(key_, entry / 4, words);
    const auto skip = static_cast<Index>(entry % 4);
    const Index count = std::min(n - done, 4 * kLanes - skip);
    const std::uint32_t* word = words + skip;
    Scalar* to = out + done;
    const std::uint32_t threshold = threshold_;
    const Scalar kept = kept_;
    math::for_entries(count, [=](Index i) { to[i] = word[i] < threshold ? Scalar{0} : kept; });
    done += count;
  }
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
