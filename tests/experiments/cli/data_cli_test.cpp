// Data that are larger than memory, and the cache that they are read from.
#include "tests/experiments/cli/answer.hpp"

#include <filesystem>
#include <fstream>
#include <string>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

void write_experiment(const TemporaryFolder& folder, const std::string& tokenizer) {
  folder.write("e.yaml",
               "version: 1\n"
               "data: {kind: text, seq_len: 16, tokenizer: " +
                   tokenizer +
                   ", domains: [{name: a, path: a.txt}]}\n"
                   "model: {kind: decoder, d_model: 16, num_layers: 1, num_heads: 2,"
                   " ffn: {activation: relu, d_ff: 32}}\n"
                   "train: {max_steps: 3, batch_tokens: 64, optimizer: {lr: 1e-3}}\n"
                   "eval: {max_tokens: 64}\n");
}

void write_text(const TemporaryFolder& folder, std::size_t bytes) {
  std::ofstream out(folder.path() / "a.txt", std::ios::binary);
  std::string block;
  unsigned seed = 1;
  while (block.size() < 1 << 20) {
    seed = seed * 1664525u + 1013904223u;
    block += std::to_string(seed >> 22) + (seed % 7 == 0 ? "\n" : " word ");
  }
  for (std::size_t written = 0; written < bytes; written += block.size()) out << block;
}

}  // namespace

// What sanitizers keep for themselves counts as data of the process.
#ifndef MOELAB_SANITIZED

TEST_CASE("A text that does not fit into memory is trained on from the cache") {
  const TemporaryFolder folder;
  // Tokens take two bytes each: 192 MB of them against 96 MB for all data of the process.
  write_text(folder, 96u << 20);
  write_experiment(folder, "byte");
  const std::string limited = "ulimit -d 98304 && \"$MOELAB\" run e.yaml -q -t 1";
  CHECK(shell_in(folder, "export MOELAB_CACHE=none; " + limited).code == 1);
  const Answer cached = shell_in(folder, "export MOELAB_CACHE=$PWD/cache; " + limited);
  CHECK(cached.code == 0);
  CHECK(cached.err == "");
  write_experiment(folder, "{kind: bpe, vocab_size: 400}");
  CHECK(shell_in(folder, "export MOELAB_CACHE=$PWD/cache; " + limited).code == 0);
  CHECK(fs::exists(folder.path() / "runs/e/latest/base-s0/tokenizer.jsonl"));
}

#endif

TEST_CASE("Two programs at once share a cache") {
  const TemporaryFolder folder;
  write_text(folder, 4u << 20);
  write_experiment(folder, "{kind: bpe, vocab_size: 300}");
  const Answer all = shell_in(
      folder,
      "export MOELAB_CACHE=$PWD/cache; for i in 1 2 3; do \"$MOELAB\" run e.yaml -q -t 1 -o runs$i & "
      "pids=\"$pids $!\"; done; for p in $pids; do wait $p || exit 1; done");
  CHECK(all.code == 0);
  CHECK(all.err == "");
  std::size_t entries = 0;
  for (const auto& entry : fs::directory_iterator(folder.path() / "cache")) {
    CHECK(entry.path().filename().native().front() != '.');
    ++entries;
  }
  CHECK(entries == 2);
  const fs::path journal = "e/latest/base-s0/data.json";
  CHECK(read_file(folder.path() / "runs1" / journal) == read_file(folder.path() / "runs2" / journal));
  const Answer uncached = shell_in(folder, "MOELAB_CACHE=$PWD/a.txt/no \"$MOELAB\" run e.yaml -t 1");
  CHECK(uncached.code == 0);
  CHECK_THAT(uncached.err, Contains("kept in memory"));
}

TEST_CASE("Too many jobs for the machine are said before training") {
  const TemporaryFolder folder;
  folder.write("e.yaml",
               "version: 1\nseeds: [0, 1, 2]\n"
               "data: {kind: synthetic, num_features: 16384, num_targets: 16384}\n"
               "model: {kind: ffn, d_model: 16384, num_layers: 400, ffn: {activation: relu, d_ff: 65536}}\n"
               "train: {max_steps: 10, batch_tokens: 32, optimizer: {lr: 1e-3}}\n");
  const Answer crowded = moelab_in(folder, "run e.yaml --dry-run -t 3 -j 3");
  CHECK(crowded.code == 0);
  CHECK_THAT(crowded.out, Contains("for 3 at a time") && Contains("not even one"));
  const Answer small =
      moelab_in(folder, "run e.yaml --dry-run -t 2 -j 2 model.num_layers=1 model.ffn.d_ff=16");
  CHECK(small.code == 0);
  CHECK_THAT(small.out, Contains("for 2 at a time") && !Contains("fit"));
}
