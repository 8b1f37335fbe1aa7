// Every reader of files and texts that come from outside, as a function of bytes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace moelab {

struct FuzzedReader {
  std::string name;  // of its folder of seeds
  // Returns where the bytes are read or refused with an error of this project; anything else is a fault.
  std::function<void(std::string_view bytes)> read;
};
const std::vector<FuzzedReader>& fuzzed_readers();

}  // namespace moelab
