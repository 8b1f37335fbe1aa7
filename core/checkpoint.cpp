#include "core/checkpoint.hpp"

#include "core/crc32.hpp"
#include "core/damaged_file.hpp"

#include <algorithm>
#include <set>

namespace moelab {

namespace {

constexpr const char* kFormat = "moelab-checkpoint";
constexpr const char* kVersion = "1.0";

std::int64_t crc_of(ConstMatrixView value) {
  return crc32_of(std::as_bytes(std::span(value.data(), static_cast<std::size_t>(value.size()))));
}

void add(hdf5::Group& group, const std::string& name, ConstMatrixView value, const std::string& long_name) {
  hdf5::Dataset dataset;
  dataset.name = name;
  dataset.values = std::span<const Scalar>(value.data(), static_cast<std::size_t>(value.size()));
  dataset.shape = {static_cast<std::size_t>(value.rows()), static_cast<std::size_t>(value.cols())};
  dataset.meaning = {"1", long_name};
  dataset.attributes.push_back({"crc32", crc_of(value)});
  group.datasets.push_back(std::move(dataset));
}

ConstMatrixView view(const Matrix& m) { return {m.data(), m.rows(), m.cols()}; }
ConstMatrixView view(const MatrixView& m) { return {m.data(), m.rows(), m.cols()}; }

template <class T>
T attribute(const hdf5::Reader& file, const std::string& name) {
  const auto value = file.attribute("", name);
  require_whole(value && std::holds_alternative<T>(*value), "[checkpoint] {}: no attribute {}",
                file.path().string(), name);
  return std::get<T>(*value);
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const TrainingState& training, Module& module,
                     Optimizer& optimizer, const hdf5::Group& extra) {
  hdf5::Group root;
  root.attribute("format", std::string(kFormat));
  root.attribute("format_version", std::string(kVersion));
  root.attribute("step", training.step);
  root.attribute("train_seconds", training.train_seconds);
  root.attribute("optimizer_steps", optimizer.num_steps());
  root.text("config_resolved", training.config, "resolved configuration of the run");
  hdf5::Group& parameter_group = root.group("parameters");
  for (const NamedParameter& p : parameters(module)) {
    add(parameter_group, p.path, view(p.parameter->value()), "parameter");
  }
  hdf5::Group& state_group = root.group("state");
  for (const NamedState& s : states(module))
    add(state_group, s.path, view(*s.state), "state that is not trained");
  hdf5::Group& optimizer_group = root.group("optimizer");
  optimizer.visit_state([&](const std::string& name, const MatrixView& value) {
    add(optimizer_group, name, view(value), "optimizer state");
  });
  root.groups.push_back(extra);
  root.groups.back().name = "extra";
  hdf5::write_file(path, root, {.compress = false, .scales = false});
}

CheckpointReader::CheckpointReader(const std::filesystem::path& path) : file_(hdf5::require_sealed(path)) {
  require_whole(attribute<std::string>(file_, "format") == kFormat,
                "[checkpoint] {} is not a moelab checkpoint", path.string());
  const auto version = attribute<std::string>(file_, "format_version");
  require(version == kVersion, "[checkpoint] {} has format version {}; this program reads {}", path.string(),
          version, kVersion);
  training_.step = attribute<std::int64_t>(file_, "step");
  training_.train_seconds = attribute<double>(file_, "train_seconds");
  require_whole(file_.has("config_resolved"), "[checkpoint] {}: no config_resolved", path.string());
  training_.config = file_.text("config_resolved");
}

hdf5::Group CheckpointReader::extra() const { return file_.group("extra"); }

void CheckpointReader::read(const std::string& dataset, MatrixView value) const {
  const std::string where = fmt::format("[checkpoint] {}: {}", file_.path().string(), dataset);
  require(file_.has(dataset), "{} is missing", where);
  const auto shape = file_.shape(dataset);
  require(shape.size() == 2 && static_cast<Index>(shape[0]) == value.rows() &&
              static_cast<Index>(shape[1]) == value.cols(),
          "{} has shape ({}), the model wants ({}, {})", where, fmt::join(shape, ", "), value.rows(),
          value.cols());
  file_.read_into<Scalar>(dataset, std::span<Scalar>(value.data(), static_cast<std::size_t>(value.size())));
  check_sum(dataset, view(value));
}

void CheckpointReader::check_sum(const std::string& dataset, ConstMatrixView value) const {
  const std::string where = fmt::format("[checkpoint] {}: {}", file_.path().string(), dataset);
  const auto crc = file_.attribute(dataset, "crc32");
  require_whole(crc && std::holds_alternative<std::int64_t>(*crc), "{} has no checksum", where);
  require_whole(std::get<std::int64_t>(*crc) == crc_of(value),
                "{} is damaged: its checksum does not match; use an older checkpoint", where);
}

void CheckpointReader::restore(Module& module) const {
  std::set<std::string> wanted;
  for (const NamedParameter& p : parameters(module)) {
    read("parameters/" + p.path, p.parameter->value());
    p.parameter->mark_changed();
    wanted.insert(p.path);
  }
  require_no_others("parameters", wanted);
  wanted.clear();
  for (const NamedState& s : states(module)) {
    read("state/" + s.path, {s.state->data(), s.state->rows(), s.state->cols()});
    wanted.insert(s.path);
  }
  require_no_others("state", wanted);
}

void CheckpointReader::restore(Optimizer& optimizer) const {
  std::set<std::string> wanted;
  optimizer.visit_state([&](const std::string& name, const MatrixView& value) {
    read("optimizer/" + name, value);
    wanted.insert(name);
  });
  require_no_others("optimizer", wanted);
  optimizer.set_num_steps(attribute<std::int64_t>(file_, "optimizer_steps"));
}

void CheckpointReader::require_no_others(const std::string& group,
                                         const std::set<std::string>& wanted) const {
  for (const std::string& name : names_in(group)) {
    require(wanted.contains(name), "[checkpoint] {}: {}/{} is not part of the model", file_.path().string(),
            group, name);
  }
}

void CheckpointReader::verify() const {
  for (const std::string group : {"parameters", "state", "optimizer"}) {
    for (const std::string& name : names_in(group)) read_whole(group + "/" + name);
  }
}

std::vector<std::string> CheckpointReader::names_in(const std::string& group) const {
  if (!file_.has(group)) return {};
  std::vector<std::string> names = file_.datasets(group);
  // Early checkpoints have scales among their datasets.
  std::erase_if(names, [](const std::string& name) { return name.starts_with("dim_"); });
  return names;
}

std::vector<std::string> CheckpointReader::parameter_names() const { return names_in("parameters"); }

Matrix CheckpointReader::parameter(const std::string& name) const { return read_whole("parameters/" + name); }

Matrix CheckpointReader::read_whole(const std::string& dataset) const {
  const auto [shape, values] = file_.read_array<Scalar>(dataset, {hdf5::kAnyLength, hdf5::kAnyLength});
  const ConstMatrixView value(values.data(), static_cast<Index>(shape[0]), static_cast<Index>(shape[1]));
  check_sum(dataset, value);
  return value;
}

}  // namespace moelab
