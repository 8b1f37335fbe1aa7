// SHA-256 (FIPS 180-4), to name a configuration by its content.
#pragma once

#include <string>
#include <string_view>

namespace moelab {

// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace moelab
