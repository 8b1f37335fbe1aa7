// A program of another project: one product through core, one batch through experiments.
#include "core/gemm.hpp"
#include "core/tensor.hpp"
#include "experiments/data/make_dataset.hpp"

#include <cstdio>

int main() {
  moelab::DataConfig config;
  config.kind = "synthetic";
  const auto data = moelab::make_dataset(config);
  const moelab::Batch batch = data->train_batch(0, 0, 4);
  const moelab::Matrix product = batch.features * batch.features.transpose();
  std::printf("%ld domains, trace %g\n", static_cast<long>(data->domains().size()),
              static_cast<double>(product.trace()));
  return product.trace() > 0 ? 0 : 1;
}
