// Layouts, jobs and sizes of decoders as texts: of flags, of columns of a table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "simulate/layout/layout.h"

namespace tbdsim {

// Keys of a layout: dp, tp, pp, vp, cp, cp_exchange, ep, zero, shard, reshard, prefetch, sequence_parallel,
// uneven, micro_batch, recompute, schedule.
[[nodiscard]] std::span<const std::string_view> layout_keys();
// Sets what the key names. Throws UsageError for a value out of range; `key` is one of layout_keys().
void set_layout(ParallelLayout& layout, std::string_view key, const std::string& value);

// Keys of the sizes of a decoder: layers, hidden, heads, ... as the members of DecoderShape.
[[nodiscard]] std::span<const std::string_view> shape_keys();
void set_shape(DecoderShape& shape, std::string_view key, const std::string& value);

// Fills in what follows from the rest: heads of keys and values, their features, inner features. Throws
// UsageError for sizes that are missing or do not go together.
[[nodiscard]] DecoderShape completed(DecoderShape shape);

}  // namespace tbdsim
