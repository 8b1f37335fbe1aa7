// Accounting of published architectures, from their Hugging Face config.json alone.
#pragma once

#include "experiments/accounting/accounting.hpp"

#include <string>
#include <vector>

namespace moelab {

// Model types that are known, in alphabetical order.
std::vector<std::string> published_model_types();

// Counts the main model of a config.json. `where` names it in messages. Throws ConfigError for an unknown
// model_type, and for a field that is not known to leave the counts alone.
Accounting account_published(const std::string& json_text, const std::string& where, Index context);

// Whether the text is a JSON object with a model_type (or could only be one): a config, not an experiment.
bool is_published_config(const std::string& text);

}  // namespace moelab
