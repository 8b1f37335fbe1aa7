#include "moe/registry.hpp"

#include "moe/experts/ffn_options.hpp"
#include "moe/experts/simple.hpp"
#include "moe/routers/base.hpp"
#include "moe/routers/controls.hpp"
#include "moe/routers/expert_choice.hpp"
#include "moe/routers/noisy_top_k.hpp"
#include "moe/routers/relu.hpp"
#include "moe/routers/sinkhorn.hpp"
#include "moe/routers/soft.hpp"
#include "moe/routers/top_k.hpp"
#include "moe/routers/top_p.hpp"

namespace moelab::moe {

namespace {

template <class Options, class Made>
Kind<Options> kind(std::string name, std::string help, std::string source) {
  return {std::move(name), std::move(help), std::move(source), [] { return std::make_unique<Made>(); }};
}

template <class Made>
Kind<ExpertOptions> expert(std::string name, std::string help, std::string source) {
  return kind<ExpertOptions, Made>(std::move(name), std::move(help), std::move(source));
}

template <class Made>
Kind<RouterOptions> router(std::string name, std::string help, std::string source) {
  return kind<RouterOptions, Made>(std::move(name), std::move(help), std::move(source));
}

}  // namespace

KindTable<ExpertOptions>& expert_kinds() {
  static KindTable<ExpertOptions> table(
      "expert",
      {
          expert<FfnExpertOptions>("ffn", "Two or three matrices with an activation between", "Shazeer 2020"),
          expert<ZeroExpertOptions>("zero", "Discards the token", "MoE++, Jin et al. 2024"),
          expert<CopyExpertOptions>("copy", "Passes the token on", "MoE++, Jin et al. 2024"),
          expert<ConstantExpertOptions>("constant", "Mixes the token with a learned vector",
                                        "MoE++, Jin et al. 2024"),
      });
  return table;
}

KindTable<RouterOptions>& router_kinds() {
  static KindTable<RouterOptions> table(
      "router",
      {
          router<TopKOptions>("top_k", "The k best scores",
                              "Shazeer et al. 2017; Switch Transformers; DeepSeek-V3"),
          router<NoisyTopKOptions>("noisy_top_k", "top_k with learned noise on the logits, in training",
                                   "Shazeer et al. 2017, equations 3 to 5"),
          router<TopPOptions>("top_p", "As many experts as it takes to reach a sum of scores",
                              "Huang et al. 2024, equation 3"),
          router<ExpertChoiceOptions>("expert_choice",
                                      "Each expert takes its best tokens of a sequence; not causal",
                                      "Zhou et al. 2022, section 3.2"),
          router<SoftOptions>("soft", "Slots mix all tokens of a sequence; not causal",
                              "Soft MoE, Puigcerver et al. 2023, section 2.1"),
          router<ReluOptions>("relu", "Every expert with a positive logit",
                              "ReMoE, Wang et al. 2024, section 3"),
          router<SinkhornOptions>("sinkhorn", "Balanced by Sinkhorn's scaling in training",
                                  "Clark et al. 2022, section 3.1"),
          router<BaseOptions>("base", "The best assignment with equal shares, in training; not causal",
                              "BASE layers, Lewis et al. 2021"),
          router<HashOptions>("hash", "Fixed by the token id", "Hash Layers, Roller et al. 2021"),
          router<RandomOptions>("random", "Random experts, new on each step", "control"),
          router<FrozenOptions>("frozen", "top_k with a router that is never trained", "control"),
          router<RoundRobinOptions>("round_robin", "Experts in turn", "control"),
      });
  return table;
}

}  // namespace moelab::moe
