#include "core/diagnostics.hpp"

#include "core/error.hpp"
#include "core/utf8.hpp"
#include "core/visible.hpp"

#include <algorithm>
#include <tuple>

namespace moelab {

namespace {

// A caret under the column and tildes under the rest of the word, where the line is shown as visible_text().
// Tabs before it stay tabs, so that it lines up.
std::string marker(std::string_view line, int column) {
  const std::size_t start = byte_of_column(line, column);
  std::string out;
  for (const char c : visible_text(line.substr(0, start))) {
    if (!utf8::continues_character(c)) out += c == '\t' ? '\t' : ' ';
  }
  out += '^';
  const std::string_view word = line.substr(std::min(start, line.size()));
  const std::size_t end = word.find_first_of(" \t:,{}[]#=");
  for (std::size_t i = 1; i < std::min(end, word.size()); ++i) {
    if (!utf8::continues_character(word[i])) out += '~';
  }
  return out;
}

std::vector<std::size_t> starts_of_lines(std::string_view text) {
  std::vector<std::size_t> starts{0};
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') starts.push_back(i + 1);
  }
  return starts;
}

}  // namespace

std::size_t byte_of_column(std::string_view line, int column) {
  std::size_t byte = 0;
  for (int seen = 1; byte < line.size() && seen < column; ++seen) {
    ++byte;
    while (byte < line.size() && utf8::continues_character(line[byte])) ++byte;
  }
  return byte;
}

Source::Source(std::string name_, std::string text_)
    : name(std::move(name_)), text(std::move(text_)), line_starts(starts_of_lines(text)) {}

std::string_view Source::line(int number) const {
  if (number < 1 || number > std::ssize(line_starts)) return {};
  const std::string_view rest =
      std::string_view(text).substr(line_starts[static_cast<std::size_t>(number - 1)]);
  return rest.substr(0, rest.find('\n'));
}

void Diagnostics::error(const Mark& where, std::string message, std::string help) {
  add({where, true, std::move(message), std::move(help)});
}

void Diagnostics::warning(const Mark& where, std::string message, std::string help) {
  add({where, false, std::move(message), std::move(help)});
}

bool Diagnostics::has(const Entry& entry) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) {
    return e.where.source == entry.where.source && e.where.line == entry.where.line &&
           e.where.column == entry.where.column && e.message == entry.message;
  });
}

void Diagnostics::add(Entry entry) {
  if (has(entry)) return;
  if (entry.is_error) ++num_errors_;
  entries_.push_back(std::move(entry));
}

void Diagnostics::merge(const Diagnostics& other, const Diagnostics& base, const std::string& note) {
  for (Entry entry : other.entries_) {
    if (!base.has(entry)) entry.note = note;
    add(std::move(entry));
  }
}

std::string Diagnostics::render(const Entry& entry) {
  const Mark& where = entry.where;
  const char* severity = entry.is_error ? "error" : "warning";
  const std::string message =
      visible_line(entry.message + (entry.note.empty() ? "" : " (" + entry.note + ")"));
  std::string out;
  if (where.source == nullptr) {
    out = fmt::format("{}: {}\n", severity, message);
  } else {
    out = fmt::format("{}:{}:{}: {}: {}\n", visible_line(where.source->name), where.line, where.column,
                      severity, message);
    const std::string_view line = where.source->line(where.line);
    if (!line.empty()) {
      out +=
          fmt::format("{:>5} | {}\n      | {}\n", where.line, visible_text(line), marker(line, where.column));
    }
  }
  if (!entry.help.empty()) out += fmt::format("      help: {}\n", visible_line(entry.help));
  return out;
}

std::vector<std::string> Diagnostics::warnings() const {
  std::vector<std::string> out;
  for (const Entry& entry : entries_) {
    if (!entry.is_error) out.push_back(render(entry));
  }
  return out;
}

std::string Diagnostics::render() const {
  // By source in the order they first appear, then by position.
  std::vector<const Source*> sources;
  const auto rank = [&](const Entry& e) {
    return std::find(sources.begin(), sources.end(), e.where.source.get()) - sources.begin();
  };
  for (const Entry& entry : entries_) {
    if (rank(entry) == std::ssize(sources)) sources.push_back(entry.where.source.get());
  }
  std::vector<const Entry*> sorted;
  sorted.reserve(entries_.size());
  for (const Entry& entry : entries_) sorted.push_back(&entry);
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Entry* a, const Entry* b) {
    return std::tuple(rank(*a), a->where.line, a->where.column) <
           std::tuple(rank(*b), b->where.line, b->where.column);
  });
  std::string out;
  for (const Entry* entry : sorted) out += render(*entry);
  return out;
}

void Diagnostics::throw_if_errors() const {
  if (num_errors_ > 0) throw ConfigError(render());
}

}  // namespace moelab
