#include "experiments/accounting/accounting.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>

namespace moelab {

std::int64_t product_of(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    require(!__builtin_mul_overflow(product, factor, &product),
            "[accounting] a count does not fit into 64 bits");
  }
  return product;
}

std::int64_t sum_of(std::initializer_list<std::int64_t> terms) {
  std::int64_t sum = 0;
  for (const std::int64_t term : terms) {
    require(!__builtin_add_overflow(sum, term, &sum), "[accounting] a count does not fit into 64 bits");
  }
  return sum;
}

void ExactSum::add(std::int64_t size, Share share) {
  auto part =
      std::find_if(parts_.begin(), parts_.end(), [&](const Part& p) { return p.total == share.total; });
  if (part == parts_.end()) part = parts_.insert(part, {share.total, 0});
  part->sum = sum_of({part->sum, product_of({size, share.chosen})});
}

std::int64_t ExactSum::value() const {
  std::int64_t whole = 0;
  double rest = 0;
  for (const Part& p : parts_) {
    whole = sum_of({whole, p.sum / p.total});
    rest += static_cast<double>(p.sum % p.total) / static_cast<double>(p.total);
  }
  return whole + std::llround(rest);
}

Tally::Tally(Index context) : context_(context) {
  require(context > 0, "[accounting] a context of {} positions is not positive", context);
}

Tally::Row& Tally::row(std::string_view group) {
  const auto found = std::find(kModuleGroups.begin(), kModuleGroups.end(), group);
  require(found != kModuleGroups.end(), "[accounting] there is no module group '{}'", group);
  return rows_[static_cast<std::size_t>(found - kModuleGroups.begin())];
}

void Tally::parameters(std::string_view group, std::int64_t size, Index copies, Share active,
                       TableRole role) {
  Row& r = row(group);
  const std::int64_t all = product_of({size, copies});
  r.params_total = sum_of({r.params_total, all});
  r.params_active.add(all, active);
  if (role == TableRole::input_table) input_table_ = sum_of({input_table_, all});
  if (role == TableRole::position_table) position_table_ = sum_of({position_table_, all});
  if (role == TableRole::head) head_ = sum_of({head_, all});
}

void Tally::product(std::string_view group, Index out, Index in, Index copies, Share rows) {
  Row& r = row(group);
  const std::int64_t all = product_of({out, in, copies});
  r.multiply_adds.add(all, rows);
  r.multiply_adds_if_all_active = sum_of({r.multiply_adds_if_all_active, all});
}

void Tally::attention(Index score_width, Index value_width, bool causal, Index layers) {
  const std::int64_t full = product_of({2, sum_of({score_width, value_width}), context_, layers});
  attention_full_ = sum_of({attention_full_, full});
  attention_causal_ = sum_of({attention_causal_, causal ? full / 2 : full});
}

Accounting Tally::finish() const {
  Accounting a;
  a.context = context_;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& r = rows_[i];
    const std::int64_t flops = product_of({2, r.multiply_adds.value()});
    const std::int64_t flops_if_all = product_of({2, r.multiply_adds_if_all_active});
    const std::string_view group = kModuleGroups[i];
    a.total = sum_of({a.total, r.params_total});
    a.active_all += r.params_active.value();
    a.product_flops = sum_of({a.product_flops, flops});
    if (group == "experts") a.experts_routed_total = r.params_total;
    if (group == "experts" || group == "shared_experts" || group == "dense_ffn") {
      a.ffn_flops += flops;
      a.ffn_flops_if_all_active = sum_of({a.ffn_flops_if_all_active, flops_if_all});
    }
    if (r.params_total == 0 && flops_if_all == 0) continue;
    a.modules.push_back({std::string(group), r.params_total, r.params_active.value(), flops, flops_if_all});
  }
  a.active_without_input_embedding = a.active_all - (tied_ ? 0 : input_table_);
  a.active_without_embeddings = a.active_all - input_table_ - position_table_ - head_;
  if (attention_defined_) {
    a.attention_flops_full = attention_full_;
    a.attention_flops_causal = attention_causal_;
  }
  a.kv_cache_scalars_per_token = kv_cache_scalars_;
  // The figures that are made of these must fit, too: bytes of a training, and three times the FLOPs.
  product_of({16, a.total});
  product_of({3, sum_of({a.product_flops, attention_full_})});
  product_of({2, kv_cache_scalars_});
  a.notes = notes_;
  return a;
}

double Accounting::active_compute_ratio() const {
  if (ffn_flops_if_all_active == 0) return 1;
  return static_cast<double>(ffn_flops) / static_cast<double>(ffn_flops_if_all_active);
}

double Accounting::active_parameter_ratio() const {
  return total == 0 ? 1 : static_cast<double>(active_all) / static_cast<double>(total);
}

const std::vector<std::pair<std::string, std::string>>& Accounting::conventions() {
  static const std::vector<std::pair<std::string, std::string>> text{
      {"flops",
       "one multiply-add is 2 FLOPs; matrix products only, norms, softmax, biases and lookups are 0"},
      {"product_flops_per_token",
       "2 x weights of the products that a token meets in a forward pass, head included, without attention "
       "scores; so are the figures of single modules"},
      {"attention_flops_per_token",
       "2 x (score width + value width) x context a layer: the full square; "
       "causal: half of it where a layer is causal; sliding windows not deducted"},
      {"flops_forward_per_token",
       "products, and attention over the full square; causal: products, and attention under the mask"},
      {"training", "3 x forward"},
      {"active_all", "parameters that a token uses: the chosen experts, shared experts and everything else"},
      {"active_without_input_embedding", "the same without the input table where it is not also the head"},
      {"active_without_embeddings", "the same without embedding tables and head weight"},
      {"active_compute_ratio",
       "FLOPs of experts, shared experts and dense FFNs as routed / the same if every "
       "expert ran on every token; routers not included"},
      {"active_parameter_ratio", "active_all / total"},
      {"training_memory", "float32 weights, gradients and the two moments of Adam: 16 bytes a parameter"},
      {"kv_cache", "keys and values (under latent attention: the latent and the rotary key) in bfloat16"},
  };
  return text;
}

}  // namespace moelab
