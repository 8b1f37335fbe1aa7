#include "core/fields.hpp"

#include "core/error.hpp"
#include "core/fields_reader.hpp"
#include "core/fields_writer.hpp"
#include "core/suggest.hpp"
#include "tests/support/catch.hpp"

#include <string>

using namespace moelab;

namespace {

struct Weight {
  double weight = 0;
  std::string scope = "batch";
  void fields(FieldVisitor& v) {
    v("weight", weight, {.help = "Weight", .min = 0, .shorthand = true});
    v("scope", scope, {.help = "Scope", .choices = {"batch", "sequence"}});
  }
};

struct Expert {
  std::string kind = "ffn";
  std::int64_t count = 1;
  std::int64_t width = 4;
  void fields(FieldVisitor& v) {
    v.kind(kind, {.help = "Kind", .choices = {"ffn", "zero"}});
    v("count", count, {.help = "How many", .min = 1});
    if (kind == "ffn") v("width", width, {.help = "Width", .min = 1, .required = true});
  }
};

struct Router {
  std::int64_t top_k = 1;
  void fields(FieldVisitor& v) { v("top_k", top_k, {.help = "Experts of a token", .min = 1}); }
};

struct Config {
  bool flag = false;
  std::int64_t steps = 10;
  double lr = 0.5;
  std::string name = "n";
  std::optional<double> clip = 1.0;
  std::vector<double> betas = {0.9, 0.95};
  std::vector<Expert> experts;
  NamedValues<Weight> losses;
  Router router;
  yaml::Node anything;
  void fields(FieldVisitor& v) {
    v("flag", flag, {.help = "Flag"});
    v("steps", steps, {.help = "Steps", .unit = "steps", .min = 1, .max = 1e9});
    v("lr", lr, {.help = "Rate", .min = 0, .max = 1, .min_exclusive = true});
    v("name", name, {.help = "Name"});
    v("clip", clip, {.help = "Clip", .min = 0});
    v("betas", betas, {.help = "Betas", .min = 0, .max = 1, .max_exclusive = true});
    v("experts", experts, {.help = "Experts", .one_or_list = true});
    v("losses", losses, {.help = "Losses", .choices = {"load_balance", "z"}});
    v("router", router, {.help = "Router"});
    v("anything", anything, {.help = "Kept as it is"});
    std::int64_t total = 0;
    for (const Expert& e : experts) total += e.count;
    v.check(experts.empty() || router.top_k <= total, "router.top_k", "more than there are experts");
  }
};

struct Result {
  Config config;
  std::string errors;
};

Result read(const std::string& text, const ReaderOptions& options = {}) {
  Diagnostics diagnostics;
  const auto source = yaml::make_source("f.yaml", text);
  const yaml::Node node = yaml::parse(source->text, source, diagnostics);
  Result result;
  read_fields(node, result.config, diagnostics, options);
  result.errors = diagnostics.render();
  return result;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("Every type of field is read") {
  const Result r = read(
      "flag: true\nsteps: 3e6\nlr: 1e-4\nname: no\nclip: null\nbetas: [0.5]\n"
      "experts:\n  - {count: 2, width: 8}\n  - {kind: zero}\n  - zero\n"
      "losses: {z: 0.001, load_balance: {weight: 0.01, scope: sequence}}\n"
      "router: {top_k: 4}\nanything: [1, {x: y}]\n");
  REQUIRE(r.errors == "");
  const Config& c = r.config;
  CHECK(c.flag);
  CHECK(c.steps == 3000000);
  CHECK(c.lr == 1e-4);
  CHECK(c.name == "no");
  CHECK_FALSE(c.clip.has_value());
  CHECK(c.betas == std::vector<double>{0.5});
  REQUIRE(c.experts.size() == 3);
  CHECK(c.experts[0].width == 8);
  CHECK(c.experts[1].kind == "zero");
  CHECK(c.experts[2].kind == "zero");
  CHECK(c.losses.entries[0].first == "z");
  CHECK(c.losses.find("z")->weight == 0.001);
  CHECK(c.losses.find("load_balance")->scope == "sequence");
  CHECK(c.router.top_k == 4);
  CHECK(c.anything.items[1].find("x")->text == "y");
}

TEST_CASE("Defaults stay where nothing is written") {
  const Result r = read("{}");
  CHECK(r.errors == "");
  CHECK(r.config.steps == 10);
  CHECK(r.config.clip == 1.0);
  CHECK(r.config.betas == std::vector<double>{0.9, 0.95});
}

TEST_CASE("One element may stand for a list where the field says so") {
  CHECK(read("experts: {width: 2}\n").config.experts.size() == 1);
  CHECK(has(read("betas: 0.9\n").errors, "betas: `0.9` where a list belongs"));
}

TEST_CASE("Errors name key, place and range, and all are told") {
  const std::string errors = read(
                                 "steps: 1.5\n"
                                 "lr: fast\n"
                                 "clip: -1\n"
                                 "betas: [0.9, 1.0]\n"
                                 "experts: [{count: -1, width: 2}, {count: 2}]\n"
                                 "losses: {z: {scope: token}, lod_balance: 1}\n"
                                 "router: [1]\n"
                                 "flag: yes\n"
                                 "name: {a: 1}\n")
                                 .errors;
  CHECK(has(errors, "f.yaml:1:8: error: steps: `1.5` is not an integer"));
  CHECK(has(errors, "f.yaml:2:5: error: lr: `fast` is not a number"));
  CHECK(has(errors, "f.yaml:3:7: error: clip: -1 is out of range"));
  CHECK(has(errors, "it must be at least 0"));
  CHECK(has(errors, "f.yaml:4:14: error: betas[1]: 1.0 is out of range"));
  CHECK(has(errors, "it must be at least 0 and below 1"));
  CHECK(has(errors, "f.yaml:5:19: error: experts[0].count: -1 is out of range"));
  CHECK(has(errors, "f.yaml:5:34: error: `experts[1]` needs the key `width`"));
  CHECK(has(errors, "f.yaml:6:21: error: losses.z.scope: `token` is not one of batch or sequence"));
  CHECK(has(errors, "f.yaml:6:29: error: losses: `lod_balance` is not one of"));
  CHECK(has(errors, "did you mean `load_balance`?"));
  CHECK(has(errors, "f.yaml:7:9: error: `router` must be a mapping, not a list"));
  CHECK(has(errors, "f.yaml:8:7: error: flag: `yes` where true or false belongs"));
  CHECK(has(errors, "f.yaml:9:7: error: name: a mapping where text belongs"));
}

TEST_CASE("Numbers that float32 cannot hold are errors at their places") {
  const std::string errors = read("lr: 1e-40\nclip: 1e39\nbetas: [0.9, 0.99999999]\n").errors;
  CHECK(has(errors, "f.yaml:1:5: error: lr: 1e-40 is out of the range of float32"));
  CHECK(has(errors, "float32 takes it for 0; the least above 0 that it holds is 1.17"));
  CHECK(has(errors, "f.yaml:2:7: error: clip: 1e39 is out of the range of float32"));
  CHECK(has(errors, "the largest number of float32 is 3.4028"));
  CHECK(has(errors, "f.yaml:3:14: error: betas[1]: 0.99999999 is out of the range of float32"));
  CHECK(has(errors, "float32 rounds it to 1; it must be at least 0 and below 1"));
  // What it does hold, also at the ends, and a bound that is not excluded.
  CHECK(read("lr: 0.99999999999\nclip: 3.4e38\nbetas: [0, 0.9999999]\n").errors == "");
  CHECK(read("lr: 1.2e-38\nclip: 0\nsteps: 1e9\n").errors == "");
}

TEST_CASE("Unknown keys are errors at any depth, with the nearest known one") {
  const std::string errors =
      read("step: 3\nrouter: {topk: 2}\nexperts: [{width: 1, cuont: 2}]\nzzzz: 1\n").errors;
  CHECK(has(errors, "f.yaml:1:1: error: the file has no key `step`"));
  CHECK(has(errors, "did you mean `steps`?"));
  CHECK(has(errors, "f.yaml:2:10: error: `router` has no key `topk`"));
  CHECK(has(errors, "did you mean `top_k`?"));
  CHECK(has(errors, "did you mean `count`?"));
  CHECK(has(errors, "known here: flag, steps, lr"));

  ReaderOptions options;
  options.advise = [](const std::string& path, const std::string& key) {
    return path == "router" && key == "k" ? std::string("say top_k") : std::string();
  };
  CHECK(has(read("router: {k: 2}\n", options).errors, "help: say top_k"));
}

TEST_CASE("Keys of another kind are told apart from unknown ones") {
  CHECK(has(read("experts: {kind: zero, width: 3}\n").errors,
            "`width` belongs to kind ffn; this is kind zero"));
  const std::string errors = read("experts: {kind: zer, width: 3}\n").errors;
  CHECK(has(errors, "f.yaml:1:17: error: experts.kind: `zer` is not one of ffn or zero"));
  CHECK(has(errors, "did you mean `zero`?"));
  CHECK_FALSE(has(errors, "`width`"));  // which keys belong is not known
}

TEST_CASE("Conditions over several fields blame the field they name, once its parts are sound") {
  CHECK(has(read("experts: {width: 3, count: 2}\nrouter: {top_k: 3}\n").errors,
            "f.yaml:2:17: error: router.top_k: more than there are experts"));
  CHECK_FALSE(has(read("experts: {width: 3, count: x}\nrouter: {top_k: 3}\n").errors, "more than"));
}

TEST_CASE("A missing value is an error that names its key") {
  CHECK(has(read("lr:\nsteps: 3\n").errors, "f.yaml:1:1: error: lr: nothing where a number belongs"));
  CHECK(has(read("router:\n").errors, "`router` must be a mapping, not nothing"));
}

TEST_CASE("Written fields read back as the same struct, with every default in place") {
  Config config;
  config.lr = 1e-5;
  config.clip.reset();
  config.name = "1e3";
  config.experts = {{"zero", 2, 4}, {"ffn", 1, 9}};
  config.losses.entries = {{"z", {0.001, "sequence"}}};
  const std::string text = yaml::emit(write_fields(config));
  CHECK(has(text, "lr: 1.0e-05\n"));
  CHECK(has(text, "steps: 10\n"));
  CHECK(has(text, "clip: null\n"));
  CHECK(has(text, "name: \"1e3\"\n"));
  Result again = read(text);
  CHECK(again.errors == "");
  CHECK(yaml::emit(write_fields(again.config)) == text);
  CHECK(again.config.lr == 1e-5);
  CHECK_FALSE(again.config.clip.has_value());
  CHECK(again.config.experts[0].kind == "zero");
  CHECK(again.config.experts[1].width == 9);
  CHECK(again.config.losses.find("z")->scope == "sequence");
}

TEST_CASE("Distances between names") {
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("cuont", "count") == 1);
  CHECK(edit_distance("Top-K", "top_k") == 0);
  CHECK(nearest("dmodel", {"d_ff", "d_model"}) == "d_model");
  CHECK(nearest("qqq", {"d_ff", "d_model"}).empty());
  CHECK(did_you_mean("dmodel", {"d_ff", "d_model"}) == "did you mean `d_model`?");
  CHECK(did_you_mean("qqq", {"d_ff", "d_model"}) == "known: d_ff or d_model");
  CHECK(did_you_mean("qqq", {"d_ff", "d_model"}, "see the manual") == "see the manual");
  CHECK(did_you_mean("dmodel", {"d_ff", "d_model"}, "see the manual") == "did you mean `d_model`?");
}
