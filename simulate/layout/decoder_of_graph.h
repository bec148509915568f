// The sizes of a decoder, found in its layer graph: attention layers are its blocks, and how each layer may
// be shared among GPUs (Sharding) tells columns from rows, heads, words and experts.
#pragma once

#include "graphs/model.h"
#include "simulate/layout/decoder_shape.h"

namespace tbdsim {

// Throws UsageError for a model that is not alike blocks of attention between an embedding and scores of
// words.
[[nodiscard]] DecoderShape decoder_of(const Model& model);

}  // namespace tbdsim
