#include "experiments/training/resources.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include <sys/resource.h>

namespace moelab {

namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// The number that a file holds, after `key` where one is given.
double number_in(const char* file, const std::string& key, double otherwise) {
  std::ifstream stream(file);
  std::string word;
  while (!key.empty() && word != key && stream >> word) {
  }
  double value = 0;
  return stream >> value ? value : otherwise;
}

}  // namespace

double memory_of_machine() {
  const double of_system = 1024 * number_in("/proc/meminfo", "MemTotal:", kUnlimited);
  return std::min(of_system, number_in("/sys/fs/cgroup/memory.max", "", kUnlimited));
}

double available_memory() {
  const double of_system = 1024 * number_in("/proc/meminfo", "MemAvailable:", kUnlimited);
  const double limit = number_in("/sys/fs/cgroup/memory.max", "", kUnlimited);
  const double used = number_in("/sys/fs/cgroup/memory.current", "", 0);
  return std::min(of_system, std::max(limit - used, 0.0));
}

double peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);  // Linux counts kilobytes
}

}  // namespace moelab
