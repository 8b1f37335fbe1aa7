#include "core/memory.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace moelab {

void keep_freed_memory() {
#ifdef __GLIBC__
  // Large blocks from the heap, not each from a mapping of its own; the heap's end is never given back.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  // One heap for all threads: those of other threads are small and are given back whole.
  mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace moelab
