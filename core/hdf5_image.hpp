// Inside of core/hdf5: a file that the library makes in memory. Include only from core/hdf5_*.cpp.
#pragma once

#include "core/hdf5_handle.hpp"

#include <span>
#include <string>

namespace moelab::hdf5 {

// Takes over the memory of the library's in-memory driver when the file is closed, without a copy.
class FileImage {
 public:
  FileImage() = default;
  FileImage(const FileImage&) = delete;
  FileImage& operator=(const FileImage&) = delete;
  ~FileImage();
  // Makes files that are created with this access list live in memory and end up here.
  void attach(hid_t access, const std::string& object);
  // Called after the file is closed, with the size that it had.
  void set_size(std::size_t size) { size_ = size; }
  void append(std::span<const char> more);
  std::span<const char> bytes() const { return {static_cast<const char*>(memory_), size_}; }

 private:
  static herr_t keep(void* memory, H5FD_file_image_op_t operation, void* image);
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace moelab::hdf5
