#include "simulate/prediction/host_input.h"

#include <algorithm>

namespace tbdsim {
namespace {

// Bytes of a batch on the GPU: those of the inputs of the model's graphs.
Bytes input_bytes(const Iteration& iteration) {
  Size bytes;
  for (const Tensor& tensor : iteration.step->tensors) {
    if (tensor.role == TensorRole::feature_map && tensor.layer < 0) bytes += tensor.bytes;
  }
  return Bytes(bytes.at(static_cast<double>(iteration.batch)));
}

Seconds copy_time(const Prediction& p, const Iteration& iteration) {
  // Share of the rate from pinned memory. Harris, How to Optimize Data Transfers in CUDA C/C++ (NVIDIA,
  // 2012), measures 0.40 and 0.87 on two machines; an estimate between them.
  constexpr double kPageable = 0.6;
  const InputCopies copies = p.scenario.input.copies;
  if (copies == InputCopies::uncounted) return {};
  const Seconds pinned = p.gpu->bus.latency + input_bytes(iteration) / achievable(p.gpu->bus);
  return copies == InputCopies::pageable ? pinned * (1 / kPageable) : pinned;
}

}  // namespace

double decoding_threads(const Prediction& p) {
  const SampleInput& input = p.scenario.input;
  const int gpus = p.scenario.cluster.gpus;
  const double cores = input.cores ? static_cast<double>(*input.cores) / gpus
                       : p.sync    ? p.sync->cores
                                   : p.cores;
  return p.loader.threads(gpus, cores);
}

void share_host(Prediction& p) {
  const SampleInput& input = p.scenario.input;
  const double threads = decoding_threads(p);
  for (Iteration& iteration : p.iterations) {
    const double samples = static_cast<double>(iteration.batch * p.model->batches_per_iteration);
    const Seconds decoding = iteration.decode * (1 / threads);
    iteration.read = p.loader.read_time * (samples * p.scenario.cluster.gpus);
    iteration.input_copy = copy_time(p, iteration);
    iteration.decodes_in_loop = p.loader.in_loop();
    iteration.copies_in_order = input.copies != InputCopies::overlapped;
    iteration.input =
        iteration.decodes_in_loop ? decoding + iteration.read : std::max(decoding, iteration.read);
    if (!iteration.copies_in_order) iteration.input = std::max(iteration.input, iteration.input_copy);
  }
}

}  // namespace tbdsim
