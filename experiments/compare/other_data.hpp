// Whether two runs are trained and evaluated on the same data.
#pragma once

#include <string>
#include <vector>

namespace moelab {

struct RunOnData {
  std::string config;    // resolved YAML
  std::string checksum;  // of the data (kDataChecksum); empty where it is not known
};

// Dotted keys of their data, and of how much is evaluated, that two runs have different values of, as in
// "data.tokenizer.kind"; "data.kind" alone where that differs. Where files lie, and shares of the domains in
// training, are free. "what the files hold" where only the checksums differ. Nothing where a config cannot be
// read.
std::vector<std::string> other_data(const RunOnData& one, const RunOnData& two);

// Whether values of this metric cannot be compared where these keys differ: of a loss always, of bits per
// byte where more than the cutting into tokens and sequences differs.
bool is_metric_of_data(const std::string& metric, const std::vector<std::string>& keys);

}  // namespace moelab
