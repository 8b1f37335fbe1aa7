// The `data:` block of an experiment, and the corpus file that it may name.
#pragma once

#include "core/fields.hpp"
#include "core/tensor.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace moelab {

// One domain of text: losses and routing are reported for each.
struct TextDomain {
  std::string name;
  std::vector<std::string> path;  // relative to the folder of the file that it stands in
  double weight = 1.0;
  std::string package;  // empty: none
  std::optional<Index> document_bytes = {};
  void fields(FieldVisitor& v);
};

struct TokenizerConfig {
  std::string kind = "byte";
  // bpe: one of the two.
  std::optional<Index> vocab_size = {};
  std::string file = {};  // empty: none
  void fields(FieldVisitor& v);
};

// kind: text. Domains are listed in place or in a corpus file.
struct TextDataConfig {
  TokenizerConfig tokenizer;
  Index seq_len = 128;
  double eval_fraction = 0.05;
  std::string corpus;  // empty: none
  std::vector<TextDomain> domains;
  void fields(FieldVisitor& v);
};

// kind: synthetic. Regression with known clusters: each cluster is a domain with a function of its own.
struct SyntheticDataConfig {
  Index seq_len = 1;
  Index num_clusters = 4;
  Index num_features = 16;
  Index num_targets = 16;
  std::string map = "linear";
  double cluster_spread = 2.0;
  double noise = 0.0;
  Index eval_sequences = 512;
  Index task_seed = 0;
  void fields(FieldVisitor& v);
  std::vector<std::string> domain_names() const;  // cluster_0, cluster_1, ...
};

// kind: images. Grey images of one size with a class each, cut into square patches: an image is a sequence, a
// patch a row of features, a class a domain. Read from the idx files of MNIST and its kin.
struct ImageDataConfig {
  std::string path = "/usr/share/datasets/fashion-mnist";  // folder of the four files
  std::string package = "dataset-fashion-mnist";           // empty: none
  Index image_size = 28;                                   // pixels of a side
  Index patch_size = 7;
  Index num_classes = 10;
  std::vector<std::string> class_names;  // empty: class_0, class_1, ...
  void fields(FieldVisitor& v);
  std::vector<std::string> domain_names() const;
  // Of an image: the length of a sequence.
  Index num_patches() const;
};

struct DataConfig {
  std::string kind = "text";
  TextDataConfig text;
  SyntheticDataConfig synthetic;
  ImageDataConfig images;
  // As results name them. Of text with a corpus file, those of the file once it has been read.
  std::vector<std::string> domain_names() const;
  Index num_domains() const;
  // Rows of a sequence, whatever the kind.
  Index seq_len() const;
  void fields(FieldVisitor& v);
};

// A file of configs/corpora/: domains to be used by many experiments.
struct CorpusFile {
  Index version = 1;
  std::string name;
  std::string description;
  std::vector<TextDomain> domains;
  void fields(FieldVisitor& v);
};

}  // namespace moelab
