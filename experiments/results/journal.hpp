// metrics.jsonl: one flat JSON object a record, appended and handed to the system a line at a time. Its last
// entry is the sum of the line. A line that was torn by a kill is ignored when reading. Numbers come back
// with the same bits; JSON has no NaN or infinity, which are written as null and read as NaN.
#pragma once

#include "experiments/results/run_data.hpp"

#include <filesystem>
#include <string>

namespace moelab {

class JournalWriter {
 public:
  // Creates the file, or goes on at the end of an existing one whose torn last line it cuts off. Holds a
  // lock: a second writer gets an error. Where the file system has no locks, lock_problem() says so.
  explicit JournalWriter(std::filesystem::path path);
  JournalWriter(JournalWriter&& other) noexcept;
  JournalWriter& operator=(JournalWriter&& other) noexcept;
  ~JournalWriter();

  // Empty: the file is locked. Else why it cannot be: nothing keeps a second writer away.
  const std::string& lock_problem() const { return lock_problem_; }

  void append(const TrainRecord& record);
  // `domains` names the entries of loss_by_domain.
  void append(const EvalRecord& record, const std::vector<std::string>& domains);
  // Keys are moe/layer_<model layer>/<statistic>.
  void append(const RoutingRecordRow& record, const std::vector<MoeLayer>& layers);
  // Drops what stands behind the first `bytes`.
  void cut(std::size_t bytes);
  // What was appended is on the disk when it returns.
  void sync() const;

 private:
  void append_line(const std::string& line);
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::string lock_problem_;
};

struct JournalEnd {
  std::size_t bytes = 0;  // to the end of the last record that was read
  std::string problem;    // why the line behind it is not a record; empty: it is one, or there is none
};

// Adds the records up to `last_step` to data.train, data.eval and data.routing, until the first line that is
// of a later step or not a record. Steps do not fall in a journal. info.moe_layers and info.domains are
// given.
JournalEnd read_journal_until(const std::filesystem::path& path, std::int64_t last_step, RunData& data);

// The same of all records. Error naming the line where a complete line is not a record.
void read_journal(const std::filesystem::path& path, RunData& data);

}  // namespace moelab
