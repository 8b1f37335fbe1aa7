#include "core/hdf5_image.hpp"

#include "core/error.hpp"
#include "core/hdf5_handle.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace moelab::hdf5 {

namespace {

constexpr std::size_t kGrowth = 1 << 18;  // bytes

void* allocate(size_t size, H5FD_file_image_op_t, void*) { return std::malloc(size); }
void* resize(void* memory, size_t size, H5FD_file_image_op_t, void*) { return std::realloc(memory, size); }
void* same(void* image) { return image; }
herr_t release_nothing(void*) { return 0; }

}  // namespace

FileImage::~FileImage() { std::free(memory_); }

void FileImage::append(std::span<const char> more) {
  void* larger = std::realloc(memory_, size_ + more.size());
  require(larger != nullptr, "[hdf5] there is no memory for a file of {} bytes", size_ + more.size());
  memory_ = larger;
  std::memcpy(static_cast<char*>(memory_) + size_, more.data(), more.size());
  size_ += more.size();
}

herr_t FileImage::keep(void* memory, H5FD_file_image_op_t operation, void* image) {
  if (operation == H5FD_FILE_IMAGE_OP_FILE_CLOSE) {
    std::free(std::exchange(static_cast<FileImage*>(image)->memory_, memory));
  } else {
    std::free(memory);
  }
  return 0;
}

void FileImage::attach(hid_t access, const std::string& object) {
  check(H5Pset_fapl_core(access, kGrowth, false), "create", object);
  H5FD_file_image_callbacks_t callbacks{};
  callbacks.image_malloc = allocate;
  callbacks.image_realloc = resize;
  callbacks.image_free = keep;
  callbacks.udata_copy = same;
  callbacks.udata_free = release_nothing;
  callbacks.udata = this;
  check(H5Pset_file_image_callbacks(access, &callbacks), "create", object);
}

}  // namespace moelab::hdf5
