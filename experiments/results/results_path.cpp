#include "experiments/results/results_path.hpp"

#include "core/error.hpp"

namespace moelab {

namespace fs = std::filesystem;

fs::path results_path(const fs::path& named) {
  std::error_code ignored;  // what cannot be looked at is told of where it is opened
  if (!fs::is_directory(named, ignored)) return named;
  for (const char* name : {"results.h5", "run.h5"}) {
    if (fs::exists(named / name, ignored)) return named / name;
  }
  const fs::path newest = named / "latest";
  if (fs::exists(newest / "results.h5", ignored))
    fail("{} is a folder of executions; the results of the newest are {}", named.string(),
         (newest / "results.h5").string());
  fail(
      "{} is a folder that has neither results.h5, as an execution, nor run.h5, as a run; "
      "`moelab ls {}` lists what is below it",
      named.string(), named.string());
}

}  // namespace moelab
