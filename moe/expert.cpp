#include "moe/expert.hpp"

#include "core/error.hpp"

namespace moelab::moe {

Variable Expert::forward(const Variable& /*x*/, const ExpertRows& /*rows*/) {
  fail("[expert] this kind of expert has neither forward() nor kernel()");
}

}  // namespace moelab::moe
