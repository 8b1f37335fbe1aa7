// An `ffn:` block for every registered kind of router and expert, for the tests that go through the
// registries. A kind without an example fails those tests: nothing can be registered without being tested.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace moelab::test {

// Router kind -> blocks with four experts, as `ffn:` text. Every option of the kind occurs in one of them.
const std::map<std::string, std::vector<std::string>>& router_examples();
// Expert kind -> blocks that use it.
const std::map<std::string, std::vector<std::string>>& expert_examples();

}  // namespace moelab::test
