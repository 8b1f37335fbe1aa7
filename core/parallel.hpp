// The one door to TBB. Work is cut by its size alone, never by the number of threads, and partial sums are
// added in a fixed order, so every result has the same bits at any thread count.
#pragma once

#include "core/tensor.hpp"

#include <functional>

namespace moelab::parallel {

// Threads that parallel work may use. Set before work starts (0: all that the machine grants this process).
void set_threads(int threads);
// The number that is really granted.
int threads();

// Gives the calling thread the policy that every thread of parallel work has: denormals are zero, and OpenMP,
// which some libraries are built on, uses this thread alone. Done for workers and for callers of the
// functions below; a thread that computes before that calls it itself.
void prepare_thread();

// Calls body(begin, end) for consecutive blocks of `block` indices that cover [0, n); the last may be
// shorter. Blocks run on any thread, in any order. An exception of a body is rethrown here. Loops may be
// nested: a thread that waits for its inner loop runs only blocks of that loop.
void for_blocks(Index n, Index block, const std::function<void(Index begin, Index end)>& body);

// Calls body(i) for each i in [0, n), one task each: for few, large pieces of work.
void for_each(Index n, const std::function<void(Index i)>& body);

// Sum over [0, n) of what partial(begin, end) returns for each block, added in block order.
double ordered_sum(Index n, Index block, const std::function<double(Index begin, Index end)>& partial);

}  // namespace moelab::parallel
