#include "core/parallel.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include <dlfcn.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace moelab::parallel {

namespace {

// Libraries built on OpenMP (oneDNN of Debian) would start a team of threads inside each of our tasks. Looked
// up by name because which OpenMP runtime is loaded, if any, is known only then.
void set_openmp_threads_to_one() {
  using SetThreads = void (*)(int);
  static const auto set_threads_of_openmp =
      reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set_threads_of_openmp) set_threads_of_openmp(1);
}

// Denormals are read and written as zero: arithmetic on them is a hundred times slower, and a thread with
// another policy would compute other bits.
void flush_denormals() {
#ifdef __SSE2__
  constexpr unsigned flush_to_zero = 0x8000;
  constexpr unsigned denormals_are_zero = 0x0040;
  _mm_setcsr(_mm_getcsr() | flush_to_zero | denormals_are_zero);
#endif
}

class ThreadPolicy : public tbb::task_scheduler_observer {
 public:
  explicit ThreadPolicy(tbb::task_arena& arena) : tbb::task_scheduler_observer(arena) { observe(true); }
  ~ThreadPolicy() override { observe(false); }
  void on_scheduler_entry(bool /*is_worker*/) override { prepare_thread(); }
};

// The threads that work is given to.
class Pool {
 public:
  // TBB hands the floating-point settings of the thread that makes an arena to the arena's workers, hence the
  // policy is set here before.
  explicit Pool(int requested)
      : limit_(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(requested)),
        arena_((prepare_thread(), requested)),
        policy_((arena_.initialize(), arena_)) {}

  tbb::task_arena& arena() { return arena_; }
  int threads() const {
    const std::size_t allowed =
        tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
    return std::min(arena_.max_concurrency(), static_cast<int>(allowed));
  }

 private:
  tbb::global_control limit_;
  tbb::task_arena arena_;
  ThreadPolicy policy_;
};

std::mutex pool_mutex;
std::shared_ptr<Pool> current_pool;

std::shared_ptr<Pool> pool() {
  const std::lock_guard lock(pool_mutex);
  if (!current_pool) current_pool = std::make_shared<Pool>(tbb::info::default_concurrency());
  return current_pool;
}

}  // namespace

void prepare_thread() {
  flush_denormals();
  set_openmp_threads_to_one();
}

void set_threads(int threads) {
  require(threads >= 0, "[parallel] threads={} is negative (0 means all)", threads);
  const int requested = threads > 0 ? threads : tbb::info::default_concurrency();
  const std::lock_guard lock(pool_mutex);
  current_pool.reset();
  current_pool = std::make_shared<Pool>(requested);
}

int threads() { return pool()->threads(); }

void for_blocks(Index n, Index block, const std::function<void(Index begin, Index end)>& body) {
  require(block > 0, "[parallel] block={} is not positive", block);
  if (n <= 0) return;
  const std::shared_ptr<Pool> used = pool();
  const Index num_blocks = (n + block - 1) / block;
  const auto run = [&](Index b) { body(b * block, std::min(n, (b + 1) * block)); };
  if (num_blocks == 1) {
    prepare_thread();
    run(0);
    return;
  }
  used->arena().execute([&] {
    // Isolated: a thread that waits here for its inner loop must not pick up an outer task meanwhile, which
    // would use the memory that this thread keeps for tasks, or a lock that the waiting task holds.
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(
          tbb::blocked_range<Index>(0, num_blocks, 1),
          [&](const tbb::blocked_range<Index>& range) {
            for (Index b = range.begin(); b < range.end(); ++b) run(b);
          },
          tbb::simple_partitioner());
    });
  });
}

void for_each(Index n, const std::function<void(Index i)>& body) {
  for_blocks(n, 1, [&](Index begin, Index) { body(begin); });
}

double ordered_sum(Index n, Index block, const std::function<double(Index begin, Index end)>& partial) {
  require(block > 0, "[parallel] block={} is not positive", block);
  if (n <= 0) return 0;
  std::vector<double> sums(static_cast<std::size_t>((n + block - 1) / block));
  for_blocks(n, block, [&](Index begin, Index end) {
    sums[static_cast<std::size_t>(begin / block)] = partial(begin, end);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace moelab::parallel
