#include "core/parallel.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <tbb/global_control.h>

using namespace moelab;

namespace {

constexpr int kThreadCounts[] = {1, 2, 3, 8};

// Restores the default when a test ends.
struct DefaultThreads {
  ~DefaultThreads() { parallel::set_threads(0); }
};

}  // namespace

TEST_CASE("blocks cover the range once, cut by size alone", "[parallel]") {
  const DefaultThreads restore;
  for (const int threads : kThreadCounts) {
    parallel::set_threads(threads);
    for (const Index n : {0, 1, 63, 64, 65, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(n));
      std::atomic<int> wrong_cuts{0};
      parallel::for_blocks(n, 64, [&](Index begin, Index end) {
        if (begin % 64 != 0 || end != std::min<Index>(begin + 64, n)) ++wrong_cuts;
        for (Index i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      CHECK(wrong_cuts == 0);
      for (const auto& count : visits) CHECK(count == 1);
    }
  }
}

TEST_CASE("an ordered sum has the same bits at every thread count", "[parallel]") {
  const DefaultThreads restore;
  constexpr Index n = Index{1} << 20;
  const auto partial = [](Index begin, Index end) {
    float sum = 0;
    for (Index i = begin; i < end; ++i) sum += 1.0F / (1.0F + static_cast<float>(i));
    return static_cast<double>(sum);
  };
  double expected = 0;
  for (Index begin = 0; begin < n; begin += 4096) expected += partial(begin, begin + 4096);
  for (const int threads : kThreadCounts) {
    parallel::set_threads(threads);
    for (int repeat = 0; repeat < 5; ++repeat) CHECK(parallel::ordered_sum(n, 4096, partial) == expected);
  }
  CHECK_THAT(expected,
             Catch::Matchers::WithinRel(std::log(double(n)) + 0.5772156649, 1e-6));  // harmonic number
}

TEST_CASE("an exception of a task reaches the caller, and work goes on after it", "[parallel]") {
  const DefaultThreads restore;
  for (const int threads : kThreadCounts) {
    parallel::set_threads(threads);
    const auto throwing = [](Index i) {
      if (i == 13) throw std::runtime_error("thirteen");
    };
    CHECK_THROWS_WITH(parallel::for_each(100, throwing), "thirteen");
    // From an inner loop too.
    CHECK_THROWS_WITH(parallel::for_each(4, [&](Index) { parallel::for_each(100, throwing); }), "thirteen");
    std::atomic<int> count{0};
    parallel::for_each(100, [&](Index) { ++count; });
    CHECK(count == 100);
  }
}

TEST_CASE("a thread that waits for its inner loop runs nothing else", "[parallel]") {
  const DefaultThreads restore;
  for (const int threads : {1, 2, 3, 8, 2, 3, 8, 2, 3, 8}) {
    parallel::set_threads(threads);
    std::atomic<int> entered_twice{0};
    std::atomic<int> inner{0};
    parallel::for_each(64, [&](Index) {
      thread_local bool inside = false;
      if (inside) ++entered_twice;
      inside = true;
      // They last, the last one longest: a thread with nothing left to do waits, and would take another task.
      parallel::for_each(16, [&](Index i) {
        std::this_thread::sleep_for(std::chrono::microseconds(i == 15 ? 500 : 20));
        ++inner;
      });
      inside = false;
    });
    CHECK(entered_twice == 0);
    CHECK(inner == 64 * 16);
  }
}

TEST_CASE("the thread count is the one that is granted", "[parallel]") {
  const DefaultThreads restore;
  for (const int threads : kThreadCounts) {
    parallel::set_threads(threads);
    CHECK(parallel::threads() == threads);
  }
  parallel::set_threads(0);
  CHECK(parallel::threads() >= 1);
  CHECK_THROWS_WITH(parallel::set_threads(-1), "[parallel] threads=-1 is negative (0 means all)");
  CHECK_THROWS_AS(parallel::for_blocks(3, 0, [](Index, Index) {}), Error);
}

// As a program of which moelab is a part may set it, or a batch system through it.
TEST_CASE("a limit from outside holds, whatever is asked for", "[parallel]") {
  const DefaultThreads restore;
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 2);
  parallel::set_threads(8);
  CHECK(parallel::threads() == 2);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  parallel::for_each(1000, [&](Index) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));  // so that others would come to help
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  CHECK(ids.size() <= 2);
}

TEST_CASE("Eigen runs no threads of its own", "[parallel]") {
#ifndef EIGEN_DONT_PARALLELIZE
  FAIL("EIGEN_DONT_PARALLELIZE is not set");
#endif
#ifdef EIGEN_HAS_OPENMP
  FAIL("Eigen is built with OpenMP");
#endif
  CHECK(Eigen::nbThreads() == 1);
}

TEST_CASE("every thread takes denormals for zero", "[parallel]") {
  const DefaultThreads restore;
  for (const int threads : kThreadCounts) {
    parallel::set_threads(threads);
    std::atomic<int> not_flushed{0};
    parallel::for_each(1000, [&](Index) {
      const volatile float tiny = std::numeric_limits<float>::min();
      const volatile float half = 0.5F;
      const volatile float product = tiny * half;  // a denormal result
      const volatile float denormal = std::numeric_limits<float>::denorm_min();
      const volatile float scaled = denormal * 0x1p100F;  // a denormal operand
      if (product != 0 || scaled != 0) ++not_flushed;
    });
    CHECK(not_flushed == 0);
  }
}
