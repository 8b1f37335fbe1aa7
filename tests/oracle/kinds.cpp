#include "tests/oracle/kinds.hpp"

#include "core/error.hpp"

namespace moelab::oracle {

void run_case(const Case& c, Comparison& comparison) {
  for (const auto* kinds : {&kLayerKinds, &kTrainingKinds, &kMixtureKinds, &kModelKinds, &kTrajectoryKinds}) {
    for (const Kind& kind : *kinds) {
      if (c.kind == kind.name) return kind.run(c, comparison);
    }
  }
  fail("[oracle] the kind '{}' is not known", c.kind);
}

}  // namespace moelab::oracle
