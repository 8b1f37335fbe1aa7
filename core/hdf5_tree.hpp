// Writes a tree of groups and datasets into an open file.
#pragma once

#include "core/hdf5.hpp"
#include "core/hdf5_handle.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace moelab::hdf5 {

// Links and attributes keep the order in which they were made.
inline constexpr unsigned kTracked = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;

// What was written, to be found again when the file is verified.
struct Written {
  std::string path;
  std::size_t size;
  std::uint64_t checksum;
};

// "PATH of FILE", for messages.
inline std::string at(const std::string& file, const std::string& path) { return path + " of " + file; }

class TreeWriter {
 public:
  TreeWriter(std::string file, const WriteOptions& options) : file_(std::move(file)), options_(options) {}

  void write_group(hid_t group, const std::string& path, const Group& tree);
  void write_attribute(hid_t object, const std::string& path, const std::string& name,
                       const AttributeValue& value) const;
  const std::vector<Written>& written() const { return written_; }

 private:
  using Scales = std::map<std::string, Handle>;
  void check_names(const std::string& path, const Group& tree) const;
  void write_scales(hid_t group, const std::string& path, const Group& tree, Scales& scales);
  Handle write_dataset(hid_t group, const std::string& path, const Dataset& dataset);
  Handle creation_properties(const std::string& path, const Dataset& dataset,
                             std::size_t element_bytes) const;
  void write_values(hid_t group, const std::string& path, const Dataset& dataset, Handle& out);

  std::string file_;
  WriteOptions options_;
  std::vector<Written> written_;
};

}  // namespace moelab::hdf5
