// Parameters, blocks and repeats of a model file, expanded to a flat list of layers. Nothing cleverer: no
// arithmetic, no conditions.
//
//   $width or ${width}      a parameter of the model, of the surrounding block, or a repeat's index
//   $in                     inside a block: the name of the layer the block reads
//   $name                   inside a block: the name of its use
//   {block: unit, name: stage1, with: {width: 64}, repeat: {index: i, from: 2, to: $units}}
//
// A layer or block without `from` reads the one before it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graphs/layer_graph.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

using Parameters = std::map<std::string, SpecTree>;

// A copy of the tree with every $parameter in its scalars replaced. Throws SpecError for an unknown one.
[[nodiscard]] SpecTree substitute(const SpecTree& tree, const Parameters& parameters);

// The names of all $parameters in the tree's scalars. Throws SpecError for a '$' without a name.
[[nodiscard]] std::set<std::string> parameters_in(const SpecTree& tree);

struct ExpandedLayers {
  std::vector<LayerSpec> layers;
  std::set<std::string> blocks;  // names of those that were used
};

// Expands `layers`, a list of layers and block uses, whose first entry reads `input`. Throws SpecError also
// for blocks that contain themselves, and for models of more than 20,000 layers or block uses or 200 MB after
// expansion.
[[nodiscard]] ExpandedLayers expand_layers(const SpecNode& layers, const SpecTree& blocks,
                                           const Parameters& parameters, const std::string& input);

}  // namespace tbdsim
