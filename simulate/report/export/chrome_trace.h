// One steady iteration as a trace: what the issuing thread, the GPU's streams and the threads that decode
// samples do when. The format is Chrome's trace events in JSON, with the categories and arguments that
// PyTorch's profiler gives them, so that Perfetto, chrome://tracing and tools for PyTorch traces read it.
//
//   process   thread                events
//   host      issuing thread        issue, wait and host work of each kernel; the end of the iteration
//             decoding thread 1..   samples of an iteration to come
//             storage               reading of them, where its rate is given
//   GPU       compute, copies       kernels: layer, phase, shape, flops, bytes, bound, provenance
//             memory in use         a counter: bytes of what is alive, by category
//
// Times are in microseconds from the start of the iteration on the CPU; where its thread does not wait at the
// end, it runs ahead, and the GPU's part of the iteration comes later. A kernel that repeats is one event
// with its count; its time includes the gaps between them. An arrow goes from the issue to the execution.
#pragma once

#include <iosfwd>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// A trace of the typical iteration.
void write_trace(std::ostream& out, const Prediction& prediction);

}  // namespace tbdsim
