// Upcycling: a mixture starts from a trained dense checkpoint (Sparse Upcycling, Komatsuzaki et al. 2022; in
// shards: Upcycling LLMs into MoE, He et al. 2024, section 3.4).
//
// Every expert becomes a copy of the dense FFN of its layer. Where experts are G times narrower they become
// its shards: expert g * G + s has the s-th G-th of the inner width, and the G experts of a group start with
// the same router row, so that a token takes whole groups, each of which is the dense FFN. Everything else is
// copied by name; the router starts at random.
//
// With weights that sum to `scale` (`normalize: true`) the output projections are multiplied by G / scale,
// and the function of the model is that of the dense one at the start. Shared experts start with an output of
// 0.
#pragma once

#include "core/checkpoint.hpp"
#include "experiments/models/model.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace moelab {

struct ModelConfig;

// What stands against the start of a model of this config from that checkpoint, one line each; empty:
// nothing.
std::vector<std::string> upcycle_problems(const ModelConfig& config, const CheckpointReader& checkpoint);

// The same for the parameters outside of the layers, whose shapes follow from the data too: embeddings of the
// vocabulary, positions, the head.
std::vector<std::string> upcycle_table_problems(Model& model, const CheckpointReader& checkpoint);

// Sets every parameter but those of routers. Parameters must have storage. `noise`: normal numbers with this
// share of each expert matrix's own standard deviation are added to it. Error naming what does not fit. Gives
// the lines that tell what was done.
std::vector<std::string> upcycle(Model& model, const ModelConfig& config, const CheckpointReader& checkpoint,
                                 double noise, std::uint64_t seed);

}  // namespace moelab
