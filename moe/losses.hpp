// Auxiliary losses of a mixture layer, from what the router returned. All are over real tokens only, and over
// the actual choices before any drop.
#pragma once

#include "core/fields.hpp"
#include "moe/ffn_block.hpp"
#include "moe/router.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace moelab::moe {

struct LossConfig {
  double weight = 0;
  void fields(FieldVisitor& v);
};

struct LoadBalanceConfig {
  double weight = 0;
  std::string scope = "batch";  // batch | sequence | global
  void fields(FieldVisitor& v);
};

// A loss with weight 0 is not computed.
struct LossesConfig {
  LoadBalanceConfig load_balance;
  LossConfig z;
  LossConfig importance_cv2;
  LossConfig load_cv2;
  LossConfig entropy;
  LossConfig expert_diversity;
  void fields(FieldVisitor& v);
};

}  // namespace moelab::moe
