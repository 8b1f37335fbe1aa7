// A folder of things that were computed and can be computed again.
#pragma once

#include "core/error.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace moelab {

// The cache cannot be written.
class CacheError : public Error {
 public:
  using Error::Error;
};

// $MOELAB_CACHE; else $XDG_CACHE_HOME/moelab; else ~/.cache/moelab. Empty: no cache, as MOELAB_CACHE=none
// asks.
std::filesystem::path default_cache_folder();

// Entries are folders named by what they hold. An entry is there whole or not at all, also while other
// processes make the same one, or are killed at it.
class CacheFolder {
 public:
  // Empty: a cache that holds nothing and takes nothing.
  explicit CacheFolder(std::filesystem::path root) : root_(std::move(root)) {}

  bool is_used() const { return !root_.empty(); }
  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path path_of(const std::string& key) const { return root_ / key; }
  bool has(const std::string& key) const;
  // Lets `fill` write the files of an entry into a new folder and puts it in place; where another process was
  // faster, its entry stays. CacheError if that cannot be written; what `fill` throws passes.
  void add(const std::string& key,
           const std::function<void(const std::filesystem::path& folder)>& fill) const;
  // For `fill`: writes a small file of an entry. CacheError if that cannot be written.
  static void write(const std::filesystem::path& file, const std::string& content);
  // Takes an entry away, say, a damaged one.
  void remove(const std::string& key) const;

 private:
  std::filesystem::path root_;
};

}  // namespace moelab
