// What share of a mixture's compute is active.
#pragma once

#include "core/module.hpp"

namespace moelab::moe {

// FLOPs of the matrix products that a module executes for one row, parts with a share of the rows included by
// that share. One multiply-add is 2 FLOPs.
double flops_per_row(Module& module);

// FFN FLOPs a token as planned (from k), and if every expert ran on every token; routers are in neither.
struct PlannedCompute {
  double active_flops = 0;
  double full_flops = 0;
  double ratio() const { return full_flops > 0 ? active_flops / full_flops : 1; }
};

// `context`: positions of a sequence; matters where experts choose tokens (expert_choice, soft).
PlannedCompute planned_compute(Module& ffn, Index context = 1);

}  // namespace moelab::moe
