// Images with a class each, cut into patches, for classification.
#pragma once

#include "experiments/data/data_config.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/data/training_order.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace moelab {

// Pixels are shifted and scaled to mean 0 and variance 1 over all training images. The files that are named
// t10k are what is held out.
class ImageDataset final : public Dataset {
 public:
  // Error for a file that is missing or not of the sizes in the config.
  explicit ImageDataset(const ImageDataConfig& config);

  const std::vector<std::string>& domains() const override { return names_; }
  Index seq_len() const override { return config_.num_patches(); }
  Index num_features() const override { return config_.patch_size * config_.patch_size; }
  Index num_classes() const override { return config_.num_classes; }
  Batch train_batch(std::uint64_t seed, std::int64_t first_sequence, Index count) const override;
  std::int64_t num_eval_sequences() const override { return static_cast<std::int64_t>(eval_order_.size()); }
  Batch eval_batch(std::int64_t first_sequence, Index count) const override;
  std::vector<DomainStatistics> statistics() const override;
  std::vector<std::pair<std::string, std::string>> files() const override;

 private:
  struct Images {
    std::vector<std::uint8_t> pixels;
    std::vector<std::uint8_t> labels;
    std::string about() const;  // JSON: how many, and checksums
  };
  Images read(const std::string& images, const std::string& labels) const;
  void measure_pixels();
  void order_eval();
  Batch empty_batch(Index count) const;
  void add_image(Batch& batch, Index b, const Images& images, std::int64_t number) const;

  ImageDataConfig config_;
  std::vector<std::string> names_;
  Images train_, eval_;
  std::string about_;                // data.json
  double mean_ = 0, deviation_ = 1;  // of the training pixels
  std::unique_ptr<const TrainingOrder> order_;
  std::vector<std::int64_t> eval_order_;  // held-out images, the classes in turn
};

// The four files without .gz: training images and labels, held-out images and labels.
std::vector<std::string> image_files(const ImageDataConfig& config);

}  // namespace moelab
