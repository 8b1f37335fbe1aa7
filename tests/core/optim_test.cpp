#include "core/optim.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/random.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace moelab;

namespace {

// A matrix that is decayed, a norm and a bias that are not, and a matrix that is not trained.
struct Model : Module {
  Parameter w{4, 3, Init::normal(1)};
  Parameter g{1, 3, Init::constant(1)};
  Parameter b1{1, 4, Init::normal(1)};
  Parameter frozen{3, 3, Init::normal(1)};
  Model() { frozen.trainable = false; }
  void visit(Visitor& v) override {
    v.parameter("w", w);
    v.parameter("norm.g", g);
    v.parameter("b1", b1);
    v.parameter("frozen", frozen);
  }
};

void fill_grads(ParameterStore& store, std::uint64_t step) {
  for (const auto& [path, p] : store.parameters()) {
    random::fill_normal(p->grad(), random::Stream(11, path, step), 1);
  }
}

double max_difference(const Matrix& a, const Matrix& b) {
  return static_cast<double>((a - b).cwiseAbs().maxCoeff());
}

}  // namespace

TEST_CASE("AdamW follows its formulas for several steps", "[optim]") {
  Model model;
  ParameterStore store(model, 1);
  constexpr double lr = 0.01, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1;
  const auto optimizer =
      make_adamw(store, {.beta1 = beta1, .beta2 = beta2, .eps = eps, .weight_decay = decay});

  std::vector<Matrix> w, m, v;
  for (const auto& [path, p] : store.parameters()) {
    w.emplace_back(p->value());
    m.emplace_back(Matrix::Zero(p->rows(), p->cols()));
    v.emplace_back(Matrix::Zero(p->rows(), p->cols()));
  }
  const Matrix frozen = model.frozen.value();
  for (int t = 1; t <= 5; ++t) {
    fill_grads(store, static_cast<std::uint64_t>(t));
    for (std::size_t i = 0; i < 3; ++i) {
      const MatrixView g = store.parameters()[i].parameter->grad();
      for (Index j = 0; j < g.size(); ++j) {
        Scalar* wj = w[i].data() + j;
        Scalar* mj = m[i].data() + j;
        Scalar* vj = v[i].data() + j;
        const Scalar gj = g.data()[j];
        if (i == 0) *wj -= lr * decay * *wj;  // only the matrix
        *mj = beta1 * *mj + (1 - beta1) * gj;
        *vj = beta2 * *vj + (1 - beta2) * gj * gj;
        const double m_hat = *mj / (1 - std::pow(beta1, t));
        const double v_hat = *vj / (1 - std::pow(beta2, t));
        *wj -= lr * m_hat / (std::sqrt(v_hat) + eps);
      }
    }
    const std::uint64_t version = model.w.version();
    optimizer->step(lr);
    CHECK(model.w.version() > version);
    CHECK(optimizer->num_steps() == t);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(max_difference(store.parameters()[i].parameter->value(), w[i]) < 1e-14);
    }
  }
  CHECK(Matrix(model.frozen.value()) == frozen);

  std::vector<std::string> names;
  std::size_t seen = 0;
  optimizer->visit_state([&](const std::string& name, MatrixView state) {
    names.push_back(name);
    const std::vector<Matrix>& expected = name[0] == 'm' ? m : v;
    CHECK(max_difference(state, expected[seen++ % 3]) < 1e-14);
  });
  CHECK(names == std::vector<std::string>{"m.w", "m.norm.g", "m.b1", "v.w", "v.norm.g", "v.b1"});
}

TEST_CASE("norms and biases are not decayed", "[optim]") {
  Model model;
  ParameterStore store(model, 1);
  const Matrix w = model.w.value();
  const Matrix g = model.g.value();
  const Matrix b1 = model.b1.value();
  store.zero_grads();
  make_adamw(store, {.weight_decay = 0.1})->step(0.5);
  CHECK(Matrix(model.g.value()) == g);
  CHECK(Matrix(model.b1.value()) == b1);
  CHECK(max_difference(model.w.value(), 0.95 * w) < 1e-15);
  make_sgd(store, {.weight_decay = 0.1})->step(0.5);
  CHECK(Matrix(model.g.value()) == g);
  CHECK(max_difference(model.w.value(), 0.95 * 0.95 * w) < 1e-15);
}

TEST_CASE("SGD with momentum follows its formulas", "[optim]") {
  Model model;
  ParameterStore store(model, 1);
  const double momentum = GENERATE(0.0, 0.9);
  constexpr double decay = 0.2;
  const auto optimizer = make_sgd(store, {.momentum = momentum, .weight_decay = decay});
  Matrix w = model.w.value();
  Matrix velocity = Matrix::Zero(4, 3);
  for (std::uint64_t t = 0; t < 4; ++t) {
    fill_grads(store, t);
    velocity = momentum * velocity + model.w.grad() + decay * w;
    w -= 0.1 * velocity;
    optimizer->step(0.1);
    CHECK(max_difference(model.w.value(), w) < 1e-14);
  }
  int states = 0;
  optimizer->visit_state([&](const std::string& name, MatrixView) {
    CHECK(name.rfind("velocity.", 0) == 0);
    ++states;
  });
  CHECK(states == (momentum > 0 ? 3 : 0));
}

TEST_CASE("an optimizer goes on from the state of another", "[optim]") {
  Model model;
  ParameterStore store(model, 1);
  Model resumed_model;
  ParameterStore resumed_store(resumed_model, 2);
  const auto optimizer = make_adamw(store, {.weight_decay = 0.1});
  const auto train = [](ParameterStore& s, Optimizer& o, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t t = from; t < to; ++t) {
      fill_grads(s, t);
      o.step(0.01);
    }
  };
  train(store, *optimizer, 0, 3);

  const auto resumed = make_adamw(resumed_store, {.weight_decay = 0.1});
  resumed_store.values() = store.values();
  resumed->set_num_steps(optimizer->num_steps());
  std::vector<Matrix> states;
  optimizer->visit_state([&](const std::string&, MatrixView state) { states.emplace_back(state); });
  std::size_t next = 0;
  resumed->visit_state([&](const std::string&, MatrixView state) { state = states[next++]; });

  train(store, *optimizer, 3, 6);
  train(resumed_store, *resumed, 3, 6);
  CHECK(Matrix(resumed_model.w.value()) == Matrix(model.w.value()));
}

TEST_CASE("the gradient is clipped to its global norm", "[optim]") {
  Model model;
  ParameterStore store(model, 1);
  fill_grads(store, 0);
  model.frozen.grad().setConstant(1000);  // not trained, so it does not count
  double sum = 0;
  for (const Parameter* p : {&model.w, &model.g, &model.b1}) sum += p->grad().squaredNorm();
  const Matrix before = model.w.grad();
  const double norm = std::sqrt(sum);
  CHECK(std::abs(grad_norm(store) - norm) < 1e-12);

  CHECK(std::abs(clip_grad_norm(store, 2 * norm) - norm) < 1e-12);
  CHECK(Matrix(model.w.grad()) == before);  // below the bound nothing changes
  CHECK(std::abs(clip_grad_norm(store, 1.0) - norm) < 1e-12);
  CHECK(max_difference(model.w.grad(), before / (norm + 1e-6)) < 1e-14);
  CHECK(std::abs(grad_norm(store) - 1) < 1e-6);
}

TEST_CASE("a gradient that is not finite is named, and nothing is changed", "[optim]") {
  const double bad =
      GENERATE(std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
               std::numeric_limits<double>::quiet_NaN());
  Model model;
  ParameterStore store(model, 1);
  fill_grads(store, 0);
  model.b1.grad()(0, 2) = static_cast<Scalar>(bad);
  const Matrix w_grad = model.w.grad();
  const Matrix w = model.w.value();
  CHECK_THROWS_AS(clip_grad_norm(store, 1.0), NonFiniteError);
  CHECK_THROWS_WITH(clip_grad_norm(store, 1.0), "[optimizer] the gradient of b1 is not finite");
  CHECK(Matrix(model.w.grad()) == w_grad);
  CHECK(Matrix(model.w.value()) == w);
}

TEST_CASE("norm and update have the same bits at every thread count", "[optim]") {
  struct Large : Module {
    Parameter w{300, 501, Init::normal(1)};
    void visit(Visitor& v) override { v.parameter("w", w); }
  };
  std::vector<double> norms;
  std::vector<Matrix> weights;
  for (const int threads : {1, 2, 3, 8}) {
    parallel::set_threads(threads);
    Large model;
    ParameterStore store(model, 1);
    fill_grads(store, 0);
    norms.push_back(clip_grad_norm(store, 1.0));
    make_adamw(store, {.weight_decay = 0.1})->step(0.01);
    weights.emplace_back(model.w.value());
    CHECK(norms.back() == norms.front());
    CHECK(weights.back() == weights.front());
  }
  parallel::set_threads(0);
}
