// An expert in the accounting, where a token's share of its parameters is not its share of the compute.
#pragma once

#include "core/module.hpp"

#include <string_view>

namespace moelab::moe {

// visitor.module(name, expert, "experts", ...) with `parameters` as the share of parameters and state, and
// `compute` as that of products. The parts of an expert are in its row of the accounting.
void visit_expert(Visitor& visitor, std::string_view name, Module& expert, Share parameters, Share compute);

}  // namespace moelab::moe
