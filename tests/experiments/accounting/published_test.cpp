// Published architectures against their exact figures, and what a config must not get away with.
#include "experiments/accounting/published.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace moelab;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  REQUIRE(in.good());
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

const std::string kCounts = std::string(MOELAB_TEST_DATA) + "/counts/";

Accounting count(const std::string& json, Index context = 4096) {
  return account_published(json, "config.json", context);
}

// Rows of counts.csv by column name. The last column may hold quoted commas and is not read.
std::vector<std::map<std::string, std::string>> expected_figures() {
  std::stringstream csv(read_file(kCounts + "counts.csv"));
  std::string line;
  std::getline(csv, line);
  std::vector<std::string> columns;
  for (std::stringstream cells(line); std::getline(cells, line, ',');) columns.push_back(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(csv, line)) {
    std::stringstream cells(line);
    std::string cell;
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < 9 && std::getline(cells, cell, ','); ++i) row[columns[i]] = cell;
  }
  return rows;
}

}  // namespace

TEST_CASE("published models come out to the last digit") {
  const auto rows = expected_figures();
  REQUIRE(rows.size() == 20);
  for (const auto& row : rows) {
    const std::string& name = row.at("name");
    INFO(name);
    const Accounting a = count(read_file(kCounts + name + ".json"), 1000);
    CHECK(std::to_string(a.total) == row.at("total"));
    CHECK(std::to_string(a.active_all) == row.at("active_all"));
    CHECK(std::to_string(a.active_without_input_embedding) == row.at("active_without_input_embedding"));
    CHECK(std::to_string(a.active_without_embeddings) == row.at("active_without_embeddings"));
    CHECK(std::to_string(a.experts_routed_total) == row.at("experts_routed_total"));
    CHECK(std::to_string(a.product_flops) == row.at("matmul_flops_forward_per_token"));
    const std::string& attention = row.at("attention_flops_forward_per_token_per_context_token");
    CHECK(a.attention_flops_full.has_value() == !attention.empty());
    if (a.attention_flops_full) CHECK(*a.attention_flops_full == 1000 * std::stoll(attention));
  }
}

// Totals that the publishers or the repositories of the weights state for other members of the families.
TEST_CASE("other published models have their stated totals") {
  const std::pair<const char*, std::int64_t> models[] = {
      {R"({"model_type":"gpt2","n_embd":1600,"n_layer":48,"n_head":25})", 1557611200},
      {R"({"model_type":"bert","hidden_size":1024,"num_hidden_layers":24,"num_attention_heads":16,
           "intermediate_size":4096})",
       335141888},
      {R"({"model_type":"t5"})", 60506624},
      {R"({"model_type":"t5","d_model":768,"d_ff":2048,"num_heads":12,"num_layers":12,
           "feed_forward_proj":"gated-gelu","tie_word_embeddings":false})",
       247577856},
      {R"({"model_type":"gemma","hidden_size":2048,"num_hidden_layers":18,"num_attention_heads":8,
           "num_key_value_heads":1,"intermediate_size":16384})",
       2506172416},
      {R"({"model_type":"llama","hidden_size":2048,"num_hidden_layers":16,"num_attention_heads":32,
           "num_key_value_heads":8,"intermediate_size":8192,"vocab_size":128256,"tie_word_embeddings":true})",
       1235814400},
      {R"({"model_type":"qwen2","hidden_size":3584,"num_hidden_layers":28,"num_attention_heads":28,
           "num_key_value_heads":4,"intermediate_size":18944,"vocab_size":152064})",
       7615616512},
      {R"({"model_type":"qwen3_moe","hidden_size":4096,"num_hidden_layers":94,"num_attention_heads":64,
           "head_dim":128,"moe_intermediate_size":1536})",
       235093634560},
      {R"({"model_type":"mixtral","hidden_size":6144,"num_hidden_layers":56,"num_attention_heads":48,
           "intermediate_size":16384})",
       140620634112},
      {R"({"model_type":"gpt_oss"})", 116829156672},
      {R"({"model_type":"jamba"})", 51570323328},
      {R"({"model_type":"dbrx","d_model":6144,"n_heads":48,"n_layers":40,"vocab_size":100352,
           "attn_config":{"kv_n_heads":8,"clip_qkv":8},
           "ffn_config":{"ffn_hidden_size":10752,"moe_num_experts":16,"moe_top_k":4}})",
       131596523520},
      {R"({"model_type":"deepseek_v2","hidden_size":5120,"intermediate_size":12288,"num_hidden_layers":60,
           "moe_intermediate_size":1536,"num_attention_heads":128,"n_shared_experts":2,"n_routed_experts":160,
           "num_experts_per_tok":6,"first_k_dense_replace":1})",
       235741434880},
      {R"({"model_type":"kimi_k2","vocab_size":163840,"num_attention_heads":64,"n_routed_experts":384,
           "first_k_dense_replace":1})",
       1026408232448},
      {R"({"model_type":"ernie4_5_moe"})", 21825437888},
  };
  for (const auto& [json, total] : models) {
    INFO(json);
    CHECK(count(json).total == total);
  }
}

// Arctic by hand: 35 layers, d = 7168, 56 heads, 8 key-value heads of 128, 128 experts of 4,864, and the
// dense residual of width d. Grok-1 by hand: 64 layers, 8 experts of 32,768, four norms a layer, a tied
// table.
TEST_CASE("Arctic and Grok-1 by hand") {
  const std::int64_t d = 7168, e = 128;
  const std::int64_t attention = 2 * d * d + 2 * d * 1024;
  const std::int64_t layer = attention + e * d + e * 3 * d * 4864 + 3 * d * d + 3 * d;
  CHECK(count(R"({"model_type":"arctic","hidden_size":7168,"num_hidden_layers":35,"num_attention_heads":56,
                  "num_key_value_heads":8,"intermediate_size":4864,"num_local_experts":128,
                  "num_experts_per_tok":2,"moe_layer_frequency":1,"parallel_attn_mlp_res":true,
                  "use_residual":true})")
            .total == 35 * layer + 2 * 32000 * d + d);
  const std::int64_t g = 6144;
  const std::int64_t block = 2 * g * g + 2 * g * 1024 + 8 * g + 8 * 3 * g * 32768 + 4 * g;
  CHECK(count(R"({"model_type":"grok-1","vocab_size":131072,"hidden_size":6144,"num_hidden_layers":64,
                  "num_attention_heads":48,"num_key_value_heads":8,"intermediate_size":32768})")
            .total == 64 * block + 131072 * g + g);
}

// "FLOPs per sequence" of papers, from the same integers.
TEST_CASE("FLOPs that papers state") {
  const Accounting gpt2 = count(read_file(kCounts + "gpt2.json"), 1024);
  // Biases are no products, so the bias-free GPT-2 costs the same.
  CHECK(1024 * gpt2.forward_flops() == 291'648'307'200);
  // PaLM's (6 N + 12 L H Q T) T with N = parameters of the bias-free GPT-2 without positions.
  std::int64_t n = gpt2.product_flops / 2 + 25 * 768;
  CHECK(n == 124'337'664 - 786'432);
  CHECK((6 * n + 3 * *gpt2.attention_flops_full) * 1024 == 875'062'886'400);
  // DeepSeek-V3 in training at 4,096 tokens with causal attention: 250 GFLOP a token.
  const Accounting v3 = count(read_file(kCounts + "deepseek-v3.json"), 4096);
  CHECK_THAT(static_cast<double>(v3.training_flops_causal()), WithinRel(250e9, 0.002));
}

// DeepSeekMoE's table of FLOPs per 4K tokens takes an FFN as 8/3 d wide (and an expert as a quarter of it),
// as the formula 72 B S L d^2 (1 + S/6d + V/12Ld) does; 8 d / 3 is no integer, so the two widths beside it
// are weighed.
TEST_CASE("FLOPs per 4K tokens of the DeepSeekMoE paper") {
  const auto flops_of = [](const char* format, std::int64_t width) {
    std::string json = format;
    json.replace(json.find("WIDTH"), 5, std::to_string(width));
    const Accounting a = count(json, 4096);
    std::int64_t router = 0;
    for (const ModuleRow& row : a.modules) router += row.group == "router" ? row.product_flops : 0;
    return static_cast<double>(a.training_flops() - 3 * router) * 4096;
  };
  const auto at_third = [&](const char* format, std::int64_t three_widths) {
    const std::int64_t below = three_widths / 3;
    const double share = static_cast<double>(three_widths % 3) / 3;
    return (1 - share) * flops_of(format, below) + share * flops_of(format, below + 1);
  };
  CHECK_THAT(at_third(R"({"model_type":"llama","intermediate_size":WIDTH})", 8 * 4096),
             WithinAbs(187.9e12, 0.05e12));
  CHECK_THAT(at_third(R"({"model_type":"llama","vocab_size":102400,"num_hidden_layers":30,
                          "intermediate_size":WIDTH})",
                      8 * 4096),
             WithinAbs(183.5e12, 0.05e12));
  CHECK_THAT(at_third(R"({"model_type":"deepseek","hidden_size":2048,"num_hidden_layers":28,
                          "num_attention_heads":16,"num_key_value_heads":16,"intermediate_size":10944,
                          "moe_intermediate_size":WIDTH,"n_routed_experts":64,"n_shared_experts":2,
                          "num_experts_per_tok":6,"first_k_dense_replace":1})",
                      2 * 2048),
             WithinAbs(74.4e12, 0.05e12));
}

TEST_CASE("an unknown model type or field is an error that names it") {
  CHECK_THROWS_WITH(count(R"({"model_type":"foo"})"), Contains("model_type 'foo' is not known"));
  CHECK_THROWS_WITH(count(R"({"hidden_size":8})"), Contains("'model_type' is missing"));
  CHECK_THROWS_WITH(count(R"({"model_type":"llama","adapter_size":8})"), Contains("adapter_size"));
  CHECK_THROWS_WITH(count(R"({"model_type":"llama","add_cross_attention":true})"),
                    Contains("add_cross_attention"));
  CHECK_THROWS_WITH(
      count(R"({"model_type":"qwen2","num_hidden_layers":1,"layer_types":["linear_attention"]})"),
      Contains("linear_attention"));
  CHECK_THROWS_WITH(count(R"({"model_type":"gpt_oss","layer_types":["full_attention"]})"),
                    Contains("1 entries for 36 layers"));
  CHECK_THROWS_WITH(count(R"({"model_type":"mixtral","num_experts_per_tok":9})"),
                    Contains("9 experts a token of 8"));
  CHECK_THROWS_WITH(count(R"({"model_type":"llama","hidden_size":4096.5})"),
                    Contains("hidden_size = 4096.5"));
  CHECK_THROWS_WITH(count(R"({"model_type":"llama","hidden_size":-1})"), Contains("hidden_size = -1"));
  CHECK_THROWS_WITH(count(R"({"model_type":"llama","hidden_size":100,"num_attention_heads":3})"),
                    Contains("not a multiple"));
  CHECK_THROWS_WITH(count(R"({"model_type":"llama","vocab_size":1,"vocab_size":2})"),
                    Contains("written twice"));
  CHECK_THROWS_WITH(count(R"({"model_type":"bert","position_embedding_type":"relative_key"})"),
                    Contains("position_embedding_type"));
  CHECK_THROWS_WITH(count("[1]"), Contains("JSON object"));
  CHECK_THROWS_WITH(count("{"), Contains("not JSON"));
  CHECK_THROWS_AS(count(R"({"model_type":"dbrx","ffn_config":{"adapter":4}})"), ConfigError);
}

TEST_CASE("fields that change no count are accepted") {
  const std::int64_t total = count(R"({"model_type":"mixtral"})").total;
  CHECK(
      count(
          R"({"model_type":"mixtral","quantization_config":{"bits":4},"rope_theta":1e6,"torch_dtype":"bfloat16",
                  "architectures":["MixtralForCausalLM"],"sliding_window":null,"some_feature":null})")
          .total == total);
  CHECK(count(R"({"model_type":"mixtral","num_key_value_heads":null})").total > total);
}

TEST_CASE("Counts that do not fit into 64 bits are told, not wrapped around", "[accounting]") {
  const auto llama = [](const std::string& hidden, const std::string& layers) {
    return R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": )" + hidden +
           R"(, "intermediate_size": 1000000000, "num_hidden_layers": )" + layers +
           R"(, "num_attention_heads": 1, "max_position_embeddings": 8})";
  };
  CHECK_THROWS_WITH(count(llama("1000000000", "32")), Contains("does not fit into 64 bits"));
  CHECK_THROWS_WITH(count(llama("1000000000", "1")), Contains("does not fit into 64 bits"));  // 16 bytes each
  // A d x d matrix each for queries, keys, values and output, d_ff d three times, and both tables.
  CHECK(count(llama("10000", "1")).total ==
        4 * 10'000LL * 10'000 + 3 * 10'000LL * 1'000'000'000 + 2 * 32'000LL * 10'000 + 3 * 10'000);
  CHECK_THROWS_WITH(count(llama("10000", "1"), 9'000'000'000'000'000'000),
                    Contains("does not fit into 64 bits"));
}
