// The state of a training on the disk, so that it can go on with the same bits: parameters, the state that
// modules declare besides them (expert biases, adaptive loss weights), the optimizer's state, and the step.
// Random numbers and the data need nothing: both are functions of the step.
//
// An HDF5 file with groups parameters/, state/ and optimizer/, one dataset a name, each with the CRC-32 of
// its bytes. It is written whole and replaces the old file only when it is complete.
#pragma once

#include "core/hdf5.hpp"
#include "core/module.hpp"
#include "core/optim.hpp"

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

namespace moelab {

struct TrainingState {
  std::int64_t step = 0;     // optimizer steps taken
  double train_seconds = 0;  // of training, evaluations left out
  std::string config;        // resolved YAML of the run
};

// `extra` is kept as it is, for what a trainer remembers besides (CheckpointReader::extra()).
void save_checkpoint(const std::filesystem::path& path, const TrainingState& training, Module& module,
                     Optimizer& optimizer, const hdf5::Group& extra = {});

class CheckpointReader {
 public:
  // DamagedFile where it is not a checkpoint of this format; another Error where it cannot be read, or is of
  // another version.
  explicit CheckpointReader(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const TrainingState& training() const { return training_; }
  hdf5::Group extra() const;

  // Sets every parameter and every state of the module. Error naming what is missing, not part of the module,
  // of another shape, or damaged. Parameters must have storage.
  void restore(Module& module) const;
  void restore(Optimizer& optimizer) const;

  // Reads everything once. Error naming what is damaged.
  void verify() const;

  // For those who take parts of a model: names and values of the parameters.
  std::vector<std::string> parameter_names() const;
  Matrix parameter(const std::string& name) const;

 private:
  void read(const std::string& dataset, MatrixView value) const;
  Matrix read_whole(const std::string& dataset) const;
  void check_sum(const std::string& dataset, ConstMatrixView value) const;
  void require_no_others(const std::string& group, const std::set<std::string>& wanted) const;
  std::vector<std::string> names_in(const std::string& group) const;
  hdf5::Reader file_;
  TrainingState training_;
};

}  // namespace moelab
