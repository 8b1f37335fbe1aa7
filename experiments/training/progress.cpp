#include "experiments/training/progress.hpp"

#include "core/utf8.hpp"
#include "core/visible.hpp"
#include "experiments/compare/text_table.hpp"

#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace moelab {

namespace {

// Training goes on where nobody reads this any more.
void tell(const std::string& text) { std::fputs(text.c_str(), stderr); }

using Clock = std::chrono::steady_clock;

// Cuts at the start of a character of UTF-8.
std::string cut(const std::string& text, std::size_t size) {
  if (text.size() <= size) return text;
  while (size > 0 && utf8::continues_character(text[size])) --size;
  return text.substr(0, size);
}

}  // namespace

std::size_t columns_of(std::FILE* stream, std::size_t otherwise) {
  winsize size{};
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

std::string progress_line(const ProgressState& s, std::size_t width) {
  struct Part {
    std::string text;
    int dropped;  // from a line that is too long: the highest first; 0: never
  };
  std::vector<Part> parts{{fmt::format("  step {}/{}", s.step, s.num_steps), 0},
                          {fmt::format("  loss {}", with_digits(s.loss, 4)), 0},
                          {fmt::format("  eval {}", with_digits(s.eval_loss, 4)), 1}};
  if (!std::isnan(s.load_cv)) {
    parts.push_back({fmt::format("  load_cv {:.2f}  dead {:.0f}%", s.load_cv, 100 * s.dead_fraction), 0});
  }
  if (!std::isnan(s.seconds_left))
    parts.push_back({fmt::format("  {} left", format_duration(s.seconds_left)), 2});
  parts.push_back({fmt::format("  tokens {}", with_si_prefix(static_cast<double>(s.tokens))), 3});
  parts.push_back({fmt::format("  {:.0f} tok/s", s.tokens_per_second), 4});
  parts.push_back({fmt::format("  lr {:.2e}", s.lr), 5});

  const std::string number = fmt::format("[{}/{}] ", s.run_number, s.num_runs);
  const auto line = [&](const std::string& run) {
    std::string text = number + run;
    for (const Part& part : parts) text += part.text;
    return text;
  };
  for (int rank = 5; rank > 0 && line(s.run).size() > width; --rank) {
    std::erase_if(parts, [rank](const Part& part) { return part.dropped == rank; });
  }
  const std::size_t rest = line("").size();
  return cut(line(cut(s.run, width > rest ? width - rest : 0)), width);
}

std::string format_duration(double seconds) {
  const auto s = static_cast<std::int64_t>(std::llround(seconds));
  if (s >= 3600) return fmt::format("{} h {:02} min", s / 3600, s % 3600 / 60);
  if (s >= 60) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} s", s);
}

Progress::Progress(bool quiet) : quiet_(quiet), live_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear_live_line(); }

void Progress::clear_live_line() {
  if (!line_is_shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  line_is_shown_ = false;
}

void Progress::update(const ProgressState& state, bool important) {
  if (quiet_) return;
  const auto now = Clock::now();
  const auto least = live_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  if (!important && now - last_ < least) return;
  last_ = now;
  if (live_) {
    const std::string line = progress_line(state, columns_of(stderr, 80) - 1);
    tell("\r\x1b[K" + line);
    line_is_shown_ = true;
  } else {
    tell(progress_line(state, std::string::npos) + "\n");
  }
  std::fflush(stderr);
}

void Progress::note(const std::string& text) {
  if (quiet_) return;
  clear_live_line();
  tell(visible_text(text) + "\n");
  std::fflush(stderr);
}

}  // namespace moelab
