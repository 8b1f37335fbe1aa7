// What holds for every registered router that has the field or the part in question, found through what the
// kinds declare.
#include "core/error.hpp"
#include "moe/registry.hpp"
#include "tests/moe/minimal_block.hpp"
#include "tests/moe/route.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

#include <algorithm>
#include <limits>

using namespace moelab;
using namespace moelab::moe;

namespace {

constexpr Index kWidth = 6, kExperts = 4;

// The forms of `router:` with a field of this name.
std::vector<Description::Form> routers_with(const std::string& field) {
  std::vector<Description::Form> found;
  const Description d = describe_fields(MoeConfig{});
  for (const Description::Form& form : field_of(d, "router").forms) {
    if (std::any_of(form.fields.begin(), form.fields.end(),
                    [&](const Description::Field& f) { return f.name == field; })) {
      found.push_back(form);
    }
  }
  return found;
}

std::vector<std::string> score_functions(const std::string& kind) {
  for (const Description::Form& form : routers_with("score")) {
    if (form.kind != kind) continue;
    for (const Description::Field& field : form.fields) {
      if (field.name == "score") return field.description.info.choices;
    }
  }
  return {};
}

// router_block() with more options of the router.
std::string with_options(const std::string& kind, Index top_k, const std::string& options) {
  std::string text = router_block(kind, kExperts, top_k);
  return text.insert(text.rfind('}'), options);
}

void check_not_finite(const std::string& text, Scalar value) {
  INFO(text << value);
  const test::Ffn ffn(text, kWidth, 1, {.d_model = kWidth, .layer = 5, .num_layers = 6});
  const TokenBatch batch = test::batch_of(6);
  const Matrix x = test::random_matrix(6, kWidth, 5);
  for (const bool training : {true, false}) {
    ForwardContext context = test::training_context();
    context.training = training;
    for (const Index expert : {0, 3}) {
      Matrix offset = Matrix::Zero(6, kExperts);
      CHECK_NOTHROW(route(ffn, x, batch, context, {.noise = nullptr, .logits_offset = Variable(offset)}));
      offset(3, expert) = value;
      const RouterProbe probe{.noise = nullptr, .logits_offset = Variable(offset)};
      CHECK_THROWS_AS(route(ffn, x, batch, context, probe), NonFiniteError);
      CHECK_THROWS_WITH(route(ffn, x, batch, context, probe), Contains("layer 5") && Contains("token 3") &&
                                                                  Contains(fmt::format("expert {}", expert)));
    }
  }
}

}  // namespace

TEST_CASE("a logit that is NaN or infinite, up or down, stops every router with every score function",
          "[moe][router]") {
  constexpr Scalar infinity = std::numeric_limits<Scalar>::infinity();
  int num_checked = 0;
  for (const std::string& kind : router_kinds().names()) {
    const test::Ffn ffn(router_block(kind, kExperts, 2), kWidth);
    if (parameters(ffn.moe().router()).empty()) continue;  // it has no logits
    std::vector<std::string> texts{router_block(kind, kExperts, 2)};
    for (const std::string& score : score_functions(kind)) {
      texts.push_back(with_options(kind, 2, ", score: " + score));
      if (test::ffn_config_errors(texts.back()) != "") texts.pop_back();
    }
    for (const std::string& text : texts) {
      for (const Scalar value : {infinity, -infinity, std::numeric_limits<Scalar>::quiet_NaN()}) {
        check_not_finite(text, value);
        ++num_checked;
      }
    }
  }
  CHECK(num_checked >= 3 * 20);
}

TEST_CASE("no expert, and more experts than there are, are errors of every router that is told how many",
          "[moe][config]") {
  const auto refuse = [](const std::string& kind, const std::string& options) {
    INFO(kind << ": " << options);
    const std::string router = "kind: " + kind + options;
    return test::ffn_config_errors(block(kExperts, router));
  };
  std::size_t num_kinds = 0;
  for (const Description::Form& form : routers_with("top_k")) {
    ++num_kinds;
    const bool has_normalize = std::any_of(form.fields.begin(), form.fields.end(),
                                           [](const auto& f) { return f.name == "normalize"; });
    const std::string rest = has_normalize ? ", normalize: false, top_k: " : ", top_k: ";
    INFO(form.kind);
    CHECK(refuse(form.kind, rest + "1") == "");
    CHECK(refuse(form.kind, rest + "4") == "");
    CHECK_THAT(refuse(form.kind, rest + "5"),
               Contains("top_k") && Contains("5 is more than the number of experts"));
    for (const char* few : {"0", "-1"})
      CHECK_THAT(refuse(form.kind, rest + few), Contains("top_k: ") && Contains("error"));
  }
  CHECK(num_kinds >= 9);
  REQUIRE(routers_with("max_k").size() == 1);
  const std::string rest = ", p: 0.7, normalize: false, max_k: ";
  CHECK(refuse("top_p", rest + "4") == "");
  CHECK_THAT(refuse("top_p", rest + "5"),
             Contains("max_k") && Contains("5 is more than the number of experts"));
  for (const char* few : {"0", "-1"})
    CHECK_THAT(refuse("top_p", rest + few), Contains("max_k: ") && Contains("error"));
}

TEST_CASE("every router with an expert bias moves it after a step, and chooses the same with it centred",
          "[moe][router]") {
  const std::vector<std::int64_t> counts{6, 1, 1, 0};
  const TokenBatch batch = test::batch_of(200);
  const Matrix x = test::random_matrix(200, kWidth, 3);
  const auto forms = routers_with("expert_bias");
  CHECK(forms.size() >= 3);
  for (const Description::Form& form : forms) {
    INFO(form.kind);
    const auto make = [&](bool center) {
      const char* options = ", score: sigmoid, normalize: false, expert_bias: {{rate: 0.001, center: {}}}";
      return test::Ffn(with_options(form.kind, 2, fmt::format(fmt::runtime(options), center)), kWidth);
    };
    const test::Ffn plain = make(false), centred = make(true);
    const auto bias_of = [](const test::Ffn& ffn) -> Matrix& {
      const auto all = states(*ffn.block);
      REQUIRE(all.size() == 1);
      CHECK(all[0].path == "router.expert_bias");
      return *all[0].state;
    };
    const auto choose = [&](const test::Ffn& ffn) {
      return route(ffn, x, batch, test::training_context()).choices.expert_of;
    };
    const std::vector<std::int32_t> before = choose(plain);
    CHECK(choose(centred) == before);
    for (const test::Ffn* ffn : {&plain, &centred}) ffn->block->after_step(counts, 4);
    CHECK((bias_of(plain) - Matrix{{-1e-3, 1e-3, 1e-3, 1e-3}}).norm() < 1e-15);
    CHECK((bias_of(centred) - Matrix{{-1.5e-3, 0.5e-3, 0.5e-3, 0.5e-3}}).norm() < 1e-15);
    // As after many steps with such loads.
    for (int step = 1; step < 100; ++step) {
      for (const test::Ffn* ffn : {&plain, &centred}) ffn->block->after_step(counts, 4);
    }
    const std::vector<std::int32_t> after = choose(plain);
    CHECK(after != before);
    CHECK(choose(centred) == after);
  }
}

// Expert 0 takes tokens 0 and 1 (0 to 2 are alike), 1 takes 3 and 0, 2 takes 1 and 3, 3 takes 0 and 1.
TEST_CASE("expert choice divides a token's weights by their sum where it is told to", "[moe][router]") {
  const Matrix z{{2, 1, 0, -1}, {2, 0, 1, -1}, {2, 1, 0, -1}, {0, 2, 1, -1}};
  const double first = 0.643914, second = 0.236883, last = 0.032059;  // of softmax(2, 1, 0, -1)
  const double three = first + second + last, two = first + second;
  const std::vector<double> expected{first, second, last, first, second, last, first, second};
  for (const double scale : {1.0, 2.5}) {
    for (const bool normalize : {false, true}) {
      INFO("normalize " << normalize << ", scale " << scale);
      const Routing r =
          route(fmt::format("kind: expert_choice, top_k: 2, normalize: {}, scale: {}", normalize, scale), z);
      CHECK(r.choices.offsets == std::vector<Index>{0, 3, 6, 6, 8});
      CHECK(r.choices.expert_of == std::vector<std::int32_t>{0, 1, 3, 0, 2, 3, 1, 2});
      REQUIRE(r.weights.rows() == 8);
      for (Index i = 0; i < 8; ++i) {
        const double sum = normalize ? (i < 6 ? three : two) : 1;
        CHECK_THAT(r.weights.value()(i, 0),
                   WithinAbs(scale * expected[static_cast<std::size_t>(i)] / sum, 3e-6));
      }
    }
  }
}
