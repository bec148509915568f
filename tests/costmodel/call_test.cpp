#include "costmodel/call.h"

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

Kernel kernel_of(KernelKind kind, KernelShape shape) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.shape = std::move(shape);
  return kernel;
}

// At batch 8: 3 x 8 of 5, from operands of 2 bytes (120 + ... below) to results of 4.
TEST(CallOf, ProductsTakeElementsFromArithmeticAndResultsFromBytes) {
  Kernel kernel = kernel_of(
      KernelKind::gemm,
      GemmShape{
          .m = fixed_size(3), .n = {0, 1}, .k = fixed_size(5), .batch = fixed_size(1), .transpose_a = true});
  kernel.math = MathType::bf16;
  kernel.read_bytes = {2 * 3 * 5, 2 * 5};
  kernel.written_bytes = {0, 4 * 3};
  auto call = std::get<GemmCall>(call_of(kernel, 8));
  EXPECT_EQ(call.m, 3);
  EXPECT_EQ(call.n, 8);
  EXPECT_EQ(call.k, 5);
  EXPECT_EQ(call.batch, 1);
  EXPECT_TRUE(call.transpose_a);
  EXPECT_FALSE(call.transpose_b);
  EXPECT_EQ(call.element_bytes, 2);
  EXPECT_EQ(call.output_bytes, 4);
  EXPECT_FALSE(call.reads_c);
  kernel.read_bytes += kernel.written_bytes;  // adds to what is there
  call = std::get<GemmCall>(call_of(kernel, 8));
  EXPECT_TRUE(call.reads_c);
}

TEST(CallOf, Convolutions) {
  Kernel kernel = kernel_of(KernelKind::convolution, ConvShape{.images = {0, 2},
                                                               .channels = 3,
                                                               .height = 32,
                                                               .width = 30,
                                                               .filters = 8,
                                                               .out_height = 16,
                                                               .out_width = 14,
                                                               .kernel_height = 5,
                                                               .kernel_width = 7,
                                                               .stride_height = 2,
                                                               .stride_width = 1,
                                                               .pad_height = 2,
                                                               .pad_width = 3});
  kernel.phase = Phase::backward_weights;
  const auto call = std::get<ConvCall>(call_of(kernel, 4));
  EXPECT_EQ(call.phase, Phase::backward_weights);
  EXPECT_EQ(call.images, 8);
  EXPECT_EQ(call.channels, 3);
  EXPECT_EQ(call.height, 32);
  EXPECT_EQ(call.width, 30);
  EXPECT_EQ(call.filters, 8);
  EXPECT_EQ(call.out_height, 16);
  EXPECT_EQ(call.out_width, 14);
  EXPECT_EQ(call.kernel_height, 5);
  EXPECT_EQ(call.kernel_width, 7);
  EXPECT_EQ(call.stride_height, 2);
  EXPECT_EQ(call.stride_width, 1);
  EXPECT_EQ(call.pad_height, 2);
  EXPECT_EQ(call.pad_width, 3);
  EXPECT_EQ(call.element_bytes, 4);
}

TEST(CallOf, ConvolutionsOfGroups) {
  ConvShape shape{.images = {0, 2}, .channels = 6, .filters = 4};
  Kernel kernel = kernel_of(KernelKind::convolution, shape);
  auto call = std::get<ConvCall>(call_of(kernel, 4));
  EXPECT_EQ(call.groups, 1);
  EXPECT_EQ(call.dilation_height, 1);
  EXPECT_EQ(call.dilation_width, 1);
  EXPECT_FALSE(call.channels_last || call.framework_kernel);
  shape.groups = 2;
  shape.dilation_height = 3;
  shape.dilation_width = 4;
  shape.channels_last = shape.framework_kernel = true;
  kernel.shape = shape;
  call = std::get<ConvCall>(call_of(kernel, 4));
  EXPECT_EQ(call.channels, 6);  // of both groups
  EXPECT_EQ(call.groups, 2);
  EXPECT_EQ(call.dilation_height, 3);
  EXPECT_EQ(call.dilation_width, 4);
  EXPECT_TRUE(call.channels_last && call.framework_kernel);
}

// The forward pass of a transposed convolution is the data pass of its convolution, and the other way round.
TEST(CallOf, TransposedConvolutionsSwapTheirPasses) {
  Kernel kernel = kernel_of(KernelKind::convolution, ConvShape{.images = {0, 1}, .transposed = true});
  const auto phase = [&](Phase of) {
    kernel.phase = of;
    return std::get<ConvCall>(call_of(kernel, 1)).phase;
  };
  EXPECT_EQ(phase(Phase::forward), Phase::backward_data);
  EXPECT_EQ(phase(Phase::backward_data), Phase::forward);
  EXPECT_EQ(phase(Phase::backward_weights), Phase::backward_weights);
}

TEST(CallOf, RecurrentLayers) {
  Kernel kernel =
      kernel_of(KernelKind::recurrent,
                RecurrentShape{.batch = {0, 1}, .steps = 25, .inputs = 9, .hidden = 7, .gates = 3});
  kernel.phase = Phase::backward_data;
  kernel.math = MathType::fp16;
  const auto call = std::get<RecurrentCall>(call_of(kernel, 4));
  EXPECT_EQ(call.phase, Phase::backward_data);
  EXPECT_EQ(call.batch, 4);
  EXPECT_EQ(call.steps, 25);
  EXPECT_EQ(call.inputs, 9);
  EXPECT_EQ(call.hidden, 7);
  EXPECT_EQ(call.gates, 3);
  EXPECT_EQ(call.element_bytes, 2);
}

TEST(CallOf, AllElseByItsBytes) {
  Kernel kernel = kernel_of(KernelKind::layer_norm, MatrixShape{{0, 10}, 512});
  kernel.read_bytes = {100, 20};
  kernel.written_bytes = {0, 30};
  kernel.flops = {0, 7};
  auto call = std::get<StreamCall>(call_of(kernel, 2));
  EXPECT_EQ(call.kind, KernelKind::layer_norm);
  EXPECT_EQ(call.rows, 20);
  EXPECT_EQ(call.columns, 512);
  EXPECT_EQ(call.read_bytes, 140);
  EXPECT_EQ(call.written_bytes, 60);
  EXPECT_EQ(call.flops, 14);
  kernel.shape = VectorShape{{0, 50}};
  call = std::get<StreamCall>(call_of(kernel, 2));
  EXPECT_EQ(call.rows, 1);
  EXPECT_EQ(call.columns, 100);
}

TEST(CallOf, AThreadForEachRowIsSerial) {
  Kernel kernel = kernel_of(KernelKind::gather, MatrixShape{{0, 512}, 14});
  EXPECT_EQ(std::get<StreamCall>(call_of(kernel, 64)).serial, 0);
  kernel.thread_per_row = true;
  EXPECT_EQ(std::get<StreamCall>(call_of(kernel, 64)).serial, 64 * 512);
}

TEST(CallOf, AKernelMayBeTimedAsAnotherKind) {
  Kernel kernel = kernel_of(KernelKind::layer_norm, MatrixShape{{0, 1}, 512});
  EXPECT_EQ(std::get<StreamCall>(call_of(kernel, 2)).kind, KernelKind::layer_norm);
  kernel.timed_as = KernelKind::batch_norm;
  EXPECT_EQ(std::get<StreamCall>(call_of(kernel, 2)).kind, KernelKind::batch_norm);
}

}  // namespace
}  // namespace tbdsim
