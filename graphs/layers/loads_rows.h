// How norms over pixels read images whose channels are neighbors in memory.
#pragma once

#include "graphs/layer.h"

namespace tbdsim {

// True if a norm's threads load several channels of a pixel at a time, as those of element-wise kernels load
// rows: images are NHWC and of half precision, for which PyTorch and MXNet ask cuDNN for its spatial
// persistent mode.
[[nodiscard]] inline bool loads_rows(const LoweringContext& how) {
  return how.lowering.layout == Layout::nhwc && how.lowering.norm_layout == NormLayout::any &&
         how.precision.storage_bytes < kFp32Bytes;
}

}  // namespace tbdsim
