// A GPU, a framework, a profile and a model in files of their own, small enough to predict by hand.
#pragma once

#include <string>

#include "simulate/prediction/prediction.h"
#include "tests/support/temp_dir.h"

namespace tbdsim::test {

// The GPU: 500 Mflop/s (one SM, 2 flop a clock, 250 MHz), 1 GB/s, 1 MiB.
// The profile: all of the peak and the bandwidth, 0.25 us for each kernel, ln-spread 0.5.
// The framework: nothing special, 1 KiB of context, at most 4 KiB of workspace.
// The model, batch b in fp32; the GPU does 500 flop and moves 1000 B in a microsecond:
//   fully connected 4 -> 3 without bias, relu, softmax, trained with momentum; 12 weights.
//
//   kernel            flop   B             at b = 10: flop   B    compute    memory     total    bound
//   0 matmul          24 b   48 + 28 b                240  328    0.48 us   0.328 us   0.73 us  compute
//   1 relu             3 b   24 b                      30  240    0.06      0.24       0.49     overhead
//   2 softmax         15 b   24 b                     150  240    0.30      0.24       0.55     compute
//   3 softmax back     3 b   24 b                      30  240    0.06      0.24       0.49     overhead
//   4 relu back        3 b   36 b                      30  360    0.06      0.36       0.61     memory
//   5 matmul, dW      24 b   48 + 28 b                240  328    0.48      0.328      0.73     compute
//   6 momentum          48   240                       48  240    0.096     0.24       0.49     overhead
//
// slow.yaml is the same framework with a thread that issues a kernel in 1 us, an update in 2 us, waits 0.5 us
// longer than the last kernel at the end of an iteration and then works 3 us; a kernel starts 0.25 us after
// it was issued. Two threads decode. At b = 10 kernels are issued at 1, 2, 3, 4, 5, 6 and 8 us, start
// at 1.25, 2.25, ... 6.25 and 8.25 us, the last ends at 8.74 us, the iteration at 8.74 + 0.5 + 3 = 12.24 us.
//
// The data set has 5000 images; the GPU is rented for 3.6 USD an hour, 0.001 USD a second.
class ToyWorld {
 public:
  ToyWorld() {
    directory_.write("gpu.yaml",
                     "title: Toy GPU\narchitecture: pascal\ncompute_capability: \"6.1\"\nsm_count: 1\n"
                     "fp32_lanes_per_sm: 1\nboost_clock: 250 MHz\n"
                     "math: {fp32: {flops_per_clock_per_sm: 2, quoted_peak: 0.5 GFLOP/s}}\n"
                     "memory_size: 1 MiB\nusable_memory: 1 MiB\nmemory_bandwidth: 1 GB/s\nmemory_type: "
                     "GDDR5\nl2_size: 1 KiB\ntdp: 1 W\n"
                     "bus: pcie3\nprice_per_hour: 3.6 USD/h\n"
                     "sources: {sm_count: t, fp32_lanes_per_sm: t, boost_clock: t, math: t, memory_size: t, "
                     "usable_memory: t, memory_bandwidth: t, l2_size: t, tdp: t, price_per_hour: t}\n");
    directory_.write("framework.yaml",
                     "title: Toy framework\n"
                     "lowering: {layout: nchw, tensor_core_layout: nhwc, conv_1x1: convolution, relu_keeps: "
                     "output, relu_in_place: false, "
                     "weight_gradients: persistent, update: per_tensor, parameter_copies: 0, "
                     "recurrence: cells, cell_products: separate, cell_pointwise: composite, "
                     "step_gradients: in_place, joins: whole, "
                     "layer_norm: fused, dropout: fused, softmax: fused, embedding_gradient: dense, "
                     "global_norm: fused}\n"
                     "workspace_limit: 4 KiB\ncontext_memory: 1 KiB\n"
                     "sources: {lowering: t, workspace_limit: t, context_memory: t}\n");
    directory_.write(
        "slow.yaml",
        "title: Slow framework\nbased_on: framework\n"
        "execution: {kernel: 1 us, update: 2 us, wait: 0.5 us, iteration: 3 us, latency: 0.25 us, "
        "input_threads: 2, sources: {kernel: t, update: \"estimate: t\", wait: t, iteration: t, "
        "latency: t, input_threads: t}}\nsources: {}\n");
    std::string kinds;
    for (const std::string_view kind : kKernelKindNames) {
      kinds += "  " + std::string(kind) + ": {compute: 1, bandwidth: 1, overhead: 0.25 us}\n";
    }
    directory_.write("profile.yaml", "schema_version: 2\ntitle: Toy profile\ncalibrated: true\nkinds:\n" +
                                         kinds + "spread: 0.5\nsources: {kinds: t, spread: t}\n");
    directory_.write("dataset.yaml",
                     "title: Toy data\nsample: image\nsamples: 5000\nsources: {samples: t}\n");
    directory_.write("model.yaml",
                     "title: Toy model\nsample: image\nvariants:\n"
                     "  v1: {description: for a test, source: a test, optimizer: momentum, dataset: " +
                         path("dataset.yaml") +
                         "}\n"
                         "graphs:\n  main:\n    inputs: {data: [4]}\n    layers:\n"
                         "      - {name: fc, type: fully_connected, outputs: 3, bias: false}\n"
                         "      - {name: relu, type: relu}\n"
                         "      - {name: softmax, type: softmax_loss}\n"
                         "training: [{graph: main}]\n");
  }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_.path() / name).string();
  }
  // A data set of images that take one thread `time` to decode: "1 us".
  [[nodiscard]] std::string dataset_decoded_in(const std::string& time) const {
    return directory_
        .write("decoded.yaml", "title: Toy data\nsample: image\nsamples: 5000\ndecode_time: " + time +
                                   "\nsources: {samples: t, decode_time: \"estimate: t\"}\n")
        .string();
  }
  [[nodiscard]] Scenario slow_scenario(std::int64_t batch, const std::string& dataset = "") const {
    Scenario slow = scenario(batch);
    slow.framework = path("slow.yaml");
    slow.dataset = dataset;
    return slow;
  }
  [[nodiscard]] Scenario scenario(std::int64_t batch) const {
    return {.model = path("model.yaml"),
            .framework = path("framework.yaml"),
            .gpu = path("gpu.yaml"),
            .batch = batch,
            .profile = path("profile.yaml")};
  }

 private:
  TempDir directory_;
};

}  // namespace tbdsim::test
