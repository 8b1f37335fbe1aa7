// How much new memory the process had from the system.
#pragma once

#include <cstdint>

#include <sys/resource.h>

namespace moelab::test {

// Pages that the system had to map for this process so far.
inline std::int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

}  // namespace moelab::test
