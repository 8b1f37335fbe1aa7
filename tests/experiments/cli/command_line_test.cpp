// What the command line says of what it cannot make out, or would not heed.
#include "tests/experiments/cli/answer.hpp"

#include <string>

using namespace moelab;

TEST_CASE("Other names of precisions are understood, to say ours") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment);
  CHECK_THAT(moelab_in(folder, "check e.yaml train.precision=bf16").err,
             Contains("did you mean `bfloat16`?"));
  CHECK_THAT(moelab_in(folder, "check e.yaml train.precision=FP32").err, Contains("did you mean `float32`?"));
}
