// Reads a Lowering from YAML: all of it from a framework's file, single keys from a model's variant.
#pragma once

#include "graphs/lowering.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

// Every key is required. Throws SpecError.
[[nodiscard]] Lowering read_lowering(const SpecNode& node);

// The keys that `node` has replace those of `lowering`. Throws SpecError.
[[nodiscard]] Lowering override_lowering(const SpecNode& node, Lowering lowering);

}  // namespace tbdsim
