// The `data:` block of an experiment.
#pragma once

#include "core/tensor.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace moelab {

// One domain of text: losses and routing are reported for each.
struct TextDomain {
  std::string name;
  std::vector<std::string> paths;  // files, folders or globs (`**` crosses folders); .gz is read
  double weight = 1.0;             // share of the training sequences, relative to the other domains
  std::string package;             // the Debian package that brings the files; empty: none
};

// kind: text. Domains are listed in place, in a corpus file, or both.
struct TextDataConfig {
  std::string tokenizer = "byte";
  Index seq_len = 128;
  double eval_fraction = 0.05;  // of each document, from its end; never seen in training
  std::string corpus;           // a corpus file, absolute once the experiment is read; empty: none
  std::vector<TextDomain> domains;
};

// kind: synthetic. Regression with known clusters: each cluster is a domain with a function of its own.
struct SyntheticDataConfig {
  Index seq_len = 1;  // samples in a sequence, all of one cluster
  Index num_clusters = 4;
  Index num_features = 16;
  Index num_targets = 16;
  std::string map = "linear";   // linear | tanh
  double cluster_spread = 2.0;  // standard deviation of the cluster centres; samples have 1 around theirs
  double noise = 0.0;           // standard deviation of what is added to the targets
  std::int64_t eval_sequences = 512;
  std::uint64_t task_seed = 0;  // of the clusters and their maps: the task is the same for every run
};

struct DataConfig {
  std::string kind = "text";  // text | synthetic
  TextDataConfig text;
  SyntheticDataConfig synthetic;
};

}  // namespace moelab
