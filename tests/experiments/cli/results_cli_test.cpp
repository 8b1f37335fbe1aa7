// The commands that read results, as a user calls them.
#include "core/file.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/wait.h>

using namespace moelab;

namespace {

struct Answer {
  int code = 0;
  std::string out, err;
};

Answer moelab_in(const TemporaryFolder& folder, const std::string& arguments) {
  const TemporaryFolder answers;
  const std::filesystem::path out = answers.path() / "out", err = answers.path() / "err";
  const std::string command = "cd '" + folder.path().string() + "' && '" MOELAB_BINARY "' " + arguments +
                              " >'" + out.string() + "' 2>'" + err.string() + "' </dev/null";
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), read_file(out), read_file(err)};
}

}  // namespace

TEST_CASE("commands that read results") {
  const TemporaryFolder folder;
  write_example_results(folder.path());

  CHECK_THAT(moelab_in(folder, "ls .").out, Contains("6 of 6 runs done"));
  CHECK_THAT(moelab_in(folder, "show results.h5").out, Contains("moe-s2"));
  CHECK_THAT(moelab_in(folder, "show results.h5 --run moe-s2").out, Contains("Accounting"));
  const Answer wrong = moelab_in(folder, "show results.h5 --run moe-s9");
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.err, Contains("moe-s9") && Contains("dense-s0"));
  CHECK(moelab_in(folder, "show none.h5").code == 1);

  const Answer compared = moelab_in(folder, "compare results.h5");
  CHECK(compared.code == 0);
  CHECK_THAT(compared.out, Contains("-0.2000"));
  CHECK_THAT(moelab_in(folder, "compare results.h5 --baseline moe --format md").out,
             Contains("| dense |") && Contains("+0.2000"));
  const Answer held = moelab_in(folder, "compare results.h5 --fail-if 'delta < 0'");
  CHECK(held.code == 4);
  CHECK_THAT(held.err, Contains("'delta < 0' holds: moe.delta"));
  CHECK(moelab_in(folder, "compare results.h5 --fail-if 'delta > 0' --fail-if 'moe.relative_compute > 2'")
            .code == 0);
  CHECK(moelab_in(folder, "compare results.h5 --fail-if 'delta >> 0'").code == 2);
  CHECK(moelab_in(folder, "compare results.h5 --at never").code == 2);
  CHECK(moelab_in(folder, "compare results.h5 --format xlsx").code == 2);
  CHECK(moelab_in(folder, "compare dense-s0.h5 moe-s0.h5 --fail-if 'delta_ci_low > 0'").code == 1);

  CHECK(moelab_in(folder, "plot results.h5 loss -o loss.svg --x flops --log-x").code == 0);
  CHECK_THAT(read_file(folder.path() / "loss.svg"), Contains("training FLOPs"));
  CHECK(moelab_in(folder, "plot results.h5 pie -o pie.svg").code == 2);
  CHECK(moelab_in(folder, "plot results.h5 loss -o loss.gif").code == 2);
  CHECK(moelab_in(folder, "report results.h5 -o page.html").code == 0);
  CHECK_THAT(read_file(folder.path() / "page.html"), Contains("<!DOCTYPE html>"));

  for (const char* format : {"csv", "jsonl", "tensorboard"})
    CHECK(moelab_in(folder, std::string("export results.h5 -o out --format ") + format).code == 0);
  CHECK(std::filesystem::exists(folder.path() / "out" / "summary.csv"));
  CHECK(moelab_in(folder, "export results.h5 -o out --format xml").code == 2);

  CHECK(moelab_in(folder, "merge dense-s0.h5 moe-s0.h5 moe-s1.h5 -o merged.h5").code == 0);
  CHECK_THAT(moelab_in(folder, "ls merged.h5").out, Contains("3 of 3 runs done"));
  CHECK_THAT(moelab_in(folder, "merge moe-s0.h5 results.h5 -o merged.h5").err,
             Contains("moe-s0") && Contains("twice"));
  CHECK(moelab_in(folder, "recover .").code == 1);
}
