// A Hugging Face config.json, read strictly: every field must be one that the family uses or one that is
// known to change neither a parameter nor a product. Any other field is an error, because a wrong number is
// worse than none.
#pragma once

#include "core/tensor.hpp"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moelab {

class HfConfig {
 public:
  // Parses the text. `where` (a file name) starts every message. Throws ConfigError.
  HfConfig(const std::string& json_text, std::string where);
  HfConfig(HfConfig&&) noexcept;
  HfConfig& operator=(HfConfig&&) noexcept;
  ~HfConfig();

  const std::string& where() const { return where_; }
  bool has(const char* key) const;      // present and not null
  bool is_null(const char* key) const;  // present and null

  // Non-negative integers. With `otherwise`: the default of the family's config class, where the field is
  // missing. The second form takes null like a missing field.
  Index integer(const char* key, Index otherwise);
  std::optional<Index> integer(const char* key);
  Index required_integer(const char* key);
  // An integer that may be -1 ("the last").
  Index signed_integer(const char* key, Index otherwise);
  // An integer, or a word that stands for a value that follows from others (nothing is returned then).
  std::optional<Index> integer_or(const char* key, const char* word);
  bool flag(const char* key, bool otherwise);
  std::string text(const char* key, std::string otherwise);
  std::vector<Index> integers(const char* key);  // empty where missing or null
  std::vector<std::string> texts(const char* key);
  HfConfig object(const char* key);  // a nested object; fields missing in it have their defaults

  // Fields of this family that change no count.
  void neutral(std::initializer_list<const char*> keys);
  // The only modelled value of a field that would change the architecture; a missing one has that value.
  void only(const char* key, bool value);
  // Throws if a field was not used, is not neutral, and is not null.
  void finish() const;

  [[noreturn]] void error(const std::string& message) const;

 private:
  struct Json;
  HfConfig(std::unique_ptr<Json> json, std::string where);
  std::unique_ptr<Json> json_;
  std::string where_;
};

}  // namespace moelab
