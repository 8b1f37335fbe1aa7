#include "moe/dense_ffn.hpp"

#include "core/error.hpp"
#include "moe/dispatch.hpp"
#include "moe/padding.hpp"

namespace moelab::moe {

FfnOutput DenseFfn::forward(const Variable& x, const TokenBatch& batch, const ForwardContext& context) {
  require(x.rows() == batch.size(), "[dense_ffn] {} rows for {} tokens", x.rows(), batch.size());
  return {run_expert(ffn_, zero_padding(x, batch), context), {}, std::nullopt};
}

}  // namespace moelab::moe
