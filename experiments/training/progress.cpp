#include "experiments/training/progress.hpp"

#include <array>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace moelab {

namespace {

using Clock = std::chrono::steady_clock;

std::string number_or_dash(double value, int digits) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, digits);
}

std::string line_of(const ProgressState& s) {
  std::string line = fmt::format("[{}/{}] {}  step {}/{}  tokens {}  loss {:.4f}  eval {}  lr {:.2e}",
                                 s.run_number, s.num_runs, s.run, s.step, s.num_steps, short_count(s.tokens),
                                 s.loss, number_or_dash(s.eval_loss, 4), s.lr);
  if (!std::isnan(s.load_cv)) {
    line += fmt::format("  load_cv {:.2f}  dead {:.0f}%", s.load_cv, 100 * s.dead_fraction);
  }
  line += fmt::format("  {:.0f} tok/s", s.tokens_per_second);
  if (!std::isnan(s.seconds_left)) line += fmt::format("  {} left", format_duration(s.seconds_left));
  return line;
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace

std::string short_count(std::int64_t count) {
  double value = static_cast<double>(count);
  constexpr std::array<const char*, 5> kUnits = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  // 999.5k would be rounded to 1000k.
  while (value >= 999.5 && unit + 1 < kUnits.size()) value /= 1000, ++unit;
  if (unit == 0) return fmt::format("{}", count);
  return fmt::format("{:.{}f}{}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
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
    const std::string line = line_of(state).substr(0, terminal_width() - 1);
    fmt::print(stderr, "\r\x1b[K{}", line);
    line_is_shown_ = true;
  } else {
    fmt::print(stderr, "{}\n", line_of(state));
  }
  std::fflush(stderr);
}

void Progress::note(const std::string& text) {
  if (quiet_) return;
  clear_live_line();
  fmt::print(stderr, "{}\n", text);
  std::fflush(stderr);
}

}  // namespace moelab
