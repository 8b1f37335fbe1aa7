#include "experiments/results/journal.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json_text.hpp"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

namespace moelab {

namespace {

// The scalars of a record: key and member, used for writing and reading.
constexpr std::array<std::pair<std::string_view, double TrainRecord::*>, 7> kTrainScalars = {{
    {"time", &TrainRecord::time},
    {"train/loss", &TrainRecord::loss},
    {"train/lr", &TrainRecord::lr},
    {"train/grad_norm", &TrainRecord::grad_norm},
    {"train/step_seconds", &TrainRecord::step_seconds},
    {"train/tokens_per_second", &TrainRecord::tokens_per_second},
    {"train/active_compute_ratio", &TrainRecord::active_compute_ratio},
}};
constexpr std::array<std::pair<std::string_view, double EvalRecord::*>, 4> kEvalScalars = {{
    {"time", &EvalRecord::time},
    {"eval/loss", &EvalRecord::loss},
    {"eval/bits_per_byte", &EvalRecord::bits_per_byte},
    {"eval/accuracy", &EvalRecord::accuracy},
}};
constexpr std::string_view kAuxiliary = "train/aux_";
constexpr std::string_view kDomain = "eval/loss/";

// A flat JSON object. Floating-point numbers are written with the fewest digits that give the same bits back.
class Line {
 public:
  void integer(std::string_view key, std::int64_t value) { entry(key) += std::to_string(value); }
  template <class Float>
  void number(std::string_view key, Float value) {
    append(entry(key), value);
  }
  template <class T>
  void numbers(std::string_view key, std::span<const T> values) {
    std::string& text = entry(key);
    text += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) text += ',';
      append(text, values[i]);
    }
    text += ']';
  }
  std::string finish() && { return std::move(text_) + "}\n"; }

 private:
  std::string& entry(std::string_view key) {
    text_ += text_.size() > 1 ? "," : "";
    text_ += json_text(nlohmann::json(key));
    text_ += ':';
    return text_;
  }
  static void append(std::string& text, std::int32_t value) { text += std::to_string(value); }
  template <class Float>
  static void append(std::string& text, Float value) {
    if (!std::isfinite(value)) {
      text += "null";
      return;
    }
    const std::string digits = fmt::format("{}", value);
    text += digits;
    if (digits.find_first_of(".e") == std::string::npos) text += ".0";  // -0 would come back as the integer 0
  }
  std::string text_ = "{";
};

std::string layer_key(const MoeLayer& layer, std::string_view statistic) {
  return fmt::format("moe/layer_{}/{}", layer.layer, statistic);
}

double number_at(const nlohmann::json& line, std::string_view key) {
  const auto it = line.find(key);
  return it == line.end() || it->is_null() ? kNotMeasured : it->get<double>();
}

template <class T>
std::vector<T> numbers_at(const nlohmann::json& line, const std::string& key) {
  std::vector<T> values;
  const auto it = line.find(key);
  if (it == line.end()) return values;
  for (const nlohmann::json& entry : *it)
    values.push_back(entry.is_null() ? static_cast<T>(kNotMeasured) : entry.get<T>());
  return values;
}

template <class Record, std::size_t N>
Record read_scalars(const nlohmann::json& line,
                    const std::array<std::pair<std::string_view, double Record::*>, N>& scalars) {
  Record record;
  record.step = line.at("step").get<std::int64_t>();
  record.tokens = line.at("tokens").get<std::int64_t>();
  for (const auto& [key, member] : scalars) record.*member = number_at(line, key);
  return record;
}

RoutingRecordRow read_routing(const nlohmann::json& line, const std::vector<MoeLayer>& layers) {
  RoutingRecordRow row;
  row.step = line.at("step").get<std::int64_t>();
  row.tokens = line.at("tokens").get<std::int64_t>();
  for (const MoeLayer& layer : layers) {
    LayerRouting& r = row.layers.emplace_back();
    r.expert_tokens = numbers_at<std::int32_t>(line, layer_key(layer, "expert_tokens"));
    r.expert_dropped = numbers_at<std::int32_t>(line, layer_key(layer, "expert_dropped"));
    r.router_probability_mean = numbers_at<float>(line, layer_key(layer, "router_probability_mean"));
    r.expert_bias = numbers_at<float>(line, layer_key(layer, "expert_bias"));
    for (const RoutingScalar& s : routing_scalars()) r.*s.member = number_at(line, layer_key(layer, s.name));
  }
  return row;
}

void read_line(const nlohmann::json& line, RunData& data) {
  if (line.contains("train/loss")) {
    TrainRecord record = read_scalars(line, kTrainScalars);
    for (const auto& [key, value] : line.items())
      if (std::string_view(key).starts_with(kAuxiliary))
        record.auxiliary_losses.emplace_back(key.substr(kAuxiliary.size()), number_at(line, key));
    data.train.push_back(std::move(record));
  } else if (line.contains("eval/loss")) {
    EvalRecord record = read_scalars(line, kEvalScalars);
    for (const std::string& domain : data.info.domains) {
      const std::string key = std::string(kDomain) + domain;
      if (line.contains(key)) record.loss_by_domain.push_back(number_at(line, key));
    }
    data.eval.push_back(std::move(record));
  } else {
    data.routing.push_back(read_routing(line, data.info.moe_layers));
  }
}

// Calls use(number, offset, text) for each complete line. Returns where the last of them ends.
template <class Use>
std::size_t for_lines(const std::string& text, const Use& use) {
  std::size_t begin = 0;
  std::size_t number = 1;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    if (!use(number++, begin, std::string_view(text).substr(begin, end - begin))) return begin;
    begin = end + 1;
  }
  return begin;
}

nlohmann::json parse(const std::filesystem::path& path, std::size_t number, std::string_view line) {
  try {
    return nlohmann::json::parse(line);
  } catch (const nlohmann::json::exception& error) {
    fail("[journal] {}:{} is not a record: {}", path.string(), number, error.what());
  }
}

}  // namespace

JournalWriter::JournalWriter(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  require(descriptor_ >= 0, "[journal] cannot open {}: {}", path_.string(), std::strerror(errno));
  try {
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      require(errno != EWOULDBLOCK, "[journal] another process writes {}", path_.string());
      lock_problem_ = fmt::format(
          "{} cannot be locked ({}): nothing keeps a second process from writing into the same folder",
          path_.string(), std::strerror(errno));
    }
    const std::size_t complete = for_lines(read_file(path_), [](auto, auto, auto) { return true; });
    const int code = ::ftruncate(descriptor_, static_cast<off_t>(complete));
    require(code == 0, "[journal] cannot mend {}: {}", path_.string(), std::strerror(errno));
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

JournalWriter::JournalWriter(JournalWriter&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      lock_problem_(std::move(other.lock_problem_)) {}

JournalWriter& JournalWriter::operator=(JournalWriter&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(lock_problem_, other.lock_problem_);
  return *this;
}

JournalWriter::~JournalWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void JournalWriter::append_line(const std::string& line) {
  const off_t before = ::lseek(descriptor_, 0, SEEK_END);
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(descriptor_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int cause = errno;
      // Half a line must not stay for the next one to be appended to. If this fails too, readers skip it.
      [[maybe_unused]] const int code = ::ftruncate(descriptor_, before);
      fail("[journal] cannot write {}: {}", path_.string(), std::strerror(cause));
    }
    done += static_cast<std::size_t>(n);
  }
}

void JournalWriter::append(const TrainRecord& record) {
  Line line;
  line.integer("step", record.step);
  line.integer("tokens", record.tokens);
  for (const auto& [key, member] : kTrainScalars) line.number(key, record.*member);
  for (const auto& [name, value] : record.auxiliary_losses)
    line.number(std::string(kAuxiliary) + name, value);
  append_line(std::move(line).finish());
}

void JournalWriter::append(const EvalRecord& record, const std::vector<std::string>& domains) {
  Line line;
  line.integer("step", record.step);
  line.integer("tokens", record.tokens);
  for (const auto& [key, member] : kEvalScalars) line.number(key, record.*member);
  for (std::size_t d = 0; d < record.loss_by_domain.size(); ++d)
    line.number(std::string(kDomain) + domains.at(d), record.loss_by_domain[d]);
  append_line(std::move(line).finish());
}

void JournalWriter::append(const RoutingRecordRow& record, const std::vector<MoeLayer>& layers) {
  Line line;
  line.integer("step", record.step);
  line.integer("tokens", record.tokens);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerRouting& r = record.layers.at(l);
    const auto numbers = [&]<class T>(std::string_view name, const std::vector<T>& values) {
      if (!values.empty()) line.numbers(layer_key(layers[l], name), std::span<const T>(values));
    };
    numbers("expert_tokens", r.expert_tokens);
    numbers("expert_dropped", r.expert_dropped);
    numbers("router_probability_mean", r.router_probability_mean);
    numbers("expert_bias", r.expert_bias);
    for (const RoutingScalar& s : routing_scalars()) line.number(layer_key(layers[l], s.name), r.*s.member);
  }
  append_line(std::move(line).finish());
}

void JournalWriter::drop_after(std::int64_t last_step) {
  const std::size_t end =
      for_lines(read_file(path_), [&](std::size_t number, std::size_t, std::string_view line) {
        return parse(path_, number, line).value("step", std::int64_t{0}) <= last_step;
      });
  const int code = ::ftruncate(descriptor_, static_cast<off_t>(end));
  require(code == 0, "[journal] cannot shorten {}: {}", path_.string(), std::strerror(errno));
}

void read_journal(const std::filesystem::path& path, RunData& data) {
  for_lines(read_file(path), [&](std::size_t number, std::size_t, std::string_view text) {
    const nlohmann::json line = parse(path, number, text);
    try {
      read_line(line, data);
    } catch (const nlohmann::json::exception& error) {
      fail("[journal] {}:{} is not a record: {}", path.string(), number, error.what());
    }
    return true;
  });
}

}  // namespace moelab
