#include "experiments/data/token_array.hpp"

#include "core/crc32.hpp"
#include "core/error.hpp"

#include <bit>
#include <charconv>
#include <string>
#include <string_view>

namespace moelab {
namespace {

static_assert(std::endian::native == std::endian::little, "token files hold little-endian ids");

// NumPy's format 1.0: magic, length of the dictionary, dictionary, in 128 bytes.
constexpr std::size_t kHeadBytes = 128;
constexpr std::string_view kBeforeLength = "{'descr': '<u2', 'fortran_order': False, 'shape': (";

std::string head_of(std::int64_t num_ids) {
  std::string dictionary = fmt::format("{}{},), }}", kBeforeLength, num_ids);
  dictionary.resize(kHeadBytes - 10, ' ');
  dictionary.back() = '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(dictionary.size());
  head += '\0';
  return head + dictionary;
}

}  // namespace

TokenArray::TokenArray(std::vector<std::uint16_t> ids) {
  auto owner = std::make_shared<const std::vector<std::uint16_t>>(std::move(ids));
  ids_ = *owner;
  owner_ = std::move(owner);
}

TokenArray::TokenArray(const std::filesystem::path& npy) {
  auto owner = std::make_shared<const MappedFile>(npy);
  const std::string_view text = owner->text();
  std::int64_t count = -1;
  if (text.size() >= kHeadBytes) {
    const char* digits = text.data() + 10 + kBeforeLength.size();
    std::from_chars(digits, text.data() + kHeadBytes, count);
  }
  const bool is_right = count >= 0 && text.substr(0, kHeadBytes) == head_of(count) &&
                        text.size() == kHeadBytes + 2 * static_cast<std::size_t>(count);
  require(is_right, "[tokens] {} is not a whole file of tokens", npy.string());
  ids_ = {reinterpret_cast<const std::uint16_t*>(text.data() + kHeadBytes), static_cast<std::size_t>(count)};
  owner_ = std::move(owner);
}

std::uint32_t TokenArray::checksum() const { return crc32_of(std::as_bytes(ids_)); }

TokenFileWriter::TokenFileWriter(const std::filesystem::path& npy)
    : path_(npy), file_(npy, std::ios::binary) {
  write(head_of(0));
}

void TokenFileWriter::write(std::span<const char> bytes) {
  file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file_.good()) throw CacheError(fmt::format("{} cannot be written", path_.string()));
}

void TokenFileWriter::append(std::span<const std::int32_t> ids) {
  buffer_.assign(ids.begin(), ids.end());
  write({reinterpret_cast<const char*>(buffer_.data()), 2 * buffer_.size()});
  num_ids_ += static_cast<std::int64_t>(ids.size());
}

void TokenFileWriter::finish() {
  file_.seekp(0);
  write(head_of(num_ids_));
  file_.close();
  if (!file_.good()) throw CacheError(fmt::format("{} cannot be written", path_.string()));
}

}  // namespace moelab
