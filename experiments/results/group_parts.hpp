// Inside of experiments/results: what the writers of a run's groups share.
#pragma once

#include "core/hdf5.hpp"
#include "experiments/results/run_data.hpp"

#include <string>
#include <type_traits>
#include <vector>

namespace moelab {

// The values of one member of all records.
template <class Record, class Member>
auto column(const std::vector<Record>& records, Member member) {
  std::vector<std::remove_cvref_t<decltype(records[0].*member)>> values;
  values.reserve(records.size());
  for (const Record& r : records) values.push_back(r.*member);
  return values;
}

// Lets viewers of NeXus data draw the group without being told how.
inline void default_plot(hdf5::Group& group, const std::string& signal, const std::string& axes) {
  group.attribute("NX_class", std::string("NXdata"));
  group.attribute("signal", signal);
  group.attribute("axes", axes);
}

template <class Record>
void step_and_tokens(hdf5::Group& group, const std::vector<Record>& records) {
  group.series("step", "step", column(records, &Record::step), {"1", "optimizer steps done"});
  group.series("tokens", "step", column(records, &Record::tokens), {"token", "training tokens seen"});
}

// Adds routing/, routing_eval/ and routing_samples/, those that there are (routing_groups.cpp).
void add_routing(hdf5::Group& run, const RunData& data);
void add_statistics(hdf5::Group& run, const RunData& data);
void add_samples(hdf5::Group& run, const RunData& data);

}  // namespace moelab
