#include "costmodel/call.h"
namespace tbdsim {
Call call_of(const Kernel& kernel, double batch) {
  if (const auto* g = std::get_if<GemmShape>(&kernel.shape)) {
    GemmCall c{g->m.at(batch),     g->n.at(batch), g->k.at(batch),
               g->batch.at(batch), g->transpose_a, g->transpose_b};
    return c;
  }
  return StreamCall{};
}
}  // namespace tbdsim
