#include "experiments/data/image_dataset.hpp"

#include "core/crc32.hpp"
#include "core/error.hpp"
#include "experiments/data/idx_file.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moelab {

std::vector<std::string> image_files(const ImageDataConfig& config) {
  std::vector<std::string> files;
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                           "t10k-labels-idx1-ubyte"}) {
    files.push_back(config.path + "/" + name);
  }
  return files;
}

ImageDataset::ImageDataset(const ImageDataConfig& config) : config_(config), names_(config.domain_names()) {
  const std::vector<std::string> files = image_files(config);
  train_ = read(files[0], files[1]);
  eval_ = read(files[2], files[3]);
  about_ = fmt::format("{{\n  \"train\": {},\n  \"eval\": {}\n}}\n", train_.about(), eval_.about());
  measure_pixels();
  order_ = std::make_unique<const TrainingOrder>(
      std::vector<double>{1.0}, std::vector<std::int64_t>{static_cast<std::int64_t>(train_.labels.size())});
  order_eval();
}

ImageDataset::Images ImageDataset::read(const std::string& images, const std::string& labels) const {
  IdxFile pixels = read_idx_file(images);
  IdxFile classes = read_idx_file(labels);
  const Index size = config_.image_size;
  require(pixels.shape.size() == 3 && pixels.shape[1] == size && pixels.shape[2] == size,
          "[images] {} has shape ({}), the config says ({{count}}, {}, {})", images,
          fmt::join(pixels.shape, ", "), size, size);
  require(classes.shape.size() == 1 && classes.shape[0] == pixels.shape[0],
          "[images] {} has {} images, {} has {} labels", images, pixels.shape[0], labels,
          classes.values.size());
  require(pixels.shape[0] > 0, "[images] {} holds no image", images);
  for (std::size_t i = 0; i < classes.values.size(); ++i) {
    require(classes.values[i] < config_.num_classes, "[images] {}: label {} is {}, with {} classes", labels,
            i, classes.values[i], config_.num_classes);
  }
  return {std::move(pixels.values), std::move(classes.values)};
}

std::string ImageDataset::Images::about() const {
  return fmt::format(R"({{"images": {}, "pixels_crc32": {}, "labels_crc32": {}}})", labels.size(),
                     crc32_of(std::as_bytes(std::span(pixels))), crc32_of(std::as_bytes(std::span(labels))));
}

std::vector<std::pair<std::string, std::string>> ImageDataset::files() const {
  return {{kAboutData, about_}};
}

void ImageDataset::measure_pixels() {
  std::int64_t sum = 0, squares = 0;
  for (const std::uint8_t pixel : train_.pixels) {
    sum += pixel;
    squares += std::int64_t{pixel} * pixel;
  }
  const auto n = static_cast<double>(train_.pixels.size());
  mean_ = static_cast<double>(sum) / n;
  const double variance = static_cast<double>(squares) / n - mean_ * mean_;
  require(variance > 0, "[images] all pixels of {} have the same value", config_.path);
  deviation_ = std::sqrt(variance);
}

void ImageDataset::order_eval() {
  std::vector<std::vector<std::int64_t>> of_class(static_cast<std::size_t>(config_.num_classes));
  for (std::size_t i = 0; i < eval_.labels.size(); ++i) {
    of_class[eval_.labels[i]].push_back(static_cast<std::int64_t>(i));
  }
  for (std::size_t round = 0; eval_order_.size() < eval_.labels.size(); ++round) {
    for (const std::vector<std::int64_t>& images : of_class) {
      if (round < images.size()) eval_order_.push_back(images[round]);
    }
  }
}

Batch ImageDataset::empty_batch(Index count) const {
  Batch batch;
  batch.num_sequences = count;
  batch.seq_len = seq_len();
  batch.features.resize(batch.size(), num_features());
  return batch;
}

void ImageDataset::add_image(Batch& batch, Index b, const Images& images, std::int64_t number) const {
  const Index size = config_.image_size, patch = config_.patch_size, side = size / patch;
  const std::uint8_t* pixels = images.pixels.data() + number * size * size;
  for (Index y = 0; y < size; ++y) {
    for (Index x = 0; x < size; ++x) {
      const Index row = b * batch.seq_len + (y / patch) * side + x / patch;
      batch.features(row, (y % patch) * patch + x % patch) =
          static_cast<Scalar>((static_cast<double>(pixels[y * size + x]) - mean_) / deviation_);
    }
  }
  batch.targets.push_back(images.labels[static_cast<std::size_t>(number)]);
  batch.domain.push_back(images.labels[static_cast<std::size_t>(number)]);
}

Batch ImageDataset::train_batch(std::uint64_t seed, std::int64_t first_sequence, Index count) const {
  Batch batch = empty_batch(count);
  for (Index b = 0; b < count; ++b) add_image(batch, b, train_, order_->at(seed, first_sequence + b).window);
  return batch;
}

Batch ImageDataset::eval_batch(std::int64_t first_sequence, Index count) const {
  require(first_sequence >= 0 && first_sequence + count <= num_eval_sequences(),
          "[images] held-out images {} to {} of {}", first_sequence, first_sequence + count,
          num_eval_sequences());
  Batch batch = empty_batch(count);
  for (Index b = 0; b < count; ++b) {
    add_image(batch, b, eval_, eval_order_[static_cast<std::size_t>(first_sequence + b)]);
  }
  return batch;
}

std::vector<DomainStatistics> ImageDataset::statistics() const {
  std::vector<DomainStatistics> statistics;
  for (std::size_t c = 0; c < names_.size(); ++c) {
    const auto rows = [&](const Images& images) {
      return seq_len() * std::count(images.labels.begin(), images.labels.end(), static_cast<std::uint8_t>(c));
    };
    statistics.push_back({names_[c], rows(train_), rows(eval_), std::numeric_limits<double>::quiet_NaN()});
  }
  return statistics;
}

}  // namespace moelab
