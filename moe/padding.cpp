#include "moe/padding.hpp"

#include "core/ops/gather.hpp"

namespace moelab::moe {

bool is_real(const TokenBatch& batch, Index token) {
  return batch.is_real.empty() || batch.is_real[static_cast<std::size_t>(token)] != 0;
}

std::vector<Index> real_tokens(const TokenBatch& batch) {
  std::vector<Index> tokens;
  tokens.reserve(static_cast<std::size_t>(batch.size()));
  for (Index t = 0; t < batch.size(); ++t) {
    if (is_real(batch, t)) tokens.push_back(t);
  }
  return tokens;
}

Variable zero_padding(const Variable& x, const TokenBatch& batch) {
  if (batch.is_real.empty()) return x;
  const std::vector<Index> real = real_tokens(batch);
  if (static_cast<Index>(real.size()) == x.rows()) return x;
  return ops::scatter_rows(ops::gather_rows(x, real), real, x.rows());
}

}  // namespace moelab::moe
