// The tables of experts and routers that `kind:` in an experiment file chooses from. The kinds of this
// library are listed in registry.cpp; a program adds its own at the start of main():
//
//   moe::router_kinds().add({"mine", "one line of help", "source",
//                            [] { return std::make_unique<MyRouterOptions>(); }});
#pragma once

#include "moe/kinds.hpp"

namespace moelab::moe {

class ExpertOptions;
class RouterOptions;

KindTable<ExpertOptions>& expert_kinds();
KindTable<RouterOptions>& router_kinds();

}  // namespace moelab::moe
