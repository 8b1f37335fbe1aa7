#include "core/random.hpp"

#include "core/error.hpp"

#include <cmath>
#include <numbers>
#include <numeric>

#include <Random123/philox.h>

namespace moelab::random {

namespace {

using Generator = r123::Philox4x32;

constexpr double kTwoToMinus53 = 0x1.0p-53;

// FNV-1a of the name, mixed with the seed by a splitmix64 finaliser so that neighbouring seeds are far apart.
std::uint64_t key_of(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  std::uint64_t z = hash + 0x9e3779b97f4a7c15ULL * (seed + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

struct Draw {
  std::uint64_t low, high;
};

Draw draw(std::uint64_t key, std::uint64_t step, std::uint64_t index) {
  const auto half = [](std::uint64_t v, int shift) { return static_cast<std::uint32_t>(v >> shift); };
  const Generator::ctr_type counter{{half(index, 0), half(index, 32), half(step, 0), half(step, 32)}};
  const Generator::key_type philox_key{{half(key, 0), half(key, 32)}};
  const Generator::ctr_type r = Generator{}(counter, philox_key);
  return {r[0] | (std::uint64_t{r[1]} << 32), r[2] | (std::uint64_t{r[3]} << 32)};
}

}  // namespace

Stream::Stream(std::uint64_t seed, std::string_view name, std::uint64_t step)
    : key_(key_of(seed, name)), step_(step) {}

std::uint64_t Stream::bits(std::uint64_t index) const { return draw(key_, step_, index).low; }

double Stream::uniform(std::uint64_t index) const {
  return static_cast<double>(bits(index) >> 11) * kTwoToMinus53;
}

double Stream::normal(std::uint64_t index) const {
  const Draw r = draw(key_, step_, index);
  // In (0, 1], so that the logarithm is finite.
  const double u = static_cast<double>((r.low >> 11) + 1) * kTwoToMinus53;
  const double v = static_cast<double>(r.high >> 11) * kTwoToMinus53;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

std::uint64_t Stream::below(std::uint64_t index, std::uint64_t bound) const {
  require(bound > 0, "[random] below: bound is 0");
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits(index)) * bound) >> 64);
}

void fill_normal(Out out, const Stream& stream, double std) {
  for (Index i = 0; i < out.rows(); ++i) {
    for (Index j = 0; j < out.cols(); ++j) {
      out(i, j) = static_cast<Scalar>(std * stream.normal(static_cast<std::uint64_t>(i * out.cols() + j)));
    }
  }
}

std::vector<Index> permutation(Index n, const Stream& stream) {
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  for (Index i = n - 1; i > 0; --i) {
    const auto j = stream.below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(i) + 1);
    std::swap(order[static_cast<std::size_t>(i)], order[j]);
  }
  return order;
}

}  // namespace moelab::random
