// The idx format of MNIST (LeCun et al. 1998): a magic number with type and number of dimensions, the sizes
// as big-endian 32-bit integers, then the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moelab {

struct IdxFile {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;
};

// `path`, or `path`.gz where only that is there; empty where neither is.
std::string find_idx_file(const std::string& path);

// Reads a file of unsigned bytes, unpacked where it is packed. Error where it is missing, of another type, or
// shorter or longer than its header says.
IdxFile read_idx_file(const std::string& path);

}  // namespace moelab
