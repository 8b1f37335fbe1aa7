#include "core/error.hpp"
#include "experiments/data/make_dataset.hpp"
#include "tests/support/catch.hpp"

#include <cmath>

#include <Eigen/QR>

using namespace moelab;

namespace {

DataConfig example(const std::string& map) {
  DataConfig config;
  config.kind = "synthetic";
  config.synthetic.map = map;
  config.synthetic.seq_len = 4;
  config.synthetic.num_clusters = 3;
  config.synthetic.num_features = 6;
  config.synthetic.num_targets = 5;
  return config;
}

// The rows of one cluster.
void rows_of(const Batch& batch, std::int32_t cluster, Eigen::MatrixXd& x, Eigen::MatrixXd& y) {
  std::vector<Index> rows;
  for (Index i = 0; i < batch.size(); ++i) {
    if (batch.domain[i / batch.seq_len] == cluster) rows.push_back(i);
  }
  x.resize(static_cast<Index>(rows.size()), batch.features.cols());
  y.resize(static_cast<Index>(rows.size()), batch.regression_targets.cols());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    x.row(static_cast<Index>(i)) = batch.features.row(rows[i]).cast<double>();
    y.row(static_cast<Index>(i)) = batch.regression_targets.row(rows[i]).cast<double>();
  }
}

// Mean squared residual of the best affine map from x to y.
double affine_residual(const Eigen::MatrixXd& x, const Eigen::MatrixXd& y) {
  Eigen::MatrixXd design(x.rows(), x.cols() + 1);
  design << x, Eigen::VectorXd::Ones(x.rows());
  const Eigen::MatrixXd solution = design.colPivHouseholderQr().solve(y);
  return (design * solution - y).squaredNorm() / static_cast<double>(y.size());
}

}  // namespace

TEST_CASE("Each cluster has a linear map of its own, which no single map replaces") {
  const auto data = make_dataset(example("linear"));
  CHECK(data->num_features() == 6);
  CHECK(data->num_targets() == 5);
  CHECK(data->domains().size() == 3);
  const Batch batch = data->train_batch(1, 0, 600);
  Eigen::MatrixXd x;
  Eigen::MatrixXd y;
  for (std::int32_t c = 0; c < 3; ++c) {
    rows_of(batch, c, x, y);
    CHECK(x.rows() > 600);
    CHECK(affine_residual(x, y) < 1e-9);
    // The map is the same in held-out data.
    Eigen::MatrixXd held_x;
    Eigen::MatrixXd held_y;
    rows_of(data->eval_batch(0, 300), c, held_x, held_y);
    Eigen::MatrixXd both_x(x.rows() + held_x.rows(), x.cols());
    Eigen::MatrixXd both_y(y.rows() + held_y.rows(), y.cols());
    both_x << x, held_x;
    both_y << y, held_y;
    CHECK(affine_residual(both_x, both_y) < 1e-9);
  }
  const Eigen::MatrixXd all_x = batch.features.cast<double>();
  const Eigen::MatrixXd all_y = batch.regression_targets.cast<double>();
  CHECK(affine_residual(all_x, all_y) > 0.2);
  // Entries of A are N(0, 1/6): the variance of the targets is about 1.
  const double variance = all_y.squaredNorm() / static_cast<double>(all_y.size());
  CHECK(variance > 0.5);
  CHECK(variance < 2.0);
}

TEST_CASE("A tanh map is not affine, and noise adds its variance") {
  Eigen::MatrixXd x;
  Eigen::MatrixXd y;
  rows_of(make_dataset(example("tanh"))->train_batch(1, 0, 600), 0, x, y);
  CHECK(affine_residual(x, y) > 1e-3);

  DataConfig noisy = example("linear");
  noisy.synthetic.noise = 0.5;
  rows_of(make_dataset(noisy)->train_batch(1, 0, 3000), 0, x, y);
  CHECK(std::abs(affine_residual(x, y) - 0.25) < 0.02);
}

TEST_CASE("Synthetic samples depend on seed and number alone; the task on its own seed") {
  const auto data = make_dataset(example("linear"));
  const Batch whole = data->train_batch(3, 50, 10);
  CHECK(whole.features == data->train_batch(3, 50, 10).features);
  CHECK(whole.features.bottomRows(4) == data->train_batch(3, 59, 1).features);
  CHECK(whole.features != data->train_batch(4, 50, 10).features);
  CHECK(data->eval_batch(0, 8).features == make_dataset(example("linear"))->eval_batch(0, 8).features);
  DataConfig other = example("linear");
  other.synthetic.task_seed = 1;
  CHECK(data->eval_batch(0, 8).regression_targets !=
        make_dataset(other)->eval_batch(0, 8).regression_targets);
}

TEST_CASE("Held-out sequences take the clusters in turn") {
  const auto data = make_dataset(example("linear"));
  CHECK(data->eval_batch(0, 5).domain == std::vector<std::int32_t>{0, 1, 2, 0, 1});
  CHECK(data->num_eval_sequences() == 512);
  CHECK(data->statistics()[1].eval_tokens == 171 * 4);
  CHECK(data->statistics()[2].eval_tokens == 170 * 4);
  CHECK_THROWS_AS(data->eval_batch(512, 1), Error);
}
