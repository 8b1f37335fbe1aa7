#include "core/error.hpp"
#include "core/yaml.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

namespace moelab::yaml {

namespace {

// Words that some YAML reader takes for something other than text.
bool is_reserved(std::string word) {
  static constexpr std::array<std::string_view, 13> kReserved = {
      "true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf", "infinity", "none"};
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kReserved.begin(), kReserved.end(), word) != kReserved.end();
}

// True if the text can stand without quotes and still be read as text.
bool is_plain_text(const std::string& text) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '/'; };
  if (text.empty() || is_reserved(text)) return false;
  const auto first = static_cast<unsigned char>(text[0]);
  if (!is_word(first) || std::isdigit(first) != 0) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_word(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '+';
  });
}

std::string quote(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string scalar_text(const Node& node) {
  if (node.is_null()) return "null";
  const bool needs_quotes = node.quoted || node.text.find_first_of(",[]{}#:\"'\n") != std::string::npos;
  if (!needs_quotes) return node.text;
  return is_plain_text(node.text) ? node.text : quote(node.text);
}

std::string key_text(const std::string& key) { return is_plain_text(key) ? key : quote(key); }

bool is_leaf(const Node& node) { return node.is_null() || node.is_scalar(); }

// Whether the node is written on the line of its key.
bool is_inline(const Node& node) {
  if (node.is_list()) return std::all_of(node.items.begin(), node.items.end(), is_inline);
  return is_leaf(node) || node.entries.empty();
}

void emit_block(const Node& node, std::size_t indent, bool first_is_placed, std::string& out) {
  const std::string margin(indent, ' ');
  bool place = !first_is_placed;
  if (node.is_list()) {
    for (const Node& item : node.items) {
      if (place) out += margin;
      place = true;
      out += "- ";
      if (is_inline(item)) {
        out += emit_flow(item) + '\n';
      } else {
        emit_block(item, indent + 2, true, out);
      }
    }
    return;
  }
  for (const Node::Entry& entry : node.entries) {
    if (place) out += margin;
    place = true;
    out += key_text(entry.key) + ':';
    if (is_inline(entry.value)) {
      out += ' ' + emit_flow(entry.value) + '\n';
    } else {
      out += '\n';
      emit_block(entry.value, indent + 2, false, out);
    }
  }
}

}  // namespace

std::string emit_flow(const Node& node) {
  std::string out;
  if (node.is_list()) {
    for (const Node& item : node.items) out += (out.empty() ? "" : ", ") + emit_flow(item);
    return '[' + out + ']';
  }
  if (node.is_mapping()) {
    for (const Node::Entry& entry : node.entries) {
      out += (out.empty() ? "" : ", ") + key_text(entry.key) + ": " + emit_flow(entry.value);
    }
    return '{' + out + '}';
  }
  return scalar_text(node);
}

std::string emit(const Node& node) {
  if (is_inline(node)) return emit_flow(node) + '\n';
  std::string out;
  emit_block(node, 0, false, out);
  return out;
}

std::string number_text(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  std::string text = fmt::format("{}", value);
  const std::size_t exponent = text.find('e');
  if (text.find('.') == std::string::npos) {
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  }
  return text;
}

}  // namespace moelab::yaml
