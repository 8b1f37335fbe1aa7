// Inside of core/hdf5: the lock around the library, handles that close themselves, and return codes turned
// into errors. Include only from core/hdf5_*.cpp.
#pragma once

#define H5_USE_110_API  // the same functions in later versions of the library

#include "core/error.hpp"
#include "core/hdf5.hpp"

#include <cassert>
#include <mutex>
#include <string>
#include <utility>

#include <hdf5_hl.h>

namespace moelab::hdf5 {

// Hold one while any function of the library runs, closes included. HDF5 may be built without locks of its
// own; Debian 12 builds it with them ("Threadsafety: yes"), so there a call outside of this lock does no harm
// that a test could see: handles and return codes assert that it is held. Also keeps the library from
// printing its error stack.
class LibraryLock {
 public:
  LibraryLock();
  ~LibraryLock();
  LibraryLock(const LibraryLock&) = delete;
  LibraryLock& operator=(const LibraryLock&) = delete;
  // Whether the calling thread holds one.
  static bool held();

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

// The innermost cause on the library's error stack in one line, with a hint where it is about file locks.
std::string library_error();

// Passes a return code on, or throws "[hdf5] <what> <object>: <cause>".
template <class Code>
Code check(Code code, const char* what, const std::string& object) {
  assert(LibraryLock::held());
  if (code < 0) fail("[hdf5] cannot {} {}: {}", what, object, library_error());
  return code;
}

// Owns an identifier. close() reports failure; the destructor, on the way out of an error, cannot.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close closer, const char* what, const std::string& object)
      : id_(check(id, what, object)), close_(closer) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (id_ < 0) return;
    assert(LibraryLock::held());
    close_(id_);
  }
  hid_t get() const {
    assert(LibraryLock::held());
    return id_;
  }
  void close(const std::string& object) {
    check(close_(std::exchange(id_, H5I_INVALID_HID)), "close", object);
  }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

// Type in memory and in the file of a C++ type.
template <class T>
struct TypeOf;
template <>
struct TypeOf<float> {
  static hid_t memory() { return H5T_NATIVE_FLOAT; }
  static hid_t file() { return H5T_IEEE_F32LE; }
};
template <>
struct TypeOf<double> {
  static hid_t memory() { return H5T_NATIVE_DOUBLE; }
  static hid_t file() { return H5T_IEEE_F64LE; }
};
template <>
struct TypeOf<std::int16_t> {
  static hid_t memory() { return H5T_NATIVE_INT16; }
  static hid_t file() { return H5T_STD_I16LE; }
};
template <>
struct TypeOf<std::int32_t> {
  static hid_t memory() { return H5T_NATIVE_INT32; }
  static hid_t file() { return H5T_STD_I32LE; }
};
template <>
struct TypeOf<std::int64_t> {
  static hid_t memory() { return H5T_NATIVE_INT64; }
  static hid_t file() { return H5T_STD_I64LE; }
};
template <>
struct TypeOf<std::uint8_t> {
  static hid_t memory() { return H5T_NATIVE_UINT8; }
  static hid_t file() { return H5T_STD_U8LE; }
};

// Variable-length UTF-8.
Handle string_type(H5T_cset_t character_set = H5T_CSET_UTF8);

// A few bytes that change when any value does.
std::uint64_t checksum_of_values(const Values& values);

}  // namespace moelab::hdf5
