// Launches of multi-tensor kernels, derived from the limits of MultiTensorApply.cuh: chunks of 65,536
// numbers, 320 chunks and, of one to five lists, 110, 64, 48, 36, 30 tensors a launch.
#include "graphs/multi_tensor.h"

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

std::int64_t sum(const std::vector<TensorShare>& launch) {
  std::int64_t all = 0;
  for (const TensorShare& part : launch) all += part.elements;
  return all;
}

TEST(MultiTensor, HoldsSoManyTensorsALaunch) {
  const std::vector<std::int64_t> small(130, 7);
  const auto one = multi_tensor_launches(small, 1);
  ASSERT_EQ(one.size(), 2u);
  EXPECT_EQ(one[0].size(), 110u);
  EXPECT_EQ(sum(one[1]), 20 * 7);
  EXPECT_EQ(multi_tensor_launches(small, 2).size(), 3u);
  EXPECT_EQ(multi_tensor_launches(small, 4).size(), 4u);
  EXPECT_EQ(multi_tensor_launches(small, 5).size(), 5u);
}

// 321 chunks, of which the last has one number.
TEST(MultiTensor, SplitsALargeTensorByBlocks) {
  const std::vector<std::int64_t> large = {320 * 65'536 + 1, 5};
  const auto launches = multi_tensor_launches(large, 1);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(sum(launches[0]), 320 * 65'536);
  ASSERT_EQ(launches[1].size(), 2u);
  EXPECT_EQ(launches[1][0].elements, 1);
  EXPECT_EQ(sum(launches[1]), 6);
}

// A trace of VGG-13 with Adam on an H100, PyTorch 2.1 (sarchlab/triosim at 3fb3c060b359,
// profiler_vgg13-iter41): each of seven operators is six launches of 320 blocks and one of 127.
TEST(MultiTensor, IsThatOfATraceOfVgg13) {
  const std::vector<std::int64_t> weights = {
      1'728,     64,      36'864,      64,        73'728,     128,       147'456,   128,       294'912,
      256,       589'824, 256,         1'179'648, 512,        2'359'296, 512,       2'359'296, 512,
      2'359'296, 512,     102'760'448, 4'096,     16'777'216, 4'096,     4'096'000, 1'000};
  for (const std::int64_t lists : {1, 2, 3, 4}) {
    std::vector<std::int64_t> blocks;
    for (const std::vector<TensorShare>& launch : multi_tensor_launches(weights, lists)) {
      blocks.push_back(0);
      for (const TensorShare& part : launch) blocks.back() += (part.elements + 65'535) / 65'536;
    }
    EXPECT_EQ(blocks, (std::vector<std::int64_t>{320, 320, 320, 320, 320, 320, 127})) << lists;
  }
}

TEST(MultiTensor, LaunchesAddUpToTheirKernels) {
  std::vector<Kernel> kernels;
  for (const std::int64_t elements : {30'000'000, 1'000, 65'537}) {
    Kernel kernel;
    kernel.layer = 3;
    kernel.shape = VectorShape{fixed_size(elements)};
    kernel.flops = fixed_size(2 * elements);
    kernel.read_bytes = fixed_size(8 * elements);
    kernel.written_bytes = fixed_size(4 * elements);
    kernels.push_back(kernel);
  }
  const std::vector<Kernel> launches = multi_tensor_kernels(kernels, 2);
  ASSERT_EQ(launches.size(), 2u);  // 458 + 1 + 2 chunks
  Size flops, read, written;
  for (const Kernel& launch : launches) {
    EXPECT_EQ(launch.layer, -1);
    flops += launch.flops;
    read += launch.read_bytes;
    written += launch.written_bytes;
  }
  EXPECT_EQ(flops, fixed_size(2 * 30'066'537));
  EXPECT_EQ(read, fixed_size(8 * 30'066'537));
  EXPECT_EQ(written, fixed_size(4 * 30'066'537));
  EXPECT_TRUE(multi_tensor_kernels({}, 2).empty());
}

// A block loads 2,048 elements at once: of 5,000 it waits three times, of a whole chunk 32 times.
TEST(MultiTensor, ABlockWaitsForOneLoadAfterAnother) {
  const auto loads = [](std::int64_t elements) {
    Kernel kernel;
    kernel.shape = VectorShape{fixed_size(elements)};
    const std::vector<Kernel> launches = multi_tensor_kernels(std::vector{kernel, kernel}, 2);
    EXPECT_TRUE(launches.front().thread_per_row);
    return std::get<MatrixShape>(launches.front().shape).rows.fixed;
  };
  EXPECT_EQ(loads(5'000), 3);
  EXPECT_EQ(loads(2'048), 1);
  EXPECT_EQ(loads(1'000'000), 32);
}

}  // namespace
}  // namespace tbdsim
