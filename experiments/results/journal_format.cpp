#include "experiments/results/journal_format.hpp"

#include "core/crc32.hpp"
#include "core/error.hpp"

namespace moelab {

namespace {

constexpr std::string_view kKey = ",\"crc32\":";

std::string seal_of(std::string_view bytes) {
  return fmt::format("{}{}}}", kKey, crc32_of(std::as_bytes(std::span(bytes))));
}

}  // namespace

std::string sealed_line(const std::string& object) { return object + seal_of(object) + '\n'; }

void check_seal(std::string_view line) {
  const std::size_t end = line.rfind(kKey);
  require(end != std::string_view::npos, "it does not end with a crc32");
  require(line.substr(end) == seal_of(line.substr(0, end)),
          "its crc32 is that of another line: it was changed");
}

}  // namespace moelab
