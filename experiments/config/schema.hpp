// What an experiment file may hold, for editors and readers.
#pragma once

#include <string>

namespace moelab {

// JSON Schema (draft-07) of experiment files, kinds registered by then included.
std::string experiment_schema();

// The same of corpus files.
std::string corpus_schema();

// The fields of every block as Markdown tables, for docs/experiment-file.md.
std::string experiment_reference();

}  // namespace moelab
