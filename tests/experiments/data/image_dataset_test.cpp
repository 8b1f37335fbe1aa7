// Images from idx files that the test writes byte by byte.
#include "experiments/data/image_dataset.hpp"

#include "core/error.hpp"
#include "experiments/data/corpus.hpp"
#include "experiments/data/idx_file.hpp"
#include "experiments/data/make_dataset.hpp"
#include "experiments/data/missing_data.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cmath>
#include <map>
#include <set>

#include <zlib.h>

using namespace moelab;

namespace {

std::string idx(std::initializer_list<int> shape, const std::string& values) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const int size : shape) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>((size >> shift) & 255);
  }
  return bytes + values;
}

void write_packed(const TemporaryFolder& folder, const std::string& name, const std::string& bytes) {
  const gzFile file = gzopen((folder.path() / name).c_str(), "wb");
  REQUIRE(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size()));
  REQUIRE(gzclose(file) == Z_OK);
}

// Image i of `count` has pixels first + 16 i, first + 16 i + 1, ...; label i % 3.
void write_images(const TemporaryFolder& folder, const std::string& set, int count, int first) {
  std::string pixels, labels;
  for (int i = 0; i < 16 * count; ++i) pixels += static_cast<char>(first + i);
  for (int i = 0; i < count; ++i) labels += static_cast<char>(i % 3);
  write_packed(folder, set + "-images-idx3-ubyte.gz", idx({count, 4, 4}, pixels));
  folder.write(set + "-labels-idx1-ubyte", idx({count}, labels));
}

ImageDataConfig config_of(const TemporaryFolder& folder) {
  ImageDataConfig config;
  config.path = folder.path().string();
  config.image_size = 4;
  config.patch_size = 2;
  config.num_classes = 3;
  return config;
}

struct Files {
  Files() {
    write_images(folder, "train", 7, 0);
    write_images(folder, "t10k", 5, 100);
  }
  TemporaryFolder folder;
};

std::string error_of(const ImageDataConfig& config) {
  try {
    const ImageDataset data(config);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an idx file is read packed or not, and a bad one is named", "[images]") {
  const TemporaryFolder folder;
  const std::string plain = folder.write("plain", idx({2, 3}, "abcdef"));
  write_packed(folder, "packed.gz", idx({2, 3}, "abcdef"));
  for (const std::string& file : {plain, (folder.path() / "packed").string()}) {
    const IdxFile read = read_idx_file(file);
    CHECK(read.shape == std::vector<std::int64_t>{2, 3});
    CHECK(read.values == std::vector<std::uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'});
  }
  CHECK_THROWS_WITH(read_idx_file(folder.write("short", idx({2, 3}, "abcde"))),
                    Contains("has 5 values where its header says 2 x 3"));
  // 2^64 values, which 64 bits count as none.
  CHECK_THROWS_WITH(read_idx_file(folder.write("many", idx({65536, 65536, 65536, 65536}, ""))),
                    Contains("has 0 values where its header says 65536 x 65536 x 65536 x 65536"));
  CHECK_THROWS_WITH(read_idx_file(folder.write("cut", idx({2, 3}, "").substr(0, 7))),
                    Contains("ends within its header"));
  CHECK_THROWS_WITH(read_idx_file(folder.write("text", "hello world")), Contains("not an idx file"));
  CHECK_THROWS_WITH(read_idx_file((folder.path() / "nothing").string()), Contains("there is no file"));
}

TEST_CASE("an image is the sequence of its patches, scaled over the training images", "[images]") {
  const Files files;
  const ImageDataset data(config_of(files.folder));
  CHECK(data.seq_len() == 4);
  CHECK(data.num_features() == 4);
  CHECK(data.num_classes() == 3);
  CHECK(data.vocab_size() == 0);
  CHECK(data.domains() == std::vector<std::string>{"class_0", "class_1", "class_2"});
  // Training pixels are 0 to 111: mean 55.5, variance (112^2 - 1) / 12.
  const double mean = 55.5, deviation = std::sqrt((112.0 * 112.0 - 1) / 12);
  const Batch batch = data.eval_batch(0, 1);  // image 0: pixels 100 to 115
  const int patches[4][4] = {{0, 1, 4, 5}, {2, 3, 6, 7}, {8, 9, 12, 13}, {10, 11, 14, 15}};
  for (Index p = 0; p < 4; ++p) {
    for (Index j = 0; j < 4; ++j) {
      CHECK_THAT(static_cast<double>(batch.features(p, j)),
                 WithinAbs((100 + patches[p][j] - mean) / deviation, 1e-6));
    }
  }
}

TEST_CASE("held-out images come with the classes in turn, each once", "[images]") {
  const Files files;
  const ImageDataset data(config_of(files.folder));
  REQUIRE(data.num_eval_sequences() == 5);
  const Batch batch = data.eval_batch(0, 5);  // labels 0 1 2 0 1
  CHECK(batch.targets == std::vector<std::int32_t>{0, 1, 2, 0, 1});
  CHECK(batch.domain == batch.targets);
  CHECK(batch.features.rows() == 20);
  const std::set<Scalar> first_pixels{batch.features(0, 0), batch.features(4, 0), batch.features(8, 0),
                                      batch.features(12, 0), batch.features(16, 0)};
  CHECK(first_pixels.size() == 5);
  CHECK_THROWS_AS(data.eval_batch(3, 3), Error);
  const std::vector<DomainStatistics> statistics = data.statistics();
  CHECK(statistics[0].train_tokens == 12);  // images 0, 3, 6
  CHECK(statistics[2].train_tokens == 8);
  CHECK(statistics[2].eval_tokens == 4);
}

TEST_CASE("training has every image equally often, in an order of the seed's", "[images]") {
  const Files files;
  const ImageDataset data(config_of(files.folder));
  const auto order_of = [&](std::uint64_t seed, std::int64_t first) {
    std::vector<Scalar> first_pixels;
    const Batch batch = data.train_batch(seed, first, 7);
    for (Index b = 0; b < 7; ++b) {
      first_pixels.push_back(batch.features(4 * b, 0));
      CHECK(batch.targets[static_cast<std::size_t>(b)] == batch.domain[static_cast<std::size_t>(b)]);
    }
    return first_pixels;
  };
  const std::vector<Scalar> start = order_of(1, 0);
  // The order is shuffled in blocks of 1024, and 7 of them are whole epochs of 7 images.
  std::map<Scalar, int> times;
  for (std::int64_t first = 0; first < 7 * 1024; first += 7) {
    for (const Scalar pixel : order_of(1, first)) ++times[pixel];
  }
  CHECK(times.size() == 7);
  for (const auto& [pixel, count] : times) CHECK(count == 1024);
  CHECK(order_of(1, 0) == start);
  CHECK((order_of(2, 0) != start || order_of(3, 0) != start || order_of(4, 0) != start));
  CHECK((order_of(1, 7) != start || order_of(1, 14) != start));
  // In pieces the same.
  CHECK(data.train_batch(1, 3, 1).features == data.train_batch(1, 0, 7).features.middleRows(12, 4));
}

TEST_CASE("files that do not fit the config are told with both figures", "[images]") {
  const Files files;
  ImageDataConfig config = config_of(files.folder);
  CHECK(error_of(config) == "");
  config.image_size = 6;
  config.patch_size = 3;
  CHECK_THAT(error_of(config), Contains("shape (7, 4, 4), the config says ({count}, 6, 6)"));
  config = config_of(files.folder);
  config.num_classes = 2;
  CHECK_THAT(error_of(config), Contains("label 2 is 2, with 2 classes"));
  files.folder.write("t10k-labels-idx1-ubyte", idx({1}, "\1"));
  CHECK_THAT(error_of(config_of(files.folder)), Contains("5 images"));
}

TEST_CASE("missing images are told with the package that brings them", "[images]") {
  const TemporaryFolder folder;
  write_images(folder, "train", 2, 0);
  DataConfig config;
  config.kind = "images";
  config.images = config_of(folder);
  const std::vector<MissingData> missing = missing_data(config);
  REQUIRE(missing.size() == 2);
  CHECK(missing[0].path == (folder.path() / "t10k-images-idx3-ubyte").string());
  CHECK_THAT(missing[0].message(), Contains("install the package dataset-fashion-mnist"));
  // A relative folder starts at that of the experiment.
  config.images.path = folder.path().filename().string();
  resolve_data(config, folder.path().parent_path());
  CHECK(config.images.path == folder.path().string());
}

TEST_CASE("Images are told apart by the file that is kept with results", "[images]") {
  const Files files;
  const auto about = [&] {
    const auto kept = ImageDataset(config_of(files.folder)).files();
    REQUIRE(kept.size() == 1);
    CHECK(kept[0].first == "data.json");
    return kept[0].second;
  };
  const std::string before = about();
  CHECK(about() == before);
  CHECK_THAT(before, Contains("\"images\": 7") && Contains("\"images\": 5"));
  // Of the labels 0, 1, 2, 0, 1 as bytes, by Python's zlib.crc32.
  CHECK_THAT(before, Contains("\"labels_crc32\": 169702528"));
  // One label, one pixel; the sizes are the same.
  files.folder.write("train-labels-idx1-ubyte", idx({7}, std::string("\0\1\2\0\1\2\1", 7)));
  const std::string other_label = about();
  CHECK(other_label != before);
  write_images(files.folder, "t10k", 5, 101);
  CHECK(about() != other_label);
}
