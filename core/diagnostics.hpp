// Errors in what a user wrote, each with its position, collected so that all are told at once.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace moelab {

// A text that a user wrote: a file, or an argument of the command line.
struct Source {
  Source(std::string name, std::string text);
  // Line `number`, from 1, without its end; empty past the last.
  std::string_view line(int number) const;

  const std::string name;                      // as shown in messages
  const std::string text;                      // lines end with \n
  const std::vector<std::size_t> line_starts;  // the byte at which each line begins
};

// Byte at which character `column` (from 1) of a line starts; its size for columns past it.
std::size_t byte_of_column(std::string_view line, int column);

// A place in a source. Lines and columns count from 1; columns count characters, not bytes.
struct Mark {
  std::shared_ptr<const Source> source;
  int line = 0;
  int column = 0;
};

class Diagnostics {
 public:
  // `help` says what would be right, if that is known. The same text at the same place is kept once.
  void error(const Mark& where, std::string message, std::string help = {});
  void warning(const Mark& where, std::string message, std::string help = {});

  // Takes over what `other` found. Errors that are not in `base` too get `note` behind the message: a run
  // says which variant it belongs to where the file as such is not to blame.
  void merge(const Diagnostics& other, const Diagnostics& base, const std::string& note);

  std::size_t num_errors() const { return num_errors_; }
  // Warnings only, each rendered.
  std::vector<std::string> warnings() const;
  // Every error and warning in order of position:
  //   FILE:LINE:COLUMN: error: MESSAGE
  //      LINE | the line
  //           |     ^~~~
  //      help: HELP
  std::string render() const;
  // Throws ConfigError with the rendered text if there was an error.
  void throw_if_errors() const;

 private:
  struct Entry {
    Mark where;
    bool is_error;
    std::string message;
    std::string help;
    std::string note = {};
  };
  bool has(const Entry& entry) const;
  void add(Entry entry);
  static std::string render(const Entry& entry);
  std::vector<Entry> entries_;
  std::size_t num_errors_ = 0;
};

}  // namespace moelab
