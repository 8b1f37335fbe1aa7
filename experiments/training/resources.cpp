#include "experiments/training/resources.hpp"

#include <sys/resource.h>

namespace moelab {

double peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);  // Linux counts kilobytes
}

}  // namespace moelab
