#include "core/yaml.hpp"

#include "core/error.hpp"
#include "core/file.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace moelab::yaml {

Node Node::of(Kind kind) {
  Node node;
  node.kind = kind;
  return node;
}

Node Node::scalar(std::string text, bool quoted) {
  Node node = of(Kind::scalar);
  node.text = std::move(text);
  node.quoted = quoted;
  return node;
}

const Node::Entry* Node::find_entry(std::string_view key) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

const Node* Node::find(std::string_view key) const {
  const Entry* entry = find_entry(key);
  return entry == nullptr ? nullptr : &entry->value;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

Node& Node::set(std::string_view key, Node value) {
  if (Node* old = find(key)) return *old = std::move(value);
  entries.push_back({std::string(key), value.mark, std::move(value)});
  return entries.back().value;
}

void Node::erase(std::string_view key) {
  std::erase_if(entries, [&](const Entry& e) { return e.key == key; });
}

bool Node::operator==(const Node& other) const {
  const auto same_entry = [](const Entry& a, const Entry& b) { return a.key == b.key && a.value == b.value; };
  return kind == other.kind && text == other.text && quoted == other.quoted && items == other.items &&
         std::equal(entries.begin(), entries.end(), other.entries.begin(), other.entries.end(), same_entry);
}

void set_final(Node& node) {
  node.is_final = node.is_scalar();
  for (Node& item : node.items) set_final(item);
  for (Node::Entry& entry : node.entries) set_final(entry.value);
}

void set_marks(Node& node, const Mark& mark) {
  node.mark = mark;
  for (Node& item : node.items) set_marks(item, mark);
  for (Node::Entry& entry : node.entries) {
    entry.key_mark = mark;
    set_marks(entry.value, mark);
  }
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::mapping:
      return "a mapping";
    case Node::Kind::scalar:
      break;
  }
  return node.quoted ? fmt::format("the text \"{}\"", node.text) : fmt::format("`{}`", node.text);
}

std::shared_ptr<const Source> make_source(std::string name, std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string lines;
  lines.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    lines += text[i];
  }
  return std::make_shared<const Source>(std::move(name), std::move(lines));
}

std::shared_ptr<const Source> read_source(const std::string& path) {
  std::error_code unknown;  // then reading it tells why
  if (std::filesystem::is_directory(path, unknown))
    throw ConfigError(fmt::format("{}: is a folder, not a file", path));
  try {
    return make_source(path, read_file(path));
  } catch (const Error& e) {
    throw ConfigError(e.what());
  }
}

}  // namespace moelab::yaml
