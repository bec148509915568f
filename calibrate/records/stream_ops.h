// Memory traffic of the ops that stream tensors through the GPU: element-wise ops, normalizations, softmax,
// optimizers. tbd-measure estimates the bytes of a point from it, a fit the bytes of a record.
#pragma once

#include <string_view>

namespace tbdsim {

struct StreamOp {
  std::string_view op;
  std::string_view phase;
  double reads = 0;       // of the main tensor, in times its size
  double writes = 0;      // the same
  double mask_bytes = 0;  // for each element: written forward, read backward
};

// Null for an op that streams no tensors. `phase` empty: forward.
[[nodiscard]] const StreamOp* find_stream_op(std::string_view op, std::string_view phase);

}  // namespace tbdsim
