// From the `ffn:` block of an experiment to the module that computes it.
#pragma once

#include "moe/config.hpp"
#include "moe/ffn_block.hpp"

#include <memory>

namespace moelab::moe {

// Where an FFN stands in its model.
struct FfnShape {
  Index d_model = 0;
  Index layer = 0;       // from 0: names random streams and errors
  Index num_layers = 1;  // output projections start at 0.02 / sqrt(2 num_layers)
};

// The config must be valid: read through fields(), which checks it. Error on what only the shape tells.
std::unique_ptr<FfnBlock> make_ffn(const FfnConfig& config, const FfnShape& shape);

}  // namespace moelab::moe
