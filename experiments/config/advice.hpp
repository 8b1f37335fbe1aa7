// What to write instead of a key that is not known where it stands.
#pragma once

#include <string>

namespace moelab {

// For names that other programs use (Hugging Face, Megatron, DeepSpeed, nanoGPT, ...) and for keys that
// belong to another block. `path` is the dotted path of the mapping that the key stands in. Empty: nothing
// known.
std::string advise_on_key(const std::string& path, const std::string& key);

}  // namespace moelab
