#include "experiments/config/advice.hpp"

#include "core/fields_describe.hpp"
#include "experiments/config/experiment_file.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace moelab {

namespace {

struct ForeignName {
  std::string_view name;  // lower case, with underscores
  std::string_view ours;
};

// Hugging Face configs, Megatron-LM and DeepSpeed arguments, nanoGPT, fairseq, and what papers call them.
constexpr ForeignName kForeignNames[] = {
    {"num_experts_per_tok", "model.ffn.router.top_k"},
    {"num_experts_per_token", "model.ffn.router.top_k"},
    {"moe_router_topk", "model.ffn.router.top_k"},
    {"moe_top_k", "model.ffn.router.top_k"},
    {"moe_topk", "model.ffn.router.top_k"},
    {"num_selected_experts", "model.ffn.router.top_k"},
    {"topk", "model.ffn.router.top_k"},
    {"n_routed_experts", "model.ffn.experts.count"},
    {"num_local_experts", "model.ffn.experts.count"},
    {"num_routed_experts", "model.ffn.experts.count"},
    {"num_experts", "model.ffn.experts.count"},
    {"num_expert", "model.ffn.experts.count"},
    {"n_experts", "model.ffn.experts.count"},
    {"moe_num_experts", "model.ffn.experts.count"},
    {"n_shared_experts", "model.ffn.shared.count"},
    {"num_shared_experts", "model.ffn.shared.count"},
    {"moe_intermediate_size", "model.ffn.experts.d_ff"},
    {"moe_ffn_hidden_size", "model.ffn.experts.d_ff"},
    {"expert_d_ff", "model.ffn.experts.d_ff"},
    {"shared_expert_intermediate_size", "model.ffn.shared.d_ff"},
    {"intermediate_size", "d_ff"},
    {"ffn_hidden_size", "d_ff"},
    {"ffn_dim", "d_ff"},
    {"dim_feedforward", "d_ff"},
    {"hidden_dim", "d_ff"},
    {"n_inner", "d_ff"},
    {"d_ffn", "d_ff"},
    {"capacity_factor", "model.ffn.capacity.factor"},
    {"moe_expert_capacity_factor", "model.ffn.capacity.factor"},
    {"expert_capacity_factor", "model.ffn.capacity.factor"},
    {"eval_capacity_factor", "model.ffn.capacity.eval_factor"},
    {"min_capacity", "model.ffn.capacity.min"},
    {"moe_token_drop_policy", "model.ffn.capacity.drop"},
    {"aux_loss_alpha", "model.ffn.losses.load_balance"},
    {"aux_loss_coef", "model.ffn.losses.load_balance"},
    {"router_aux_loss_coef", "model.ffn.losses.load_balance"},
    {"moe_aux_loss_coeff", "model.ffn.losses.load_balance"},
    {"load_balancing_loss_weight", "model.ffn.losses.load_balance"},
    {"router_z_loss_coef", "model.ffn.losses.z"},
    {"moe_z_loss_coeff", "model.ffn.losses.z"},
    {"z_loss", "model.ffn.losses.z"},
    {"router_jitter_noise", "model.ffn.router.jitter"},
    {"jitter_eps", "model.ffn.router.jitter"},
    {"jitter_noise", "model.ffn.router.jitter"},
    {"norm_topk_prob", "model.ffn.router.normalize"},
    {"routed_scaling_factor", "model.ffn.router.scale"},
    {"scoring_func", "model.ffn.router.score"},
    {"score_function", "model.ffn.router.score"},
    {"moe_router_score_function", "model.ffn.router.score"},
    {"n_group", "model.ffn.router.groups.count"},
    {"topk_group", "model.ffn.router.groups.keep"},
    {"bias_update_speed", "model.ffn.router.expert_bias.rate"},
    {"moe_router_bias_update_rate", "model.ffn.router.expert_bias.rate"},
    {"hidden_act", "activation"},
    {"activation_function", "activation"},
    {"hidden_size", "model.d_model"},
    {"n_embd", "model.d_model"},
    {"embed_dim", "model.d_model"},
    {"dim", "model.d_model"},
    {"n_layer", "model.num_layers"},
    {"n_layers", "model.num_layers"},
    {"num_hidden_layers", "model.num_layers"},
    {"depth", "model.num_layers"},
    {"n_head", "model.num_heads"},
    {"n_heads", "model.num_heads"},
    {"nhead", "model.num_heads"},
    {"num_attention_heads", "model.num_heads"},
    {"n_kv_head", "model.num_kv_heads"},
    {"num_key_value_heads", "model.num_kv_heads"},
    {"num_query_groups", "model.num_kv_heads"},
    {"rms_norm_eps", "model.norm_eps"},
    {"layer_norm_eps", "model.norm_eps"},
    {"layer_norm_epsilon", "model.norm_eps"},
    {"rope_base", "model.rope_theta"},
    {"tie_word_embeddings", "model.tie_embeddings"},
    {"dropout_rate", "dropout"},
    {"hidden_dropout_prob", "model.dropout"},
    {"block_size", "data.seq_len"},
    {"seq_length", "data.seq_len"},
    {"sequence_length", "data.seq_len"},
    {"context_length", "data.seq_len"},
    {"max_position_embeddings", "data.seq_len"},
    {"max_seq_len", "data.seq_len"},
    {"learning_rate", "train.optimizer.lr"},
    {"max_lr", "train.optimizer.lr"},
    {"adam_epsilon", "train.optimizer.eps"},
    {"adam_beta1", "train.optimizer.betas"},
    {"beta1", "train.optimizer.betas"},
    {"beta2", "train.optimizer.betas"},
    {"lr_scheduler_type", "train.schedule.kind"},
    {"lr_scheduler", "train.schedule.kind"},
    {"warmup_steps", "train.schedule.warmup_tokens"},
    {"warmup_iters", "train.schedule.warmup_tokens"},
    {"num_warmup_steps", "train.schedule.warmup_tokens"},
    {"min_lr", "train.schedule.min_lr_ratio"},
    {"max_grad_norm", "train.grad_clip"},
    {"gradient_clip_val", "train.grad_clip"},
    {"clip_grad", "train.grad_clip"},
    {"batch_size", "train.batch_tokens"},
    {"global_batch_size", "train.batch_tokens"},
    {"micro_batch_size", "train.micro_batch_tokens"},
    {"max_iters", "train.max_steps"},
    {"train_iters", "train.max_steps"},
    {"num_train_steps", "train.max_steps"},
    {"iterations", "train.max_steps"},
    {"steps", "train.max_steps"},
    {"eval_interval", "eval.every_tokens"},
    {"log_interval", "log.every_steps"},
    {"dtype", "train.precision"},
    {"seed", "seeds"},
};

std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '-' && out.empty()) continue;
    out += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// Paths of all keys of an experiment file.
const std::vector<std::string>& all_paths() {
  static const std::vector<std::string> paths = field_paths(describe_fields(WholeFile{}));
  return paths;
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::string without_indices(const std::string& path) {
  std::string out;
  bool inside = false;
  for (const char c : path) {
    inside = (inside || c == '[') && c != ']';
    if (!inside && c != ']') out += c;
  }
  return out;
}

// Where a key of this name belongs, if that is one place or a few.
std::string elsewhere(const std::string& path, const std::string& name) {
  std::vector<std::string> places;
  for (const std::string& candidate : all_paths()) {
    const bool overridden = candidate.starts_with("model.layers.");
    if (last_name(candidate) == name && !overridden) places.push_back(candidate);
  }
  const std::string below = path.empty() ? "" : path + ".";
  std::stable_partition(places.begin(), places.end(),
                        [&](const std::string& place) { return place.starts_with(below); });
  if (places.empty() || places.size() > 6) return {};
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(places.size(), 3); ++i) {
    out += fmt::format("{}`{}`", i == 0 ? "" : " or ", places[i]);
  }
  return fmt::format("`{}` stands in {}", name, out);
}

}  // namespace

std::string advise_on_key(const std::string& path, const std::string& key) {
  const std::string name = folded(key);
  const std::string here = without_indices(path);
  for (const ForeignName& foreign : kForeignNames) {
    if (foreign.name != name) continue;
    const std::string ours(foreign.ours);
    const std::string local = here.empty() ? ours : here + "." + last_name(ours);
    const std::vector<std::string>& paths = all_paths();
    // Said shortly where the name belongs right here.
    const bool is_here = !here.empty() && std::find(paths.begin(), paths.end(), local) != paths.end();
    return fmt::format("`{}` is called `{}` here", key, is_here ? last_name(ours) : ours);
  }
  return elsewhere(here, name);
}

}  // namespace moelab
