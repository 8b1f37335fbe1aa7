// What is known of the names that are choices of a field and have no registry of their own.
#pragma once

#include <span>
#include <string_view>

namespace moelab {

struct KindSource {
  std::string_view part;  // as KnownPart::name
  std::string_view name;
  std::string_view help;  // empty: that of the field
  std::string_view source;
};

std::span<const KindSource> kind_sources();

}  // namespace moelab
