#include "tests/core/hdf5_example.hpp"

#include <limits>
#include <string>
#include <vector>

namespace moelab::test {

hdf5::Group example_tree(std::size_t steps) {
  hdf5::Group root;
  root.attribute("title", std::string("Größe"));
  root.attribute("count", std::int64_t{7});
  root.attribute("range", std::vector<double>{0.5, 1.5});
  root.attribute("names", std::vector<std::string>{"a", "β"});
  root.text("config", std::string(70000, 'x') + "\nend", "a long text");
  hdf5::Group& train = root.group("runs").group("dense-s0");
  std::vector<std::int64_t> step(steps);
  std::vector<double> loss(steps);
  std::vector<float> load(steps * 6);
  for (std::size_t i = 0; i < steps; ++i) {
    step[i] = static_cast<std::int64_t>(i) * 10 + 1;
    loss[i] = 1.0 / 3.0 + static_cast<double>(i);
  }
  loss[0] = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < load.size(); ++i) load[i] = static_cast<float>(i) * 0.1F;
  train.series("step", "step", step, {"1", "step"});
  train.series("loss", "step", loss, {"nat", "loss"});
  train.array("load", {"step", "layer", "expert"}, {steps, 2, 3}, load, {"token", "load"});
  train.series("name", "layer", std::vector<std::string>{"first", "zwölf"}, {"", "names"});
  train.series("small", "layer", std::vector<std::int16_t>{-1, 300}, {"1", "i2"});
  train.series("large", "layer", std::vector<std::int64_t>{-1, std::int64_t{1} << 53}, {"1", "i8"});
  train.datasets.back().fill = -1;
  train.series("status", "layer", std::vector<std::uint8_t>{0, 1}, {"", "status"});
  const std::vector<std::string> meanings = {"bad", "good"};
  hdf5::set_flags(train.datasets.back(), meanings);
  return root;
}

}  // namespace moelab::test
