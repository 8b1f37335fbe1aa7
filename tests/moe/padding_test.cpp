// Padding leaves no trace: a layer gives the real rows of a padded batch what it gives the same rows alone,
// in outputs, gradients, choices, losses and statistics, whatever the rows of padding hold.
#include "moe/padding.hpp"

#include "core/error.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/reduce.hpp"
#include "moe/capacity.hpp"
#include "moe/registry.hpp"
#include "moe/statistics.hpp"
#include "tests/moe/route.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/ffn_yaml.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/kind_examples.hpp"

#include <limits>

using namespace moelab;
using namespace moelab::moe;

namespace {

constexpr Index kWidth = 6;
constexpr double kTolerance = 1e-11;  // products of other heights add up in another order
constexpr Scalar kNaN = std::numeric_limits<Scalar>::quiet_NaN();

// Rows of sequences of one length, each with as many real ones.
struct Layout {
  Index num_sequences;
  std::vector<std::uint8_t> real;
  Index seq_len() const { return static_cast<Index>(real.size()) / num_sequences; }
  std::vector<Index> rows() const {
    return real_tokens({.num_sequences = num_sequences, .seq_len = seq_len(), .ids = {}, .is_real = real});
  }
};

// Before, between and behind the tokens.
const Layout kAnywhere{2, {0, 1, 1, 0, 1, 1, 1, /**/ 1, 0, 1, 1, 1, 1, 0}};
// Behind them: random numbers, which are drawn by row, stay those of the batch without padding.
const Layout kBehind{1, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0}};

struct Outcome {
  Matrix y, dx, dw;  // of the real rows; of all parameters
  double padding_gradient = 0;
  std::vector<std::pair<std::string, double>> losses;
  RoutingRecord record;
  LayerStatistics statistics;
};

Matrix picked(In m, const std::vector<Index>& rows) {
  Matrix result(static_cast<Index>(rows.size()), m.cols());
  for (std::size_t i = 0; i < rows.size(); ++i) result.row(static_cast<Index>(i)) = m.row(rows[i]);
  return result;
}

// `rows`: those of the tokens among the rows of x and of what is sent back.
Outcome outcome_of(const std::string& text, const Matrix& x, const Matrix& dy, const TokenBatch& batch,
                   const std::vector<Index>& rows, bool training) {
  const test::Ffn ffn(text, kWidth);
  test::randomise_parameters(*ffn.block);
  ForwardContext context = test::training_context();
  context.training = training;
  const Variable leaf(x, true);
  const FfnOutput output = ffn.block->forward(leaf, batch, context);
  Outcome outcome;
  outcome.y = picked(output.y.value(), rows);
  Variable objective = ops::sum(ops::multiply(output.y, Variable(dy)));
  for (const AuxiliaryLoss& loss : output.losses) {
    outcome.losses.emplace_back(loss.name, loss.value.item());
    objective = ops::add(objective, loss.value);
  }
  backward(objective);
  outcome.dx = picked(leaf.grad(), rows);
  Matrix all = leaf.grad();
  for (const Index t : rows) all.row(t).setZero();
  outcome.padding_gradient = all.norm();
  outcome.dw = ffn.store->grads();
  if (!output.routing) return outcome;
  outcome.record = *output.routing;
  outcome.statistics = layer_statistics(std::vector<RoutingRecord>{*output.routing});
  return outcome;
}

void check_same(const Matrix& a, const Matrix& b, const char* what) {
  INFO(what);
  REQUIRE(a.rows() == b.rows());
  REQUIRE(a.allFinite());
  CHECK((a - b).norm() <= kTolerance * (1 + b.norm()));
}

void check_same(double a, double b, const char* what) {
  INFO(what);
  CHECK(((std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= kTolerance * (1 + std::abs(b))));
}

void check_same(const LayerStatistics& a, const LayerStatistics& b) {
  CHECK(a.expert_tokens == b.expert_tokens);
  CHECK(a.expert_dropped == b.expert_dropped);
  REQUIRE(a.probability_mean.size() == b.probability_mean.size());
  for (std::size_t e = 0; e < a.probability_mean.size(); ++e)
    check_same(a.probability_mean[e], b.probability_mean[e], "probability_mean");
  check_same(a.load_cv, b.load_cv, "load_cv");
  check_same(a.load_entropy, b.load_entropy, "load_entropy");
  check_same(a.top1_weight, b.top1_weight, "top1_weight");
  check_same(a.fraction_dropped, b.fraction_dropped, "fraction_dropped");
  check_same(a.fraction_without_expert, b.fraction_without_expert, "fraction_without_expert");
  check_same(a.router_entropy, b.router_entropy, "router_entropy");
  check_same(a.margin, b.margin, "margin");
  check_same(a.active_compute_ratio, b.active_compute_ratio, "active_compute_ratio");
}

void check_same(const Outcome& padded, const Outcome& plain) {
  check_same(padded.y, plain.y, "y");
  check_same(padded.dx, plain.dx, "dx");
  check_same(padded.dw, plain.dw, "gradients of parameters");
  CHECK(padded.padding_gradient == 0);
  REQUIRE(padded.losses.size() == plain.losses.size());
  for (std::size_t i = 0; i < plain.losses.size(); ++i)
    check_same(padded.losses[i].second, plain.losses[i].second, plain.losses[i].first.c_str());
  const RoutingRecord& a = padded.record;
  const RoutingRecord& b = plain.record;
  CHECK(a.num_tokens == b.num_tokens);
  CHECK(a.expert_of == b.expert_of);
  CHECK(a.kept == b.kept);
  CHECK(a.capacity == b.capacity);
  CHECK(a.active_flops == b.active_flops);
  CHECK(a.full_flops == b.full_flops);
  if (plain.record.num_experts > 0) check_same(padded.statistics, plain.statistics);
}

void check_layer(const std::string& text, const Layout& layout, bool training) {
  INFO(text << (layout.num_sequences == 1 ? "behind" : "anywhere") << (training ? ", training" : ""));
  const std::vector<Index> rows = layout.rows();
  const auto n = static_cast<Index>(rows.size());
  const Index size = layout.num_sequences * layout.seq_len();
  const Matrix x = test::random_matrix(n, kWidth, 21);
  const Matrix dy = test::random_matrix(n, kWidth, 22);
  std::vector<std::int32_t> ids, padded_ids(static_cast<std::size_t>(size), 3);
  for (Index i = 0; i < n; ++i) ids.push_back(static_cast<std::int32_t>(i * 7 % 11));
  for (std::size_t i = 0; i < rows.size(); ++i) padded_ids[static_cast<std::size_t>(rows[i])] = ids[i];
  std::vector<Index> all;
  for (Index i = 0; i < n; ++i) all.push_back(i);
  const Outcome plain =
      outcome_of(text, x, dy, {layout.num_sequences, n / layout.num_sequences, ids, {}}, all, training);
  for (const Scalar filling : {Scalar{0.5}, kNaN}) {
    INFO("padding holds " << filling);
    Matrix padded_x = Matrix::Constant(size, kWidth, filling);
    Matrix padded_dy = Matrix::Zero(size, kWidth);  // as a loss that leaves padding out sends back
    for (Index i = 0; i < n; ++i) {
      padded_x.row(rows[static_cast<std::size_t>(i)]) = x.row(i);
      padded_dy.row(rows[static_cast<std::size_t>(i)]) = dy.row(i);
    }
    const TokenBatch batch{layout.num_sequences, layout.seq_len(), padded_ids, layout.real};
    check_same(outcome_of(text, padded_x, padded_dy, batch, rows, training), plain);
  }
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Whether what a row gets depends on its place among the rows.
bool goes_by_row(const std::string& text, bool training) {
  return contains(text, "kind: random") || contains(text, "kind: round_robin") ||
         (training && (contains(text, "jitter") || contains(text, "noisy") || contains(text, "dropout")));
}

void check_everywhere(const std::string& text) {
  for (const bool training : {true, false}) {
    check_layer(text, kBehind, training);
    if (!goes_by_row(text, training)) check_layer(text, kAnywhere, training);
  }
}

}  // namespace

TEST_CASE("every router and every drop order: padding leaves no trace", "[moe][padding]") {
  int num_dropping = 0;
  for (const std::string& kind : router_kinds().names()) {
    for (const std::string& text : test::router_examples().at(kind)) {
      check_everywhere(text);
      if (contains(text, "capacity:")) continue;
      for (const char* drop : {"position", "probability", "batch_priority", "random"}) {
        const std::string dropping = text + fmt::format("capacity: {{factor: 0.6, drop: {}}}\n", drop);
        if (test::ffn_config_errors(dropping) != "") continue;
        check_everywhere(dropping);
        ++num_dropping;
      }
    }
  }
  CHECK(num_dropping > 40);
}

TEST_CASE("every expert and the dense FFN: padding leaves no trace", "[moe][padding]") {
  for (const auto& [kind, texts] : test::expert_examples()) {
    for (const std::string& text : texts) check_everywhere(text);
  }
  check_everywhere("kind: dense\nactivation: swiglu\nd_ff: 5\nbias: true\n");
}

// Two tokens that both prefer expert 0: balanced, the one that prefers it less goes to expert 1. A hundred
// rows of padding would have the two sums of the scaling to themselves, and both would stay.
TEST_CASE("sinkhorn balances the tokens among themselves", "[moe][padding]") {
  Matrix z = Matrix::Zero(102, 2);
  z.row(50) << 2, 0;
  z.row(101) << 1, 0;
  std::vector<std::uint8_t> real(102, 0);
  real[50] = real[101] = 1;
  const char* router = "kind: sinkhorn, top_k: 1, normalize: false";
  CHECK(route(router, z, {1, 102, {}, real}).choices.expert_of == std::vector<std::int32_t>{0, 1});
  CHECK(route(router, z, {1, 102, {}, real}, false).choices.expert_of == std::vector<std::int32_t>{0, 0});
}

TEST_CASE("by batch priority, what stands in padding changes the place of no token", "[moe][padding]") {
  // Tokens 0, 1 and 3 want the same expert; token 2 is padding. No sorted order holds a NaN.
  const Choices choices{{0, 1, 2, 2, 3}, {0, 0, 0}};
  const random::Stream stream(1, "drop");
  for (const Scalar padding : {kNaN, Scalar{0.9}, -std::numeric_limits<Scalar>::infinity()}) {
    CHECK(drop_choices("batch_priority", choices, Matrix::Ones(3, 1),
                       {Scalar{0.5}, Scalar{0.3}, padding, Scalar{0.4}}, 1, 2,
                       stream) == std::vector<std::uint8_t>{1, 0, 1});
  }
}

TEST_CASE("without padding the rows are passed on as they are, not copied", "[moe][padding]") {
  const Variable x(test::random_matrix(3, 2, 1), true);
  const std::vector<std::uint8_t> real{1, 1, 1}, padded{1, 0, 1};
  CHECK(zero_padding(x, {1, 3, {}, {}}).value().data() == x.value().data());
  CHECK(zero_padding(x, {1, 3, {}, real}).value().data() == x.value().data());
  const Matrix zeroed = zero_padding(x, {1, 3, {}, padded}).value();
  CHECK(zeroed.row(1).isZero(0));
  CHECK(zeroed.row(2) == x.value().row(2));
}
