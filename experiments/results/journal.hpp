// metrics.jsonl: one flat JSON object a record, appended and handed to the system a line at a time. A line
// that was torn by a kill is ignored when reading. Numbers come back with the same bits; JSON has no NaN or
// infinity, which are written as null and read as NaN.
#pragma once

#include "experiments/results/run_data.hpp"

#include <filesystem>
#include <string>

namespace moelab {

class JournalWriter {
 public:
  // Creates the file, or goes on at the end of an existing one whose torn last line it cuts off. Holds a
  // lock: a second writer gets an error.
  explicit JournalWriter(std::filesystem::path path);
  JournalWriter(JournalWriter&& other) noexcept;
  JournalWriter& operator=(JournalWriter&& other) noexcept;
  ~JournalWriter();

  void append(const TrainRecord& record);
  void append(const EvalRecord& record);
  // Keys are moe/layer_<model layer>/<statistic>.
  void append(const RoutingRecordRow& record, const std::vector<MoeLayer>& layers);

 private:
  void append_line(const std::string& line);
  std::filesystem::path path_;
  int descriptor_ = -1;
};

// Adds the records of the journal to data.train, data.eval and data.routing; info.moe_layers and info.domains
// are given. Records past `last_step` are left out. Error naming the line where a complete line is not a
// record.
void read_journal(const std::filesystem::path& path, RunData& data,
                  std::int64_t last_step = std::numeric_limits<std::int64_t>::max());

// Drops the records past `last_step`, by replacing the file.
void truncate_journal(const std::filesystem::path& path, std::int64_t last_step);

}  // namespace moelab
