// YAML text as plain values with positions, read strictly.
#pragma once

#include "core/diagnostics.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace moelab::yaml {

// A value of a YAML text. Aliases are expanded; a mapping keeps the order of its keys.
struct Node {
  enum class Kind { null, scalar, list, mapping };
  struct Entry;

  Kind kind = Kind::null;
  Mark mark;                   // where it starts; of an absent value, the key
  std::string text;            // scalar: as written, without quotes
  bool quoted = false;         // scalar: in quotes or a block, so never a number
  bool is_final = false;       // scalar: references in it are looked up already, `${` means itself
  std::vector<Node> items;     // list
  std::vector<Entry> entries;  // mapping

  static Node scalar(std::string text, bool quoted = false);
  static Node list();
  static Node mapping();

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_list() const { return kind == Kind::list; }
  bool is_mapping() const { return kind == Kind::mapping; }

  // The value of a key; null pointer if this is not a mapping or has no such key.
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  const Entry* find_entry(std::string_view key) const;
  // Sets the value of a key, appended if it is new.
  Node& set(std::string_view key, Node value);
  void erase(std::string_view key);

  // The same content, wherever it was written. Order of keys counts.
  bool operator==(const Node& other) const;

 private:
  static Node of(Kind kind);
};

struct Node::Entry {
  std::string key;
  Mark key_mark;
  Node value;
};

inline Node Node::list() { return of(Kind::list); }
inline Node Node::mapping() { return of(Kind::mapping); }

// Places the whole value, keys included, at one mark.
void set_marks(Node& node, const Mark& mark);

// Marks every scalar of the value as final.
void set_final(Node& node);

// What a scalar of this text is called in messages: "`fast`", "a list", ...
std::string describe(const Node& node);

// Reads one document. Errors (syntax, a second document, duplicate keys, `<<`, tags, keys that are not names,
// nesting beyond 64, more than 100,000 values after expanding aliases, text that is not UTF-8) go to
// `diagnostics`; what could be read comes back all the same. A byte order mark and CRLF are fine. An empty
// text is null. `first_column` is where the text starts on the first line of `source`.
Node parse(std::string_view text, const std::shared_ptr<const Source>& source, Diagnostics& diagnostics,
           int first_column = 1);

// A source made of a file's bytes: byte order mark removed, CRLF turned into LF. Error if it cannot be read.
std::shared_ptr<const Source> read_source(const std::string& path);
std::shared_ptr<const Source> make_source(std::string name, std::string_view text);

// YAML text that both YAML 1.1 and 1.2 readers understand alike; block style, lists of scalars in brackets.
// Ends with a newline.
std::string emit(const Node& node);
// One line: {a: 1, b: [2, 3]}.
std::string emit_flow(const Node& node);

// A double as the shortest text that reads back as itself and that YAML 1.1 takes for a number: 1.0e-05.
std::string number_text(double value);

}  // namespace moelab::yaml
