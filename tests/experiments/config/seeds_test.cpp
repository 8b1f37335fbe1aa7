// The classic FFN forms of configs/seeds, counted by hand.
#include "experiments/accounting/accounting.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/models/make_model.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <cstdint>
#include <string>

using namespace moelab;

namespace {

constexpr std::int64_t kBytes = 256;

Accounting count(const std::string& seed, const std::string& variant) {
  const Experiment experiment =
      load_experiment(std::string(MOELAB_SOURCE_DIR "/configs/seeds/") + seed + ".yaml", {});
  for (const Run& run : experiment.runs) {
    if (run.variant != variant) continue;
    const DataConfig& data = run.config.data;
    const bool is_text = data.kind == "text";
    const DataShape shape = {.seq_len = is_text ? data.text.seq_len : data.synthetic.seq_len,
                             .vocab_size = is_text ? kBytes : 0,
                             .num_features = is_text ? 0 : data.synthetic.num_features,
                             .num_targets = is_text ? 0 : data.synthetic.num_targets};
    return account(*make_model(run.config.model, shape), shape.seq_len);
  }
  FAIL("no variant " << variant);
  return {};
}

std::int64_t params(const Accounting& accounting, const std::string& group) {
  for (const ModuleRow& row : accounting.modules) {
    if (row.group == group) return row.params_total;
  }
  return 0;
}

std::int64_t linear(std::int64_t out, std::int64_t in) { return out * in + out; }

// Two matrices with biases.
std::int64_t ffn(std::int64_t d_model, std::int64_t d_ff) {
  return linear(d_ff, d_model) + linear(d_model, d_ff);
}

}  // namespace

TEST_CASE("The position-wise FFN 512 -> 64 -> 512 has 66,112 parameters") {
  CHECK(count("positionwise_ffn", "dense").total == 66'112);
  CHECK(ffn(512, 64) == 66'112);
  const Accounting moe = count("positionwise_ffn", "moe_e8k2");
  CHECK(params(moe, "experts") == 8 * ffn(512, 32));
  CHECK(params(moe, "router") == 8 * 512);
  CHECK(moe.total == 8 * ffn(512, 32) + 8 * 512);
  CHECK(moe.active_all == 2 * ffn(512, 32) + 8 * 512);
}

TEST_CASE("The GPT FFN has 4,722,432 parameters") {
  CHECK(count("gpt_ffn", "dense").total == 4'722'432);
  CHECK(count("gpt_ffn", "moe_e8k2").total == 8 * ffn(768, 1536) + 8 * 768);
}

TEST_CASE("The SwiGLU FFN of 512 and 1376 has 2,113,536 parameters") {
  CHECK(count("swiglu_ffn", "dense").total == 2'113'536);
  CHECK(count("swiglu_ffn", "moe_e8k2").total == 8 * (3 * 512 * 688) + 8 * 512);
}

TEST_CASE("The block of the original Transformer has 3,152,384 parameters") {
  const Accounting dense = count("post_norm_block", "dense");
  CHECK(params(dense, "attention") == 4 * linear(512, 512));
  CHECK(params(dense, "dense_ffn") == ffn(512, 2048));
  CHECK(params(dense, "norm") == 2 * (2 * 512));
  CHECK(params(dense, "attention") + params(dense, "dense_ffn") + params(dense, "norm") == 3'152'384);
  CHECK(dense.total == 3'152'384 + kBytes * 512);
  const Accounting moe = count("post_norm_block", "moe_e8k2");
  CHECK(moe.total == dense.total - ffn(512, 2048) + 8 * ffn(512, 1024) + 8 * 512);
}

TEST_CASE("The FFNs of the small encoder hold 68.3 % of a layer") {
  const Accounting dense = count("encoder_tutorial", "dense");
  const std::int64_t attention = params(dense, "attention") / 2;
  const std::int64_t ffns = params(dense, "dense_ffn") / 2;
  CHECK(attention == 256);
  CHECK(ffns == 552);
  CHECK(std::abs(static_cast<double>(ffns) / static_cast<double>(attention + ffns) - 0.683) < 5e-4);
  const Accounting moe = count("encoder_tutorial", "moe_e4k2");
  CHECK(params(moe, "experts") == 2 * 4 * ffn(8, 16));
  CHECK(params(moe, "router") == 2 * 4 * 8);
}
