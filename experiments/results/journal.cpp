#include "experiments/results/journal.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json_text.hpp"
#include "experiments/results/journal_format.hpp"

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
  std::string finish() const { return sealed_line(text_); }

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
    const std::size_t complete = for_lines(read_file(path_), [](auto, auto) { return true; });
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
  append_line(line.finish());
}

void JournalWriter::append(const EvalRecord& record, const std::vector<std::string>& domains) {
  Line line;
  line.integer("step", record.step);
  line.integer("tokens", record.tokens);
  for (const auto& [key, member] : kEvalScalars) line.number(key, record.*member);
  for (std::size_t d = 0; d < record.loss_by_domain.size(); ++d)
    line.number(std::string(kDomain) + domains.at(d), record.loss_by_domain[d]);
  append_line(line.finish());
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
  append_line(line.finish());
}

void JournalWriter::cut(std::size_t bytes) {
  const int code = ::ftruncate(descriptor_, static_cast<off_t>(bytes));
  require(code == 0, "[journal] cannot shorten {}: {}", path_.string(), std::strerror(errno));
}

void JournalWriter::sync() const {
  // Some file systems have no such call.
  const bool done = ::fdatasync(descriptor_) == 0 || errno == EINVAL || errno == ENOTSUP;
  require(done, "[journal] cannot sync {}: {}", path_.string(), std::strerror(errno));
}

}  // namespace moelab
