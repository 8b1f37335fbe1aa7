// What a person sees while runs train: one live line on a terminal, a plain line now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace moelab {

struct ProgressState {
  std::string run;  // <variant>-s<seed>
  std::int64_t run_number = 0, num_runs = 0;
  std::int64_t step = 0, num_steps = 0;
  std::int64_t tokens = 0;
  double loss = 0;       // NaN: no step was taken yet
  double eval_loss = 0;  // NaN: not evaluated yet
  double lr = 0;
  double load_cv = 0;        // mean over mixture layers; NaN: no mixture
  double dead_fraction = 0;  // the same
  double tokens_per_second = 0;
  double seconds_left = 0;  // of all runs; NaN: not known
};

class Progress {
 public:
  // quiet: nothing at all is shown.
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // May be called every step: shows at most ten lines a second on a terminal, one in ten seconds elsewhere.
  // `important` is shown in any case (an evaluation, the end of a run).
  void update(const ProgressState& state, bool important);
  // A line that stays.
  void note(const std::string& text);

 private:
  void clear_live_line();
  bool quiet_;
  bool live_;
  bool line_is_shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

// The line of a state in at most `width` bytes. Where that is narrow, learning rate, speed, tokens, time left
// and evaluation loss are left out in this order, then the run's name is cut: step, loss and balance stay.
std::string progress_line(const ProgressState& state, std::size_t width);

// Columns of the terminal behind a stream; `otherwise` where there is none.
std::size_t columns_of(std::FILE* stream, std::size_t otherwise);

// "3 min 12 s", "48 s"
std::string format_duration(double seconds);

}  // namespace moelab
