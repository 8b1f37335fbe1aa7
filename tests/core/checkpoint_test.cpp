#include "core/checkpoint.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

struct Small : Module {
  explicit Small(Index width = 5) : w(width, width, Init::normal(1)), b(1, width, Init::constant(0.5)) {}
  Parameter w, b;
  Matrix bias = Matrix::Constant(1, 3, 0.25);
  void visit(Visitor& v) override {
    v.parameter("layer.w", w);
    v.parameter("layer.b", b);
    v.state("bias", bias);
  }
};

struct Fixture {
  explicit Fixture(Index width = 5, std::uint64_t seed = 1)
      : module(width), store(module, seed), optimizer(make_adamw(store, {})) {}
  Small module;
  ParameterStore store;
  std::unique_ptr<Optimizer> optimizer;

  void train(int steps) {
    for (int i = 0; i < steps; ++i) {
      store.grads().setConstant(Scalar(0.1) * static_cast<Scalar>(i + 1));
      optimizer->step(0.01);
    }
  }
  Matrix values() { return store.values(); }
};

struct TemporaryFile {
  TemporaryFolder folder;
  fs::path path() const { return folder.path() / "step_7.h5"; }
};

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("training goes on from a checkpoint with the same bits", "[checkpoint]") {
  const TemporaryFile file;
  Fixture whole;
  whole.train(7);

  Fixture first;
  first.train(4);
  first.module.bias(0, 1) = Scalar(-3);
  save_checkpoint(file.path(), {4, 1.5, "model: {}\n"}, first.module, *first.optimizer);

  Fixture second(5, 99);  // other initial values
  const CheckpointReader reader(file.path());
  CHECK(reader.training().step == 4);
  CHECK(reader.training().train_seconds == 1.5);
  CHECK(reader.training().config == "model: {}\n");
  reader.restore(second.module);
  reader.restore(*second.optimizer);
  CHECK(second.module.bias == first.module.bias);
  CHECK(second.values() == first.values());
  for (int i = 4; i < 7; ++i) {
    second.store.grads().setConstant(Scalar(0.1) * static_cast<Scalar>(i + 1));
    second.optimizer->step(0.01);
  }
  CHECK(second.values() == whole.values());
  CHECK(reader.parameter_names() == std::vector<std::string>{"layer.w", "layer.b"});
  CHECK(reader.parameter("layer.w") == Matrix(first.module.w.value()));
}

TEST_CASE("a checkpoint of another model is refused, naming the parameter", "[checkpoint]") {
  const TemporaryFile file;
  Fixture five;
  save_checkpoint(file.path(), {}, five.module, *five.optimizer);
  Fixture six(6);
  const std::string message = message_of([&] { CheckpointReader(file.path()).restore(six.module); });
  CHECK(mentions(message, "layer.w"));
  CHECK(mentions(message, "(5, 5)"));
  CHECK(mentions(message, "(6, 6)"));
}

TEST_CASE("a checkpoint with more than the model and its optimizer have is refused", "[checkpoint]") {
  struct Bare : Module {
    Parameter w{5, 5, Init::normal(1)}, b{1, 5, Init::constant(0.5)};
    void visit(Visitor& v) override {
      v.parameter("layer.w", w);
      v.parameter("layer.b", b);
    }
  };
  const TemporaryFolder folder;
  Fixture saved;
  saved.train(1);
  const fs::path path = folder.path() / "step_1.h5";
  save_checkpoint(path, {}, saved.module, *saved.optimizer);
  const CheckpointReader reader(path);
  Bare bare;
  ParameterStore store(bare, 1);
  CHECK_THROWS_WITH(reader.restore(bare), Contains("state/bias is not part of the model"));
  CHECK_THROWS_WITH(reader.restore(*make_sgd(store, {})),
                    Contains("optimizer/") && Contains("is not part of the model"));
}

TEST_CASE("a damaged checkpoint is found out, whichever byte it is", "[checkpoint]") {
  const TemporaryFile file;
  Fixture fixture;
  save_checkpoint(file.path(), {}, fixture.module, *fixture.optimizer);
  std::ifstream in(file.path(), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  in.close();
  // A value of the weight matrix, as it stands in the file.
  std::string pattern(3 * sizeof(Scalar), '\0');
  std::memcpy(pattern.data(), fixture.store.values().data() + 7, pattern.size());
  const auto at = good.find(pattern);
  REQUIRE(at != std::string::npos);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    std::string bad = good;
    bad[at + i] = static_cast<char>(bad[at + i] ^ 1);
    std::ofstream(file.path(), std::ios::binary) << bad;
    Fixture other;
    CHECK(mentions(message_of([&] { CheckpointReader(file.path()).restore(other.module); }), "damaged"));
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, at / 2, at + 4}) {
    std::ofstream(file.path(), std::ios::binary | std::ios::trunc) << good.substr(0, size);
    Fixture other;
    INFO("cut from " << good.size() << " to " << size << " bytes");
    CHECK_FALSE(message_of([&] { CheckpointReader(file.path()).restore(other.module); }).empty());
  }
}

TEST_CASE("a file that is no checkpoint is refused", "[checkpoint]") {
  const TemporaryFile file;
  hdf5::Group root;
  root.attribute("format", std::string("moelab-results"));
  hdf5::write_file(file.path(), root);
  CHECK(mentions(message_of([&] { CheckpointReader reader(file.path()); }), "not a moelab checkpoint"));
  CHECK(
      mentions(message_of([&] { CheckpointReader reader(file.folder.path() / "absent.h5"); }), "absent.h5"));
}
