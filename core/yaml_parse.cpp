// The one place that sees yaml-cpp: its events become nodes at once.
#include "core/error.hpp"
#include "core/utf8.hpp"
#include "core/visible.hpp"
#include "core/yaml.hpp"

#include <map>
#include <sstream>
#include <utility>

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace moelab::yaml {

namespace {

constexpr std::size_t kMaxNesting = 64;
constexpr std::size_t kMaxValues = 100'000;

// Thrown to leave the parser once a bound is passed; the error has been recorded.
struct Stop {};

std::size_t count_values(const Node& node) {
  std::size_t count = 1;
  for (const Node& item : node.items) count += count_values(item);
  for (const Node::Entry& entry : node.entries) count += count_values(entry.value);
  return count;
}

class Builder final : public YAML::EventHandler {
 public:
  Builder(std::string_view text, std::shared_ptr<const Source> source, int first_column,
          Diagnostics& diagnostics)
      : text_(text), source_(std::move(source)), first_column_(first_column), diagnostics_(diagnostics) {}

  Node take_root() { return std::move(root_); }
  const Mark& start() const { return start_; }

  // yaml-cpp counts bytes from 0; a mark counts characters from 1.
  Mark mark(const YAML::Mark& at) const {
    Mark out{source_, at.line + 1, 1};
    const std::string_view line = source_->line(out.line);
    const int offset = at.line == 0 ? first_column_ - 1 : 0;
    const std::size_t bytes = static_cast<std::size_t>(std::max(at.column, 0) + offset);
    for (std::size_t i = 0; i < bytes; ++i) {
      if (i >= line.size() || !utf8::continues_character(line[i])) ++out.column;
    }
    return out;
  }

  void OnDocumentStart(const YAML::Mark& at) override { start_ = mark(at); }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& at, YAML::anchor_t anchor) override {
    Node node;
    node.mark = mark(at);
    // An absent value is noticed only at the next token: it is placed at its key.
    const std::string_view rest = text_at(node.mark);
    const bool is_written = rest.starts_with('~') || rest.starts_with("null") || rest.starts_with("Null") ||
                            rest.starts_with("NULL");
    if (!is_written && !open_.empty() && open_.back().has_key) node.mark = open_.back().key_mark;
    add(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = Node::scalar(value, tag == "!");
    node.mark = mark(at);
    check_tag(tag, node.mark);
    if (node.text.find('\0') != std::string::npos) {
      diagnostics_.error(node.mark, "the text holds the character NUL, which ends texts elsewhere");
    }
    if (node.quoted && !is_closed(at)) {
      diagnostics_.error(node.mark, "the quote is never closed");
      throw Stop{};
    }
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& at, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      diagnostics_.error(mark(at), "an alias inside the value that it stands for");
      throw Stop{};
    }
    add(found->second, YAML::NullAnchor);
  }

  void OnSequenceStart(const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::list(), mark(at), tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::mapping(), mark(at), tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor = YAML::NullAnchor;
    bool has_key = false;  // mapping: the next value belongs to `key`
    bool skip = false;     // mapping: the key was in error, its value is dropped
    std::string key;
    Mark key_mark;
  };

  std::string_view text_at(const Mark& at) const {
    const std::string_view line = source_->line(at.line);
    return line.substr(byte_of_column(line, at.column));
  }

  // yaml-cpp takes the end of the text for a closing quote.
  bool is_closed(const YAML::Mark& at) const {
    std::string_view rest = text_.substr(std::min(static_cast<std::size_t>(at.pos), text_.size()));
    if (!rest.starts_with('\'') && !rest.starts_with('"')) return true;
    for (std::size_t i = 1; i < rest.size(); ++i) {
      if (rest[0] == '"' && rest[i] == '\\') {
        ++i;
      } else if (rest[i] == rest[0]) {
        if (rest[0] == '"' || !rest.substr(i + 1).starts_with('\'')) return true;
        ++i;
      }
    }
    return false;
  }

  void check_tag(const std::string& tag, const Mark& at) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    diagnostics_.error(at, fmt::format("the tag `{}` has no meaning here", tag), "leave the tag out");
  }

  void open(Node node, Mark at, const std::string& tag, YAML::anchor_t anchor) {
    check_tag(tag, at);
    if (open_.size() >= kMaxNesting) {
      diagnostics_.error(at, fmt::format("nested more than {} levels deep", kMaxNesting));
      throw Stop{};
    }
    node.mark = std::move(at);
    open_.push_back({std::move(node), anchor, false, false, {}, {}});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.anchor, 1);
  }

  // Puts a finished value into what is open around it. Its own parts were counted when they were added.
  void add(Node node, YAML::anchor_t anchor, std::size_t known_count = 0) {
    num_values_ += known_count > 0 ? known_count : count_values(node);
    if (num_values_ > kMaxValues) {
      diagnostics_.error(node.mark, fmt::format("more than {} values once aliases are expanded", kMaxValues));
      throw Stop{};
    }
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.is_list()) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      take_key(parent, node);
    } else {
      if (!parent.skip) {
        parent.node.entries.push_back({std::move(parent.key), parent.key_mark, std::move(node)});
      }
      parent.has_key = false;
    }
  }

  void take_key(Open& parent, const Node& key) {
    parent.has_key = true;
    parent.skip = true;
    parent.key = key.text;
    parent.key_mark = key.mark;
    if (!key.is_scalar()) {
      diagnostics_.error(key.mark, fmt::format("a key must be a name, not {}", describe(key)));
    } else if (has_control_character(key.text)) {
      diagnostics_.error(key.mark, fmt::format("the key `{}` holds a control character", key.text));
    } else if (key.text == "<<") {
      diagnostics_.error(key.mark, "merge keys (`<<`) are not read",
                         "write the keys out, or let a variant use `extends`");
    } else if (const Node::Entry* first = parent.node.find_entry(key.text)) {
      diagnostics_.error(key.mark, fmt::format("the key `{}` stands twice in this mapping; first in line {}",
                                               key.text, first->key_mark.line));
    } else {
      parent.skip = false;
    }
  }

  std::string_view text_;
  std::shared_ptr<const Source> source_;
  int first_column_;
  Diagnostics& diagnostics_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t num_values_ = 0;
  Node root_;
  Mark start_;
};

// Length of the valid UTF-8 character at the start of `text`, or 0. Control characters count as invalid.
std::size_t character_length(std::string_view text) {
  const utf8::Character c = utf8::first_character(text);
  const bool is_allowed = c.number >= 0x20 || c.number == '\n' || c.number == '\t' || c.number == '\r';
  return is_allowed ? c.length : 0;
}

bool check_characters(std::string_view text, const std::shared_ptr<const Source>& source,
                      Diagnostics& diagnostics) {
  Mark at{source, 1, 1};
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) {
      diagnostics.error(
          at, fmt::format("byte 0x{:02X} is not part of UTF-8 text", static_cast<unsigned char>(text[0])));
      return false;
    }
    ++at.column;
    if (text[0] == '\n') {
      ++at.line;
      at.column = 1;
    }
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

Node parse(std::string_view text, const std::shared_ptr<const Source>& source, Diagnostics& diagnostics,
           int first_column) {
  if (!check_characters(text, source, diagnostics)) return {};
  Builder builder(text, source, first_column, diagnostics);
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder)) return {};
    Node root = builder.take_root();
    Diagnostics rest;
    Builder more(text, source, first_column, rest);
    bool has_more = false;
    try {
      has_more = parser.HandleNextDocument(more);
    } catch (const Stop&) {
      has_more = true;
    }
    if (has_more) {
      const bool separated = source->line(more.start().line).starts_with("---");
      diagnostics.error(more.start(), separated ? "a second document; one file is one experiment"
                                                : "this does not belong to what stands before it");
    }
    return root;
  } catch (const Stop&) {
  } catch (const YAML::Exception& e) {
    const Mark at = builder.mark(e.mark.is_null() ? YAML::Mark() : e.mark);
    const std::string_view line = source->line(at.line);
    const bool tab = line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
    diagnostics.error(at, "cannot be read as YAML: " + e.msg, tab ? "indent with spaces, not tabs" : "");
  }
  return {};
}

}  // namespace moelab::yaml
