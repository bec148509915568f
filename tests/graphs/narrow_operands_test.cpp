// Kernels that fp8 and fp4 recipes run beside the products: bytes of every pass, by hand.
#include "graphs/layers/narrow_operands.h"

#include <gmock/gmock.h>

#include "tests/graphs/work_fixture.h"

namespace tbdsim {
namespace {

using test::LayerBench;
using test::per_sample;

const Precision& precision_named(std::string_view name) {
  return *std::ranges::find(kPrecisions, name, &Precision::name);
}

// 8 positions of 16 features, of which 4 are made: x has 128 numbers, W 64, dy 32.
LayerBench bench_in(std::string_view precision) {
  LayerBench bench{"{type: fully_connected, outputs: 4, bias: false, per_position: true}",
                   {Shape{per_sample(1), {8, 16}}}};
  bench.precision = precision_named(precision);
  return bench;
}

struct Pass {
  std::string_view op;
  Size read, written;
  friend bool operator==(const Pass&, const Pass&) = default;
};
void PrintTo(const Pass& pass, std::ostream* out) {
  *out << pass.op << ' ';
  PrintTo(pass.read, out);
  *out << " -> ";
  PrintTo(pass.written, out);
}

std::vector<Pass> passes(const std::vector<Kernel>& kernels) {
  std::vector<Pass> found;
  for (const Kernel& kernel : kernels) found.push_back({kernel.op, kernel.read_bytes, kernel.written_bytes});
  return found;
}

TEST(NarrowOperands, OneScaleForEachTensor) {
  const LayerBench bench = bench_in("fp8_tensorwise");
  EXPECT_THAT(passes(bench.forward()),
              testing::ElementsAre(Pass{"amax", {0, 256}, {}}, Pass{"cast", {0, 256}, {0, 128}},
                                   Pass{"amax", {128, 0}, {}}, Pass{"cast", {128, 0}, {64, 0}},
                                   Pass{"matmul", {64, 128}, {0, 64}}));
  // dy, W, the copy of dy for the other product, x; products: dW in fp32, dx in bf16.
  EXPECT_THAT(passes(bench.backward()),
              testing::ElementsAre(Pass{"amax", {0, 64}, {}}, Pass{"cast", {0, 64}, {0, 32}},
                                   Pass{"amax", {128, 0}, {}}, Pass{"cast", {128, 0}, {64, 0}},
                                   Pass{"transpose", {0, 32}, {0, 32}}, Pass{"amax", {0, 256}, {}},
                                   Pass{"cast", {0, 256}, {0, 128}}, Pass{"matmul", {0, 160}, {256, 0}},
                                   Pass{"matmul", {64, 32}, {0, 256}}));
  EXPECT_TRUE(bench.needs().inputs);
}

// The kernels before a product cast its operands.
TEST(NarrowOperands, DelayedScalesCostNothing) {
  const LayerBench bench = bench_in("fp8");
  EXPECT_THAT(passes(bench.forward()), testing::ElementsAre(Pass{"matmul", {64, 128}, {0, 64}}));
  EXPECT_EQ(bench.backward().size(), 2u);
}

// The gradient is cast twice, along its rows and along its columns.
TEST(NarrowOperands, OneScaleForEachRow) {
  const std::vector<Pass> backward = passes(bench_in("fp8_rowwise").backward());
  EXPECT_EQ(std::count(backward.begin(), backward.end(), Pass{"cast", {0, 64}, {0, 32}}), 2);
  EXPECT_EQ(std::count(backward.begin(), backward.end(), Pass{"transpose", {0, 32}, {0, 32}}), 0);
}

// One byte of scale for each 32 numbers of fp8, 16 of fp4; both directions are written at once, and one of
// them is kept instead of the input.
TEST(NarrowOperands, OneScaleForEachBlock) {
  const LayerBench mx = bench_in("mxfp8");
  EXPECT_THAT(passes(mx.forward()), testing::ElementsAre(Pass{"quantize", {0, 256}, {0, 2 * (128 + 4)}},
                                                         Pass{"quantize", {128, 0}, {2 * (64 + 2), 0}},
                                                         Pass{"matmul", {64, 128}, {0, 64}}));
  EXPECT_FALSE(mx.needs().inputs);
  EXPECT_EQ(mx.needs().extra_bytes, per_sample(132));
  const LayerBench nv = bench_in("nvfp4");
  EXPECT_THAT(passes(nv.forward()),
              testing::ElementsAre(Pass{"amax", {0, 256}, {}}, Pass{"quantize", {0, 256}, {0, 2 * (64 + 8)}},
                                   Pass{"amax", {128, 0}, {}}, Pass{"quantize", {128, 0}, {2 * (32 + 4), 0}},
                                   Pass{"matmul", {32, 64}, {0, 64}}));
  EXPECT_EQ(nv.needs().extra_bytes, per_sample(72));
  EXPECT_EQ(nv.forward().back().math, MathType::fp4);
}

TEST(NarrowOperands, ALayerMayStayIn16Bits) {
  LayerBench bench{"{type: fully_connected, outputs: 4, bias: false, per_position: true, narrow: false}",
                   {Shape{per_sample(1), {8, 16}}}};
  bench.precision = precision_named("nvfp4");
  EXPECT_THAT(passes(bench.forward()), testing::ElementsAre(Pass{"matmul", {128, 256}, {0, 64}}));
  EXPECT_EQ(bench.forward()[0].math, MathType::bf16);
  EXPECT_TRUE(bench.needs().inputs);
}

}  // namespace
}  // namespace tbdsim
