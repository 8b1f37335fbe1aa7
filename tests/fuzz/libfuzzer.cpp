// One reader, MOELAB_FUZZED, for libFuzzer.
#include "tests/fuzz/readers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto reader =
      std::ranges::find(moelab::fuzzed_readers(), std::string(MOELAB_FUZZED), &moelab::FuzzedReader::name);
  reader->read({reinterpret_cast<const char*>(data), size});
  return 0;
}
