#include "experiments/config/interpolate.hpp"

#include "experiments/config/patch.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace moelab {

using yaml::Node;

namespace {

constexpr std::size_t kMaxValues = 100'000;
constexpr std::size_t kMaxBytes = 10'000'000;  // put together from references inside texts
constexpr std::size_t kMaxDepth = 64;          // of references that lead to references

class Interpolator {
 public:
  Interpolator(const Node& root, Diagnostics& diagnostics) : root_(root), diagnostics_(diagnostics) {}

  void expand(Node& node) {
    if (is_exceeded_) return;
    if (++num_values_ > kMaxValues) {
      exceed(node.mark, fmt::format("more than {} values once references are expanded", kMaxValues));
      return;
    }
    for (Node& item : node.items) expand(item);
    for (Node::Entry& entry : node.entries) expand(entry.value);
    if (node.is_scalar() && !node.is_final && node.text.find("${") != std::string::npos) expand_scalar(node);
  }

 private:
  void expand_scalar(Node& node) {
    const std::string text = node.text;
    std::string out;
    std::size_t at = 0;
    while (true) {
      const std::size_t open = text.find("${", at);
      out += text.substr(at, open - at);
      if (open == std::string::npos) break;
      const std::size_t close = text.find('}', open);
      if (close == std::string::npos) {
        diagnostics_.error(node.mark, fmt::format("`{}`: the `${{` is never closed", text));
        return;
      }
      Node value = look_up(text.substr(open + 2, close - open - 2), node.mark);
      if (failed_) return;
      if (open == 0 && close + 1 == text.size()) {
        yaml::set_marks(value, node.mark);
        node = std::move(value);
        return;
      }
      if (!value.is_scalar()) {
        diagnostics_.error(node.mark,
                           fmt::format("`{}`: {} cannot stand inside a text", text, yaml::describe(value)));
        return;
      }
      out += value.text;
      num_bytes_ += value.text.size();
      if (num_bytes_ > kMaxBytes) {
        exceed(node.mark, fmt::format("more than {} bytes once references are expanded", kMaxBytes));
        return;
      }
      at = close + 1;
    }
    node.text = out;
    node.quoted = true;
  }

  Node look_up(const std::string& name, const Mark& mark) {
    failed_ = false;
    if (name.starts_with("env:")) return environment(name.substr(4), mark);
    const Node* found = find_path(root_, name);
    if (name.empty() || found == nullptr) {
      return failure(mark, fmt::format("`${{{}}}`: there is no such key", name),
                     "name a key of this file by its path, as in ${model.d_model}");
    }
    if (std::find(open_.begin(), open_.end(), name) != open_.end()) {
      return failure(mark, fmt::format("`${{{}}}` leads back to itself", name));
    }
    if (open_.size() >= kMaxDepth) {
      exceed(mark, fmt::format("`${{{}}}`: more than {} references lead to one another", name, kMaxDepth));
      failed_ = true;
      return {};
    }
    open_.push_back(name);
    Node value = *found;
    expand(value);
    open_.pop_back();
    failed_ = is_exceeded_;
    return value;
  }

  Node environment(const std::string& text, const Mark& mark) {
    const std::size_t comma = text.find(',');
    const std::string name = text.substr(0, comma);
    if (const char* value = std::getenv(name.c_str())) return plain(value, mark);
    if (comma != std::string::npos) return plain(text.substr(comma + 1), mark);
    return failure(mark, fmt::format("the environment variable {} is not set", name),
                   fmt::format("set it, or give a default: ${{env:{},DEFAULT}}", name));
  }

  Node plain(const std::string& text, const Mark& mark) {
    Node node = text.empty() ? Node::scalar(text, true) : Node::scalar(text);
    if (text == "null" || text == "~") node = Node();
    node.mark = mark;
    return node;
  }

  // One error; nothing more is expanded.
  void exceed(const Mark& mark, std::string message) {
    if (!is_exceeded_) diagnostics_.error(mark, std::move(message));
    is_exceeded_ = true;
  }

  Node failure(const Mark& mark, std::string message, std::string help = {}) {
    failed_ = true;
    diagnostics_.error(mark, std::move(message), std::move(help));
    return {};
  }

  const Node& root_;
  Diagnostics& diagnostics_;
  std::vector<std::string> open_;  // paths being looked up
  bool failed_ = false;
  std::size_t num_values_ = 0;
  std::size_t num_bytes_ = 0;
  bool is_exceeded_ = false;
};

}  // namespace

void interpolate(Node& root, Diagnostics& diagnostics) {
  const Node original = root;
  Interpolator(original, diagnostics).expand(root);
}

void interpolate(Node& part, const Node& root, Diagnostics& diagnostics) {
  Interpolator(root, diagnostics).expand(part);
}

}  // namespace moelab
