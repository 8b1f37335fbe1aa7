#include "core/error.hpp"
#include "core/file.hpp"
#include "core/hdf5.hpp"
#include "core/hdf5_handle.hpp"
#include "core/hdf5_image.hpp"
#include "core/hdf5_seal.hpp"
#include "core/hdf5_tree.hpp"

namespace moelab::hdf5 {

namespace {

std::uint64_t checksum_of(const Reader& reader, const Written& expected, const std::string& file) {
  const Values values = reader.dataset(expected.path).values;
  require(size_of(values) == expected.size, "[hdf5] {} came back with {} values instead of {}",
          at(file, expected.path), size_of(values), expected.size);
  return checksum_of_values(values);
}

// Makes the file in memory: the library does not survive a full disk (it reports success, or crashes when it
// closes), a write of our own does.
std::vector<Written> make_image(const std::string& file, const Group& root, const WriteOptions& options,
                                FileImage& image) {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "create", file);
  check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V18), "create", file);
  check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "create", file);
  image.attach(access.get(), file);
  Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "create", file);
  check(H5Pset_link_creation_order(creation.get(), kTracked), "create", file);
  check(H5Pset_attr_creation_order(creation.get(), kTracked), "create", file);
  // Under a name that cannot be a file: the library would read an old file of the name into memory first.
  Handle handle(H5Fcreate("/dev/null/in-memory", H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose,
                "create", file);
  TreeWriter writer(file, options);
  {
    Handle group(H5Gopen2(handle.get(), "/", H5P_DEFAULT), H5Gclose, "open", file);
    writer.write_group(group.get(), "", root);
    group.close(file);
  }
  check(H5Fflush(handle.get(), H5F_SCOPE_GLOBAL), "flush", file);
  hsize_t size = 0;
  check(H5Fget_filesize(handle.get(), &size), "measure", file);
  handle.close(file);
  image.set_size(size);
  return writer.written();
}

}  // namespace

void write_file(const std::filesystem::path& path, const Group& root, const WriteOptions& options) {
  const LibraryLock lock;
  FileImage image;
  const std::vector<Written> written = make_image(path.string(), root, options, image);
  image.append(seal_of(image.bytes()));
  replace_file(path, image.bytes(), [&](const std::filesystem::path& temporary) {
    const Reader reader(temporary);
    for (const Written& w : written)
      require(checksum_of(reader, w, temporary.string()) == w.checksum,
              "[hdf5] {} came back with other values", at(temporary.string(), w.path));
  });
}

}  // namespace moelab::hdf5
