// Figures of an Accounting for people and for programs.
#pragma once

#include "experiments/accounting/accounting.hpp"

#include <string>
#include <vector>

namespace moelab {

// A counted model with the name it is shown under.
struct CountedModel {
  std::string name;
  Accounting accounting;
};

// A table by module group of one model, or of several side by side with the ratios to the first, the totals,
// and the conventions in words.
std::string accounting_table(const std::vector<CountedModel>& models);

// A JSON object: of one model its figures; of several {"models": [...]} with "name" in each.
std::string accounting_json(const std::vector<CountedModel>& models);

}  // namespace moelab
