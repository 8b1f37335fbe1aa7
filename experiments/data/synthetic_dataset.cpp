#include "experiments/data/synthetic_dataset.hpp"

#include "core/error.hpp"

#include <cmath>
#include <limits>

namespace moelab {
namespace {

Matrix random_matrix(Index rows, Index cols, double std, const random::Stream& stream) {
  Matrix m(rows, cols);
  random::fill_normal(m, stream, std);
  return m;
}

}  // namespace

SyntheticDataset::SyntheticDataset(const SyntheticDataConfig& config)
    : config_(config), names_(config.domain_names()) {
  require(config.map == "linear" || config.map == "tanh",
          "[synthetic] no map \"{}\": there are linear and tanh", config.map);
  const auto seed = static_cast<std::uint64_t>(config.task_seed);
  const double scale = 1 / std::sqrt(static_cast<double>(config.num_features));
  for (Index c = 0; c < config.num_clusters; ++c) {
    const auto number = static_cast<std::uint64_t>(c);
    Cluster cluster;
    cluster.centre =
        random_matrix(1, config.num_features, config.cluster_spread, {seed, "data/cluster/centre", number});
    cluster.a =
        random_matrix(config.num_targets, config.num_features, scale, {seed, "data/cluster/a", number});
    if (config.map == "tanh") {
      cluster.b =
          random_matrix(config.num_features, config.num_features, scale, {seed, "data/cluster/b", number});
    }
    clusters_.push_back(std::move(cluster));
  }
}

Batch SyntheticDataset::make_batch(Index count) const {
  Batch batch;
  batch.num_sequences = count;
  batch.seq_len = config_.seq_len;
  batch.features.resize(batch.size(), config_.num_features);
  batch.regression_targets.resize(batch.size(), config_.num_targets);
  batch.domain.resize(count);
  return batch;
}

void SyntheticDataset::add_sequence(Batch& batch, Index b, Index cluster, const random::Stream& draws) const {
  const Cluster& chosen = clusters_[cluster];
  const Index seq_len = config_.seq_len;
  const Index num_draws = config_.num_features + config_.num_targets;  // of a sample
  Matrix u(seq_len, config_.num_features);
  Matrix noise(seq_len, config_.num_targets);
  for (Index t = 0; t < seq_len; ++t) {
    for (Index j = 0; j < config_.num_features; ++j) {
      u(t, j) = static_cast<Scalar>(draws.normal(t * num_draws + j));
    }
    for (Index j = 0; j < config_.num_targets; ++j) {
      noise(t, j) =
          static_cast<Scalar>(draws.normal(t * num_draws + config_.num_features + j) * config_.noise);
    }
  }
  batch.features.middleRows(b * seq_len, seq_len) = u.rowwise() + chosen.centre.row(0);
  if (config_.map == "tanh") u = (u * chosen.b.transpose()).array().tanh().matrix().eval();
  batch.regression_targets.middleRows(b * seq_len, seq_len) = u * chosen.a.transpose() + noise;
  batch.domain[b] = static_cast<std::int32_t>(cluster);
}

Batch SyntheticDataset::train_batch(std::uint64_t seed, std::int64_t first_sequence, Index count) const {
  Batch batch = make_batch(count);
  const random::Stream domains(seed, "data/domains");
  for (Index b = 0; b < count; ++b) {
    const auto number = static_cast<std::uint64_t>(first_sequence + b);
    const auto cluster = static_cast<Index>(domains.below(number, clusters_.size()));
    add_sequence(batch, b, cluster, {seed, "data/train", number});
  }
  return batch;
}

Batch SyntheticDataset::eval_batch(std::int64_t first_sequence, Index count) const {
  require(first_sequence >= 0 && first_sequence + count <= num_eval_sequences(),
          "[synthetic] held-out sequences {} to {} of {}", first_sequence, first_sequence + count,
          num_eval_sequences());
  Batch batch = make_batch(count);
  for (Index b = 0; b < count; ++b) {
    const std::int64_t number = first_sequence + b;
    add_sequence(
        batch, b, number % config_.num_clusters,
        {static_cast<std::uint64_t>(config_.task_seed), "data/eval", static_cast<std::uint64_t>(number)});
  }
  return batch;
}

std::vector<DomainStatistics> SyntheticDataset::statistics() const {
  std::vector<DomainStatistics> statistics;
  for (Index c = 0; c < config_.num_clusters; ++c) {
    const std::int64_t sequences =
        (config_.eval_sequences + config_.num_clusters - 1 - c) / config_.num_clusters;
    statistics.push_back(
        {names_[c], 0, sequences * config_.seq_len, std::numeric_limits<double>::quiet_NaN()});
  }
  return statistics;
}

}  // namespace moelab
