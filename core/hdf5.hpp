// The one door to HDF5. A file is a value: a tree of groups, datasets and attributes that is written whole
// and replaces the old file only when the new one is complete on the disk, so a reader sees a good file at
// any moment and after any kill. What is written is a netCDF-4 file that every HDF5 reader opens: each
// dimension of each dataset has a dimension scale in its own group, creation order is tracked, strings are
// variable-length UTF-8.
//
// The library below is entered by one thread at a time; every function here may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace moelab::hdf5 {

using AttributeValue =
    std::variant<std::string, double, std::int64_t, std::vector<double>, std::vector<std::int64_t>,
                 std::vector<std::uint8_t>, std::vector<std::string>>;
// At most 60,000 bytes; longer text belongs in a dataset.
struct Attribute {
  std::string name;
  AttributeValue value;
};

// The values of a dataset in row-major order. The spans are not copied: what they refer to must outlive the
// write.
using Values = std::variant<std::vector<float>, std::vector<double>, std::vector<std::int16_t>,
                            std::vector<std::int32_t>, std::vector<std::int64_t>, std::vector<std::uint8_t>,
                            std::vector<std::string>, std::span<const float>, std::span<const double>>;
std::size_t size_of(const Values& values);

// What a dataset means to a reader.
struct Meaning {
  std::string units;      // "1" for a pure number, "s", "nat", "token", ...
  std::string long_name;  // a few words
};

struct Dataset {
  std::string name;
  Values values;
  std::vector<std::size_t> shape;       // empty: a scalar
  std::vector<std::string> dimensions;  // one name an axis. A 1-D dataset named as its dimension is its scale
  Meaning meaning;
  std::optional<double> fill;         // marks missing integers (_FillValue); a missing float is NaN
  std::vector<Attribute> attributes;  // further ones
};

struct Group {
  // A child that is made only when it is written, so that many runs need not be in memory at once.
  struct Deferred {
    std::string name;  // the group's own name is not looked at
    std::function<Group()> make;
  };

  std::string name;  // empty at the root
  std::vector<Attribute> attributes;
  std::vector<Dataset> datasets;
  std::vector<Group> groups;
  std::vector<Deferred> deferred;

  void attribute(std::string attribute_name, AttributeValue value);
  // A vector over one dimension.
  void series(std::string dataset_name, std::string dimension, Values values, Meaning meaning);
  // An array over several; the product of the shape must be the number of values.
  void array(std::string dataset_name, std::vector<std::string> dimensions, std::vector<std::size_t> shape,
             Values values, Meaning meaning);
  // One string, of any length.
  void text(std::string dataset_name, std::string text, std::string long_name);
  // The child of that name, made where it is missing.
  Group& group(std::string_view group_name);
  // Null where there is none.
  const Dataset* find(std::string_view dataset_name) const;
  const Group* find_group(std::string_view group_name) const;
  const Attribute* find_attribute(std::string_view attribute_name) const;
};

// flag_values 0, 1, ... and flag_meanings on a dataset of bytes.
void set_flags(Dataset& dataset, std::span<const std::string> meanings);

struct WriteOptions {
  bool compress = true;  // shuffle + deflate; off for weights, which do not compress
  // Whether dimensions have scales. What is attached to a scale is listed there, and the library writes the
  // whole list anew each time, so thousands of datasets in a group take long and leave large files.
  bool scales = true;
};

// Writes the tree to `<path>.tmp`, flushes, closes, syncs, opens it again and reads everything back, renames
// it to `path`, and syncs the folder. A dimension without a scale gets one that counts from 0. Error naming
// file and object when anything fails; the old file is then still there, and the temporary is gone.
void write_file(const std::filesystem::path& path, const Group& root, const WriteOptions& options = {});

// write_file ends a file with 16 bytes that other readers pass over: a mark, and the CRC-32 of all before it.
// The HDF5 library can crash on a damaged file, so files that may come from elsewhere are looked at first.
// Returns the path; DamagedFile where the mark is missing (the file is cut, or another program wrote it) or
// the sum is wrong, another Error where the file cannot be read.
const std::filesystem::path& require_sealed(const std::filesystem::path& path);
// The sum, hexadecimal, of a file that is whole; else the same errors. The library is not needed for it.
std::string checksum_of(const std::filesystem::path& path);

// An axis of any length, for Reader::read_array.
inline constexpr std::size_t kAnyLength = std::numeric_limits<std::size_t>::max();

template <class T>
struct Array {
  std::vector<std::size_t> shape;
  std::vector<T> values;  // in row-major order
};

// Reads a file. No file is trusted: memory is taken for at most 1,100 times the bytes of the file, and groups
// must form a tree. Paths are as in "runs/a/train/loss"; "" is the root. Errors name file and object; they
// are DamagedFile where what the file holds is of another shape or type than is asked for.
class Reader {
 public:
  explicit Reader(std::filesystem::path path);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  const std::filesystem::path& path() const;
  bool has(const std::string& object) const;
  // Children in the order they were created.
  std::vector<std::string> groups(const std::string& group = "") const;
  std::vector<std::string> datasets(const std::string& group = "") const;
  std::vector<std::size_t> shape(const std::string& dataset) const;
  // All values, converted to T (float, double, int32, int64, uint8 or std::string).
  template <class T>
  std::vector<T> read(const std::string& dataset) const;
  // The same with the shape, which must be as wanted: Error saying both where it is not.
  template <class T>
  Array<T> read_array(const std::string& dataset, std::initializer_list<std::size_t> wanted) const;
  // All values into memory of exactly that size (float or double).
  template <class T>
  void read_into(const std::string& dataset, std::span<T> values) const;
  // A scalar string.
  std::string text(const std::string& dataset) const;
  // Nothing where there is no such attribute.
  std::optional<AttributeValue> attribute(const std::string& object, const std::string& name) const;
  // Empty where there is none, or it is no text.
  std::string text_attribute(const std::string& object, const std::string& name) const;
  // One dataset or a whole group, as it would be written again.
  Dataset dataset(const std::string& dataset) const;
  Group group(const std::string& group = "") const;

 private:
  struct State;
  using Address = std::pair<unsigned long, std::uint64_t>;  // of an object: the file, and where it is there
  // The group with all below it; Error for one that was seen.
  Group tree(const std::string& group, std::set<Address>& seen) const;
  std::unique_ptr<State> state_;
};

}  // namespace moelab::hdf5
