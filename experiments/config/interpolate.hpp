// ${model.d_model} and ${env:NAME,default} in values.
#pragma once

#include "core/yaml.hpp"

namespace moelab {

// Replaces every ${...} in the values of `root`. A value that is one ${a.b} alone becomes a copy of what
// stands at a.b, be it a list or a mapping; inside a longer text only plain values can stand.
// ${env:NAME,default} is the environment variable, read as YAML would read it unquoted. A path that leads
// nowhere or around in a circle, and a variable that is not set and has no default, are errors. Keys are left
// alone, and so are final values, so that no text of the environment is ever expanded. Expansion is bounded,
// as that of aliases is.
void interpolate(yaml::Node& root, Diagnostics& diagnostics);

// The same for a part of a file: what stands at a.b is looked up in `root`.
void interpolate(yaml::Node& part, const yaml::Node& root, Diagnostics& diagnostics);

}  // namespace moelab
