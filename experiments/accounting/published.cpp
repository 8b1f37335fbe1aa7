#include "experiments/accounting/published.hpp"

#include "core/error.hpp"
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/hf_config.hpp"

#include <algorithm>
#include <utility>

namespace moelab {

namespace {

struct Family {
  const char* model_type;
  families::Describe describe;
};

constexpr Family kFamilies[] = {
    {"arctic", families::describe_arctic},
    {"bert", families::describe_bert},
    {"dbrx", families::describe_dbrx},
    {"deepseek", families::describe_deepseek},
    {"deepseek_v2", families::describe_deepseek_v2},
    {"deepseek_v3", families::describe_deepseek_v3},
    {"ernie4_5_moe", families::describe_ernie4_5_moe},
    {"gemma", families::describe_gemma},
    {"glm4_moe", families::describe_glm4_moe},
    {"gpt2", families::describe_gpt2},
    {"gpt_oss", families::describe_gpt_oss},
    {"granitemoe", families::describe_granitemoe},
    {"grok-1", families::describe_grok1},
    {"jamba", families::describe_jamba},
    {"kimi_k2", families::describe_deepseek_v3},
    {"llama", families::describe_llama},
    {"llama4_text", families::describe_llama4_text},
    {"mistral", families::describe_mistral},
    {"mixtral", families::describe_mixtral},
    {"olmoe", families::describe_olmoe},
    {"phimoe", families::describe_phimoe},
    {"qwen2", families::describe_qwen2},
    {"qwen2_moe", families::describe_qwen2_moe},
    {"qwen3_moe", families::describe_qwen3_moe},
    {"switch_transformers", families::describe_switch_transformers},
    {"t5", families::describe_t5},
};

// A multimodal Llama 4 keeps the language model in text_config; the vision tower is not counted.
HfConfig main_model(HfConfig outer, std::string& model_type, Tally& tally) {
  if (model_type != "llama4") return outer;
  if (!outer.has("text_config")) outer.error("model_type llama4 without a text_config");
  HfConfig text = outer.object("text_config");
  outer.neutral(
      {"vision_config", "boi_token_index", "eoi_token_index", "image_token_index", "tie_word_embeddings"});
  outer.finish();
  model_type = text.text("model_type", "llama4_text");
  if (model_type != "llama4_text") text.error("the text_config of llama4 must be llama4_text");
  tally.note("the text model; a vision tower is not counted");
  return text;
}

}  // namespace

std::vector<std::string> published_model_types() {
  std::vector<std::string> types{"llama4"};
  for (const Family& f : kFamilies) types.emplace_back(f.model_type);
  std::sort(types.begin(), types.end());
  return types;
}

Accounting account_published(const std::string& json_text, const std::string& where, Index context) {
  Tally tally(context);
  HfConfig outer(json_text, where);
  std::string model_type = outer.text("model_type", "");
  if (model_type.empty()) outer.error("the field 'model_type' is missing");
  HfConfig config = main_model(std::move(outer), model_type, tally);
  const auto* family = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                    [&](const Family& f) { return f.model_type == model_type; });
  if (family == std::end(kFamilies)) {
    config.error(fmt::format("model_type '{}' is not known; known: {}", model_type,
                             fmt::join(published_model_types(), ", ")));
  }
  family->describe(config, tally);
  config.finish();
  return tally.finish();
}

bool is_published_config(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

}  // namespace moelab
