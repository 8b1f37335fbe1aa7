// A run as a group of a results file.
#pragma once

#include "core/hdf5.hpp"
#include "experiments/results/run_data.hpp"

#include <string>

namespace moelab {

// The content of /runs/<run>. Groups of kinds of records that are empty are left out.
hdf5::Group run_group(const RunData& data);

// The parts that the journal does not hold, from the group of a run. Empty where they were not measured.
EvaluationStatistics read_statistics(const hdf5::Reader& reader, const std::string& run_group,
                                     const RunInfo& info);
RoutingSamples read_routing_samples(const hdf5::Reader& reader, const std::string& run_group,
                                    const RunInfo& info);

}  // namespace moelab
