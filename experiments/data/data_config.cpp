#include "experiments/data/data_config.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moelab {
namespace {

// Far beyond any use, so that products of sizes stay whole numbers of 64 bits.
constexpr double kMaxLength = 1e7;
constexpr double kMaxWidth = 1e6;
constexpr double kMaxSequences = 1e9;

std::vector<std::string> names_of(const std::vector<TextDomain>& domains) {
  std::vector<std::string> names;
  for (const TextDomain& domain : domains) names.push_back(domain.name);
  return names;
}

std::vector<std::string> numbered(const char* name, Index count) {
  std::vector<std::string> names;
  for (Index i = 0; i < count; ++i) names.push_back(fmt::format("{}_{}", name, i));
  return names;
}

bool are_unique(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}

// It becomes a part of the names of metrics.
bool is_domain_name(const std::string& name) { return !name.empty() && name.find('/') == std::string::npos; }

}  // namespace

void TextDomain::fields(FieldVisitor& v) {
  v("name", name, {.help = "Name of the domain in tables and results", .required = true});
  v("path", path,
    {.help = "File, folder or glob, or a list of them; `**` crosses folders; .gz is read; a relative path "
             "starts at the folder of this YAML file",
     .required = true,
     .one_or_list = true});
  v("weight", weight,
    {.help = "Share of the training sequences, relative to the other domains",
     .min = 0,
     .min_exclusive = true});
  v("package", package, {.help = "Debian package that brings the files"});
  v("document_bytes", document_bytes,
    {.help = "Longer files are cut into documents of about this length, so that what is held out comes from "
             "all over them",
     .unit = "bytes",
     .min = 1,
     .when_absent = "a file is one document"});
  v.check(is_domain_name(name), "name", "a domain needs a name without a slash");
  v.check(!path.empty() && std::none_of(path.begin(), path.end(), [](const auto& p) { return p.empty(); }),
          "path", "a domain needs at least one path");
}

void TokenizerConfig::fields(FieldVisitor& v) {
  v.kind(kind, {.help = "What a token is; byte: one of the 256 bytes; bpe: bytes that often stand together",
                .choices = {"byte", "bpe"}});
  if (kind == "byte") return;
  v("vocab_size", vocab_size,
    {.help = "How many tokens are learnt from the text that is trained on",
     .unit = "tokens",
     .min = 256,
     .max = 65536,
     .when_absent = "as many as `file` has"});
  v("file", file, {.help = "tokenizer.jsonl of another execution, to be used as it is"});
  v.check(vocab_size.has_value() != !file.empty(), "", "bpe needs `vocab_size` or `file`, one of the two");
}

void TextDataConfig::fields(FieldVisitor& v) {
  v("tokenizer", tokenizer, {.help = "Turns text into tokens"});
  v("seq_len", seq_len, {.help = "Positions of a sequence", .unit = "tokens", .min = 1, .max = kMaxLength});
  v("eval_fraction", eval_fraction,
    {.help = "Share of each document, taken from its end, that is held out for evaluation",
     .min = 0,
     .max = 0.9,
     .min_exclusive = true});
  v("corpus", corpus, {.help = "Corpus file that lists the domains, relative to this file"});
  v("domains", domains, {.help = "Domains of the text, where no corpus file is named"});
  v.check(corpus.empty() || domains.empty(), "domains",
          "domains come from the corpus file: give one of the two");
  v.check(!corpus.empty() || !domains.empty(), "domains",
          "text needs domains, or a corpus file that lists them");
  v.check(are_unique(names_of(domains)), "domains", "two domains have the same name");
}

void SyntheticDataConfig::fields(FieldVisitor& v) {
  v("seq_len", seq_len, {.help = "Samples of a sequence, all from one cluster", .min = 1, .max = kMaxLength});
  v("num_clusters", num_clusters,
    {.help = "Clusters; each is a domain with a map of its own", .min = 1, .max = kMaxWidth});
  v("num_features", num_features, {.help = "Width of the input", .min = 1, .max = kMaxWidth});
  v("num_targets", num_targets, {.help = "Width of the target", .min = 1, .max = kMaxWidth});
  v("map", map,
    {.help = "Target of x in cluster c: linear: A_c x; tanh: A_c tanh(B_c x)",
     .choices = {"linear", "tanh"}});
  v("cluster_spread", cluster_spread,
    {.help = "Standard deviation of the cluster centres; samples have 1 around theirs", .min = 0});
  v("noise", noise, {.help = "Standard deviation of the noise added to the targets", .min = 0});
  v("eval_sequences", eval_sequences, {.help = "Held-out sequences", .min = 1, .max = kMaxSequences});
  v("task_seed", task_seed, {.help = "Seed of the clusters and maps, the same for every run", .min = 0});
}

void ImageDataConfig::fields(FieldVisitor& v) {
  v("path", path,
    {.help = "Folder with train-images-idx3-ubyte, train-labels-idx1-ubyte and the same of t10k, each also "
             "with .gz; a relative path starts at the folder of this YAML file"});
  v("package", package, {.help = "Debian package that brings the files"});
  v("image_size", image_size, {.help = "Side of an image", .unit = "pixels", .min = 1, .max = 65536});
  v("patch_size", patch_size,
    {.help = "Side of a patch; an image is a sequence of its patches, row by row",
     .unit = "pixels",
     .min = 1});
  v("num_classes", num_classes, {.help = "Classes, numbered from 0", .min = 2, .max = kMaxWidth});
  v("class_names", class_names, {.help = "Names of the classes, which are the domains of the results"});
  v.check(patch_size >= 1 && image_size % patch_size == 0, "patch_size",
          fmt::format("images of {} pixels cannot be cut into patches of {}", image_size, patch_size));
  v.check(class_names.empty() || static_cast<Index>(class_names.size()) == num_classes, "class_names",
          fmt::format("{} names for {} classes", class_names.size(), num_classes));
  v.check(are_unique(class_names), "class_names", "two classes have the same name");
  v.check(std::all_of(class_names.begin(), class_names.end(), is_domain_name), "class_names",
          "a class needs a name without a slash");
}

std::vector<std::string> ImageDataConfig::domain_names() const {
  return class_names.empty() ? numbered("class", num_classes) : class_names;
}

std::vector<std::string> SyntheticDataConfig::domain_names() const {
  return numbered("cluster", num_clusters);
}

Index DataConfig::num_domains() const {
  if (kind == "synthetic") return synthetic.num_clusters;
  return static_cast<Index>(domain_names().size());
}

std::vector<std::string> DataConfig::domain_names() const {
  if (kind == "images") return images.domain_names();
  return kind == "text" ? names_of(text.domains) : synthetic.domain_names();
}

Index ImageDataConfig::num_patches() const {
  const Index side = image_size / std::max<Index>(patch_size, 1);
  return side * side;
}

Index DataConfig::seq_len() const {
  if (kind == "images") return images.num_patches();
  return kind == "text" ? text.seq_len : synthetic.seq_len;
}

void DataConfig::fields(FieldVisitor& v) {
  v.kind(kind, {.help = "Where the data come from", .choices = {"text", "synthetic", "images"}});
  if (kind == "text") text.fields(v);
  if (kind == "synthetic") synthetic.fields(v);
  if (kind == "images") images.fields(v);
}

void CorpusFile::fields(FieldVisitor& v) {
  v("version", version, {.help = "Version of this format", .min = 1, .max = 1, .required = true});
  v("name", name, {.help = "Name of the corpus", .required = true});
  v("description", description, {.help = "What the text is and where it comes from"});
  v("domains", domains, {.help = "Domains of the text", .required = true});
  v.check(!domains.empty(), "domains", "a corpus needs at least one domain");
  v.check(are_unique(names_of(domains)), "domains", "two domains have the same name");
}

}  // namespace moelab
