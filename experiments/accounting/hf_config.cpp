#include "experiments/accounting/hf_config.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

namespace moelab {

namespace {

// Fields of any config that change neither a parameter nor a product: initialisation, dropout, positions
// without a table, masks (sliding windows are not deducted), losses, generation, storage, bookkeeping.
const std::set<std::string, std::less<>>& neutral_everywhere() {
  static const std::set<std::string, std::less<>> keys{"_attn_implementation",
                                                       "_attn_implementation_autoset",
                                                       "_commit_hash",
                                                       "_experts_implementation",
                                                       "_flash_attn_2_enabled",
                                                       "_name_or_path",
                                                       "architectures",
                                                       "attention_dropout",
                                                       "attn_implementation",
                                                       "auto_map",
                                                       "bad_words_ids",
                                                       "begin_suppress_tokens",
                                                       "bos_token_id",
                                                       "chunk_size_feed_forward",
                                                       "classifier_dropout",
                                                       "cls_token_id",
                                                       "decoder_start_token_id",
                                                       "diversity_penalty",
                                                       "do_sample",
                                                       "dtype",
                                                       "early_stopping",
                                                       "encoder_no_repeat_ngram_size",
                                                       "eos_token_id",
                                                       "exponential_decay_length_penalty",
                                                       "finetuning_task",
                                                       "forced_bos_token_id",
                                                       "forced_eos_token_id",
                                                       "gradient_checkpointing",
                                                       "hidden_act",
                                                       "id2label",
                                                       "initializer_factor",
                                                       "initializer_range",
                                                       "is_composition",
                                                       "label2id",
                                                       "layer_norm_eps",
                                                       "layer_norm_epsilon",
                                                       "length_penalty",
                                                       "mask_token_id",
                                                       "max_length",
                                                       "max_position_embeddings",
                                                       "max_window_layers",
                                                       "min_length",
                                                       "model_type",
                                                       "n_special",
                                                       "name_or_path",
                                                       "no_repeat_ngram_size",
                                                       "num_beam_groups",
                                                       "num_beams",
                                                       "num_return_sequences",
                                                       "original_max_position_embeddings",
                                                       "output_attentions",
                                                       "output_hidden_states",
                                                       "output_past",
                                                       "output_router_logits",
                                                       "output_scores",
                                                       "pad_token_id",
                                                       "partial_rotary_factor",
                                                       "predict_special_tokens",
                                                       "prefix",
                                                       "pretraining_tp",
                                                       "problem_type",
                                                       "quantization_config",
                                                       "remove_invalid_values",
                                                       "repetition_penalty",
                                                       "resid_pdrop",
                                                       "return_dict",
                                                       "return_dict_in_generate",
                                                       "rms_norm_eps",
                                                       "rope_parameters",
                                                       "rope_scaling",
                                                       "rope_theta",
                                                       "router_aux_loss_coef",
                                                       "router_jitter_noise",
                                                       "rotary_dim",
                                                       "sep_token_id",
                                                       "sliding_window",
                                                       "suppress_tokens",
                                                       "task_specific_params",
                                                       "temperature",
                                                       "tf_legacy_loss",
                                                       "tokenizer_class",
                                                       "top_k",
                                                       "top_p",
                                                       "torch_dtype",
                                                       "torchscript",
                                                       "transformers_version",
                                                       "typical_p",
                                                       "unk_token_id",
                                                       "use_bfloat16",
                                                       "use_cache",
                                                       "use_sliding_window"};
  return keys;
}

}  // namespace

// Far above any real size, and small enough that the product of two still fits into 64 bits.
constexpr std::int64_t kLargest = 1'000'000'000;

struct HfConfig::Json {
  nlohmann::json values;
  std::set<std::string, std::less<>> used;

  // The field, or null where it is missing or null; marks it as used.
  const nlohmann::json* find(const char* key) {
    used.insert(key);
    const auto found = values.find(key);
    return found == values.end() || found->is_null() ? nullptr : &*found;
  }
};

HfConfig::HfConfig(const std::string& json_text, std::string where) : where_(std::move(where)) {
  json_ = std::make_unique<Json>();
  try {
    // The callback refuses a field that is written twice: which one counts would be a guess.
    std::vector<std::set<std::string>> open;
    json_->values = nlohmann::json::parse(
        json_text, [&](int /*depth*/, nlohmann::json::parse_event_t event, nlohmann::json& value) {
          using Event = nlohmann::json::parse_event_t;
          if (event == Event::object_start) open.emplace_back();
          if (event == Event::object_end) open.pop_back();
          if (event == Event::key && !open.back().insert(value.get<std::string>()).second) {
            error(fmt::format("the field '{}' is written twice", value.get<std::string>()));
          }
          return true;
        });
  } catch (const nlohmann::json::exception& e) {
    error(fmt::format("this is not JSON: {}", e.what()));
  }
  if (!json_->values.is_object()) error("a model config is a JSON object");
}

HfConfig::HfConfig(std::unique_ptr<Json> json, std::string where)
    : json_(std::move(json)), where_(std::move(where)) {}
HfConfig::HfConfig(HfConfig&&) noexcept = default;
HfConfig& HfConfig::operator=(HfConfig&&) noexcept = default;
HfConfig::~HfConfig() = default;

void HfConfig::error(const std::string& message) const {
  throw ConfigError(fmt::format("{}: {}", where_, message));
}

bool HfConfig::has(const char* key) const {
  const auto found = json_->values.find(key);
  return found != json_->values.end() && !found->is_null();
}

bool HfConfig::is_null(const char* key) const {
  const auto found = json_->values.find(key);
  return found != json_->values.end() && found->is_null();
}

std::optional<Index> HfConfig::integer(const char* key) {
  const nlohmann::json* value = json_->find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer() || *value < 0 || *value > kLargest) {
    error(fmt::format("{} = {}: an integer from 0 to {} is wanted", key, value->dump(), kLargest));
  }
  return value->get<Index>();
}

Index HfConfig::integer(const char* key, Index otherwise) { return integer(key).value_or(otherwise); }

Index HfConfig::required_integer(const char* key) {
  const std::optional<Index> value = integer(key);
  if (!value) error(fmt::format("the field '{}' is missing", key));
  return *value;
}

Index HfConfig::signed_integer(const char* key, Index otherwise) {
  const nlohmann::json* value = json_->find(key);
  if (value == nullptr) return otherwise;
  if (value->is_number_integer() && *value == -1) return -1;
  return *integer(key);
}

std::optional<Index> HfConfig::integer_or(const char* key, const char* word) {
  const nlohmann::json* value = json_->find(key);
  if (value != nullptr && *value == word) return std::nullopt;
  return integer(key);
}

bool HfConfig::flag(const char* key, bool otherwise) {
  const nlohmann::json* value = json_->find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) error(fmt::format("{} = {}: true or false is wanted", key, value->dump()));
  return value->get<bool>();
}

std::string HfConfig::text(const char* key, std::string otherwise) {
  const nlohmann::json* value = json_->find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) error(fmt::format("{} = {}: a text is wanted", key, value->dump()));
  return value->get<std::string>();
}

std::vector<Index> HfConfig::integers(const char* key) {
  const nlohmann::json* value = json_->find(key);
  if (value == nullptr) return {};
  const auto good = [](const nlohmann::json& v) { return v.is_number_integer() && v >= 0 && v <= kLargest; };
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), good)) {
    error(fmt::format("{} = {}: a list of integers from 0 to {} is wanted", key, value->dump(), kLargest));
  }
  return value->get<std::vector<Index>>();
}

std::vector<std::string> HfConfig::texts(const char* key) {
  const nlohmann::json* value = json_->find(key);
  if (value == nullptr) return {};
  const auto good = [](const nlohmann::json& v) { return v.is_string(); };
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), good)) {
    error(fmt::format("{} = {}: a list of texts is wanted", key, value->dump()));
  }
  return value->get<std::vector<std::string>>();
}

HfConfig HfConfig::object(const char* key) {
  const nlohmann::json* value = json_->find(key);
  auto inner = std::make_unique<Json>();
  inner->values = nlohmann::json::object();
  if (value != nullptr) {
    if (!value->is_object()) error(fmt::format("{} = {}: an object is wanted", key, value->dump()));
    inner->values = *value;
  }
  return {std::move(inner), fmt::format("{}: {}", where_, key)};
}

void HfConfig::neutral(std::initializer_list<const char*> keys) {
  for (const char* key : keys) json_->used.insert(key);
}

void HfConfig::only(const char* key, bool value) {
  if (flag(key, value) != value) {
    error(fmt::format("{} = {} changes the architecture in a way that is not modelled", key, !value));
  }
}

void HfConfig::finish() const {
  for (const auto& [key, value] : json_->values.items()) {
    if (json_->used.count(key) != 0 || neutral_everywhere().count(key) != 0) continue;
    if (value.is_null() || (value.is_structured() && value.empty())) continue;
    const bool off = value.is_boolean() && !value.get<bool>();
    static const std::set<std::string, std::less<>> off_by_default{
        "add_cross_attention", "is_decoder", "is_encoder_decoder", "tie_encoder_decoder"};
    if (off && off_by_default.count(key) != 0) continue;
    error(
        fmt::format("the field '{}' = {} is not known for this model type. It may change the architecture "
                    "in a way that is not modelled, and a wrong number is worse than none; remove the "
                    "field if it changes neither a weight nor a product",
                    key, value.dump()));
  }
}

}  // namespace moelab
