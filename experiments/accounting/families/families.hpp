// One function a family of published architectures: reads the fields of its config.json, with the defaults of
// its config class where they are missing, and adds what the main model holds to the tally.
#pragma once

#include "experiments/accounting/accounting.hpp"
#include "experiments/accounting/hf_config.hpp"

namespace moelab::families {

using Describe = void (*)(HfConfig& config, Tally& tally);

void describe_arctic(HfConfig& config, Tally& tally);
void describe_bert(HfConfig& config, Tally& tally);
void describe_dbrx(HfConfig& config, Tally& tally);
void describe_deepseek(HfConfig& config, Tally& tally);
void describe_deepseek_v2(HfConfig& config, Tally& tally);
void describe_deepseek_v3(HfConfig& config, Tally& tally);
void describe_ernie4_5_moe(HfConfig& config, Tally& tally);
void describe_gemma(HfConfig& config, Tally& tally);
void describe_glm4_moe(HfConfig& config, Tally& tally);
void describe_gpt2(HfConfig& config, Tally& tally);
void describe_gpt_oss(HfConfig& config, Tally& tally);
void describe_granitemoe(HfConfig& config, Tally& tally);
void describe_grok1(HfConfig& config, Tally& tally);
void describe_jamba(HfConfig& config, Tally& tally);
void describe_llama(HfConfig& config, Tally& tally);
void describe_llama4_text(HfConfig& config, Tally& tally);
void describe_mistral(HfConfig& config, Tally& tally);
void describe_mixtral(HfConfig& config, Tally& tally);
void describe_olmoe(HfConfig& config, Tally& tally);
void describe_phimoe(HfConfig& config, Tally& tally);
void describe_qwen2(HfConfig& config, Tally& tally);
void describe_qwen2_moe(HfConfig& config, Tally& tally);
void describe_qwen3_moe(HfConfig& config, Tally& tally);
void describe_switch_transformers(HfConfig& config, Tally& tally);
void describe_t5(HfConfig& config, Tally& tally);

}  // namespace moelab::families
