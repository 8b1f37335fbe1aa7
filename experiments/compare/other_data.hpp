// Whether two runs are evaluated on the same data, as their configs say.
#pragma once

#include <string>
#include <vector>

namespace moelab {

// Dotted keys of what two runs are evaluated on that their resolved configs (YAML) give different values, as
// in "data.tokenizer.kind"; "data.kind" alone where that differs. Shares of the domains in training are free.
// Nothing where a config cannot be read.
std::vector<std::string> keys_of_other_data(const std::string& config, const std::string& other);

// Whether values of this metric cannot be compared where these keys differ: of a loss always, of bits per
// byte where more than the cutting into tokens and sequences differs.
bool is_metric_of_data(const std::string& metric, const std::vector<std::string>& keys);

}  // namespace moelab
