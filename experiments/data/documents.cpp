#include "experiments/data/documents.hpp"

#include "core/error.hpp"
#include "core/mapped_file.hpp"
#include "core/parallel.hpp"
#include "core/sha256.hpp"
#include "core/utf8.hpp"
#include "experiments/data/missing_data.hpp"
#include "experiments/data/text_files.hpp"

#include <set>

namespace moelab {
namespace {

// Bytes before the held-out part; never inside a UTF-8 character.
std::size_t split_point(std::string_view text, double eval_fraction) {
  auto split = static_cast<std::size_t>(static_cast<double>(text.size()) * (1 - eval_fraction));
  while (split < text.size() && utf8::continues_character(text[split])) ++split;
  return split;
}

// Cuts a file at ends of lines into pieces of `length` bytes or a little more; the last has half of that at
// least.
std::vector<std::string_view> cut_into_documents(std::string_view file, std::optional<Index> length) {
  std::vector<std::string_view> documents;
  while (length && file.size() > static_cast<std::size_t>(*length)) {
    const std::size_t end = file.find('\n', static_cast<std::size_t>(*length) - 1);
    if (end == std::string_view::npos || file.size() - end - 1 < static_cast<std::size_t>(*length) / 2) break;
    documents.push_back(file.substr(0, end + 1));
    file.remove_prefix(end + 1);
  }
  documents.push_back(file);
  return documents;
}

// Plain files are mapped, so that they need no memory; packed ones are unpacked into it.
class TextFile {
 public:
  explicit TextFile(const std::string& path) {
    if (path.ends_with(".gz")) {
      unpacked_ = read_text_file(path);
      text_ = unpacked_;
    } else {
      mapped_ = MappedFile(path);
      text_ = mapped_.text();
    }
  }
  std::string_view text() const { return text_; }

 private:
  std::string unpacked_;
  MappedFile mapped_;
  std::string_view text_;
};

}  // namespace

DomainFiles list_files(const TextDomain& domain) {
  DomainFiles listed{domain, {}};
  std::set<std::string> seen;  // a file may be named by several of the paths
  for (const std::string& path : domain.path) {
    const std::vector<std::string> files = find_files(path);
    if (files.empty()) throw Error(MissingData{domain.name, path, domain.package}.message());
    for (const std::string& file : files) {
      if (seen.insert(file).second) listed.files.push_back(file);
    }
  }
  return listed;
}

void for_each_document(const DomainFiles& domain, double eval_fraction,
                       const std::function<void(std::string_view, std::string_view)>& body) {
  for (const std::string& name : domain.files) {
    const TextFile file(name);
    require(file.text().find('\0') == std::string_view::npos,
            "[text] {} (domain {}) is not text: it holds a zero byte. A glob such as /folder/**/*.txt "
            "picks files",
            name, domain.config.name);
    for (const std::string_view document : cut_into_documents(file.text(), domain.config.document_bytes)) {
      const std::size_t split = split_point(document, eval_fraction);
      body(document.substr(0, split), document.substr(split));
    }
  }
}

std::string hash_of_documents(const DomainFiles& domain, double eval_fraction) {
  std::vector<std::string> hashes(domain.files.size());
  parallel::for_each(static_cast<Index>(hashes.size()), [&](Index i) {
    const auto f = static_cast<std::size_t>(i);
    hashes[f] = sha256_hex(MappedFile(domain.files[f]).text());
  });
  std::string content = fmt::format("documents 1\neval_fraction {}\ndocument_bytes {}\n", eval_fraction,
                                    domain.config.document_bytes.value_or(0));
  for (std::size_t f = 0; f < hashes.size(); ++f) {
    content += fmt::format("{} {}\n", domain.files[f].ends_with(".gz") ? "packed" : "plain", hashes[f]);
  }
  return sha256_hex(content);
}

}  // namespace moelab
