// Regression with known clusters.
#pragma once

#include "core/random.hpp"
#include "experiments/data/data_config.hpp"
#include "experiments/data/dataset.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace moelab {

// Cluster c has a centre m_c ~ N(0, cluster_spread^2) and a map of its own. A sample is x = m_c + u, u ~ N(0,
// 1), and
//
//   linear:  y = A_c u + noise         tanh:  y = A_c tanh(B_c u) + noise
//
// with entries of A_c and B_c ~ N(0, 1 / width of what they multiply). A linear target has a variance of
// about 1, so the loss of a model that knows nothing is about 1. What x says about y depends on the cluster,
// which x itself gives away: experts that follow the clusters can each be simple.
class SyntheticDataset final : public Dataset {
 public:
  explicit SyntheticDataset(const SyntheticDataConfig& config);

  const std::vector<std::string>& domains() const override { return names_; }
  Index seq_len() const override { return config_.seq_len; }
  Index num_features() const override { return config_.num_features; }
  Index num_targets() const override { return config_.num_targets; }
  Batch train_batch(std::uint64_t seed, std::int64_t first_sequence, Index count) const override;
  std::int64_t num_eval_sequences() const override { return config_.eval_sequences; }
  Batch eval_batch(std::int64_t first_sequence, Index count) const override;
  std::vector<DomainStatistics> statistics() const override;

 private:
  struct Cluster {
    Matrix centre;  // (1, num_features)
    Matrix a;       // (num_targets, num_features)
    Matrix b;       // (num_features, num_features); tanh only
  };
  Batch make_batch(Index count) const;
  void add_sequence(Batch& batch, Index b, Index cluster, const random::Stream& draws) const;

  SyntheticDataConfig config_;
  std::vector<std::string> names_;
  std::vector<Cluster> clusters_;
};

}  // namespace moelab
