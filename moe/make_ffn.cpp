#include "moe/make_ffn.hpp"

#include "core/error.hpp"
#include "moe/dense_ffn.hpp"
#include "moe/moe_layer.hpp"

namespace moelab::moe {

std::unique_ptr<FfnBlock> make_ffn(const FfnConfig& config, const FfnShape& shape) {
  require(shape.d_model > 0, "[make_ffn] layer {}: d_model is {}", shape.layer, shape.d_model);
  if (config.kind == "dense") {
    return std::make_unique<DenseFfn>(config.dense,
                                      ExpertShape{shape.d_model, shape.layer, shape.num_layers, 0});
  }
  require(config.kind == "moe", "[make_ffn] unknown kind '{}'; known: dense, moe", config.kind);
  return std::make_unique<MoeLayer>(config.moe.expanded(), shape);
}

}  // namespace moelab::moe
