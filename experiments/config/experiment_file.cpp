#include "experiments/config/experiment_file.hpp"

#include <fmt/format.h>

namespace moelab {

namespace {

void leading_fields(FieldVisitor& v, ExperimentFile& f) {
  v("version", f.version, {.help = "Version of this format", .min = 1, .max = 1, .required = true});
  v("name", f.name,
    {.help = "Name of the experiment and of its folder of results; the file's name if left out"});
  v("description", f.description, {.help = "The question that it asks", .has_lines = true});
  v("seeds", f.seeds, {.help = "Every variant is run with each seed", .min = 0});
}

void trailing_fields(FieldVisitor& v, ExperimentFile& f) {
  v("variants", f.variants,
    {.help =
         "What is compared: a patch on the blocks above for each name; `extends` another, or be the dense "
         "`twin_of` one with the same `match`"});
  v("sweep", f.sweep, {.help = "Values to try, for every variant"});
  v("compare", f.compare, {.help = "How the variants are compared"});
}

// Of a file, in which they stay YAML, or of a run.
template <class Blocks>
void block_fields(FieldVisitor& v, Blocks& b) {
  v("data", b.data, {.help = "What is learned from", .required = true});
  v("model", b.model, {.help = "The model", .required = true});
  v("train", b.train, {.help = "The recipe", .required = true});
  v("eval", b.eval, {.help = "When held-out data are read"});
  v("log", b.log, {.help = "What is recorded"});
}

// Text alone has rows that are tokens with an id.
void check_ids(FieldVisitor& v, const RunConfig& run) {
  const ModelConfig& model = run.model;
  const auto check = [&](const moe::FfnConfig& ffn, const std::string& path) {
    if (ffn.kind != "moe" || run.data.kind == "text") return;
    if (!ffn.moe.router.options().traits(ffn.moe.num_experts()).needs_ids) return;
    for (Index layer = 0; layer < model.num_layers; ++layer) {
      if (&model.ffn_of(layer) != &ffn) continue;
      v.check(false, path + ".router",
              fmt::format("the router {} chooses by token ids, which data of kind {} do not have",
                          ffn.moe.router.kind(), run.data.kind));
      return;
    }
  };
  check(model.ffn, "model.ffn");
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    check(model.layers[i].ffn, fmt::format("model.layers[{}].ffn", i));
  }
}

}  // namespace

const std::vector<std::string>& run_blocks() {
  static const std::vector<std::string> names = {"data", "model", "train", "eval", "log"};
  return names;
}

void SweepConfig::fields(FieldVisitor& v) {
  v("grid", grid, {.help = "Dotted key: list of values; every combination is run; `only:` names variants"});
  v("zip", zip,
    {.help = "Dotted key: list of values; the lists are gone through together; `only:` names variants"});
  v("list", list, {.help = "Patches, one a point; `only:` in one names variants"});
}

void CompareConfig::fields(FieldVisitor& v) {
  v("baseline", baseline, {.help = "The variant that others are compared with", .when_absent = "the first"});
  v("metric", metric, {.help = "What is compared, at the end of training"});
  v("match", match,
    {.help = "What the variants should have in common",
     .choices = {"active_flops", "active_params", "total_params", "none"}});
  v("tolerance", tolerance, {.help = "Relative difference of `match` that is not remarked on", .min = 0});
  v("confidence", confidence,
    {.help = "Of the intervals", .min = 0, .max = 1, .min_exclusive = true, .max_exclusive = true});
}

void ExperimentFile::fields(FieldVisitor& v) {
  leading_fields(v, *this);
  block_fields(v, *this);
  trailing_fields(v, *this);
}

void WholeFile::fields(FieldVisitor& v) {
  leading_fields(v, file);
  run.fields(v);
  trailing_fields(v, file);
}

void RunConfig::fields(FieldVisitor& v) {
  block_fields(v, *this);

  const Index seq_len = data.seq_len();
  const bool fits = data.kind == "images"      ? model.kind == "encoder"
                    : data.kind == "synthetic" ? model.kind == "ffn"
                                               : model.kind != "ffn";
  v.check(fits, "model.kind",
          fmt::format("a model of kind {} cannot learn from data of kind {}", model.kind, data.kind));
  const ModelConfig defaults;
  const bool is_text = data.kind != "images";
  v.check(is_text || model.mask_fraction == defaults.mask_fraction, "model.mask_fraction",
          "images are classified: nothing is masked");
  v.check(is_text || model.tie_embeddings == defaults.tie_embeddings, "model.tie_embeddings",
          "images are classified: there is no table of embeddings that the head could use");
  v.check(seq_len > 0 && train.batch_tokens % seq_len == 0, "train.batch_tokens",
          fmt::format("{} is not a whole number of sequences of {} tokens", train.batch_tokens, seq_len));
  const Index micro = train.micro_batch_tokens.value_or(train.batch_tokens);
  v.check(seq_len > 0 && micro % seq_len == 0, "train.micro_batch_tokens",
          fmt::format("{} is not a whole number of sequences of {} tokens", micro, seq_len));
  check_ids(v, *this);
}

}  // namespace moelab
