// The choices of a batch as the oracle files hold them: a row a token, in order of falling weight.
#pragma once

#include "moe/ffn_block.hpp"

namespace moelab::oracle {

struct ChoiceTables {
  Matrix ids;      // (N, places) -1 where a token has fewer choices
  Matrix weights;  // (N, places) before drops; 0 there
  Matrix kept;     // (N, places) 0: dropped, or no choice
  Matrix combine;  // (N, E) weight after drops
  Index assignments = 0, dropped = 0;
  Index tokens = 0, tokens_without_expert = 0;  // of the real ones
};

ChoiceTables choice_tables(const moe::RoutingRecord& record, std::span<const std::uint8_t> is_real,
                           Index places);

}  // namespace moelab::oracle
