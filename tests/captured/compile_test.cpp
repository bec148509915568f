// Fusion of a captured step's operators as TorchInductor does it, derived by hand.
#include "graphs/captured/compile.h"

#include <gmock/gmock.h>

#include "tests/captured/kernel_work.h"
#include "tests/captured/step_builder.h"

namespace tbdsim {
namespace {

using namespace test;
using testing::ElementsAre;

constexpr Lowering kInductor{.compiler = Compiler::inductor};

Work pointwise(Size flops, Size read, Size written) {
  return work("fused_pointwise", KernelKind::elementwise, Phase::forward, flops, read, written);
}
Work reduction(Size flops, Size read, Size written) {
  return work("fused_reduction", KernelKind::reduction, Phase::forward, flops, read, written);
}

// 8 numbers a sample, 32 bytes.
class CapturedCompile : public testing::Test {
 protected:
  int vector(StorageRole role = StorageRole::activation) { return b.tensor({growing(8)}, Dtype::f32, role); }
  int matrix() { return b.tensor({growing(2), fixed_size(4)}); }
  // The tensor lives from operator `born` to operator `freed`.
  void lives(int tensor, int born, int freed) {
    b.storage_of(tensor).born = born;
    b.storage_of(tensor).freed = freed;
  }

  StepBuilder b;
};

// relu, exp, + in one kernel: the input is read once, the sum is written, what lies between is neither.
TEST_F(CapturedCompile, FusesElementwiseOperators) {
  const int x = vector(StorageRole::input), r = vector(), e = vector(), y = vector();
  lives(r, 0, 2);
  lives(e, 1, 2);
  lives(y, 2, -1);
  b.add("aten.relu.default", {ref(x)}, {r})
      .add("aten.exp.default", {ref(r)}, {e})
      .add("aten.add.Tensor", {ref(r), ref(e)}, {y});
  const TrainingStep step = b.lowered(kInductor);
  EXPECT_THAT(works(step), ElementsAre(pointwise(growing(8 * (1 + 8 + 1)), growing(32), growing(32))));
  ASSERT_EQ(step.tensors.size(), 2u);  // x and y
  EXPECT_EQ(b.lowered().kernels.size(), 3u);
}

// A product reads the activation, so that the kernel ends there; the next operator starts another.
TEST_F(CapturedCompile, EndsAKernelWhereAProductReadsItsResult) {
  const int x = matrix(), a = matrix(), y = matrix(), z = matrix();
  const int w = b.tensor({fixed_size(4), fixed_size(4)}, Dtype::f32, StorageRole::parameter, "w");
  lives(a, 0, 2);
  lives(y, 1, 2);
  lives(z, 2, -1);
  b.add("aten.relu.default", {ref(x)}, {a})
      .add("aten.mm.default", {ref(a), ref(w)}, {y})
      .add("aten.add.Tensor", {ref(y), ref(a)}, {z});
  EXPECT_THAT(works(b.lowered(kInductor)), ElementsAre(pointwise(growing(8), growing(32), growing(32)),
                                                       work("matmul", KernelKind::gemm, Phase::forward,
                                                            growing(64), {64, 32}, growing(32)),
                                                       pointwise(growing(8), growing(64), growing(32))));
}

// Softmax of rows of 4 is one kernel with what is done to its input and to its result.
TEST_F(CapturedCompile, FusesReductionsOfShortRowsWithTheirNeighbors) {
  const int x = matrix(), scaled = matrix(), p = matrix(), y = matrix();
  lives(scaled, 0, 1);
  lives(p, 1, 2);
  lives(y, 2, -1);
  b.add("aten.mul.Scalar", {ref(x), {0.5}}, {scaled})
      .add("aten._softmax.default", {ref(scaled), whole(-1), flag(false)}, {p})
      .add("aten.relu.default", {ref(p)}, {y});
  EXPECT_THAT(works(b.lowered(kInductor)),
              ElementsAre(reduction(growing(8 * (1 + 3 + 2 + 1)), growing(32), growing(32))));
}

// Statistics of a batch norm are known once all images are read: a kernel for them, with the ReLU before it,
// and one for the result, with the ReLU after it, which reads the images again.
TEST_F(CapturedCompile, SplitsBatchNormsAtTheirStatistics) {
  const auto image = [&] { return b.tensor({growing(1), fixed_size(2), fixed_size(2), fixed_size(2)}); };
  const auto factors = [&](const char* name) {
    return b.tensor({fixed_size(2)}, Dtype::f32, StorageRole::parameter, name);
  };
  const int x = image(), a = image(), n = image(), y = image();
  const int weight = factors("w"), bias = factors("b");
  const int mean = b.tensor({fixed_size(2)}), deviation = b.tensor({fixed_size(2)});
  lives(a, 0, 1);
  lives(n, 1, 2);
  lives(y, 2, -1);
  lives(mean, 1, -1);
  lives(deviation, 1, -1);
  b.add("aten.relu.default", {ref(x)}, {a})
      .add("aten.native_batch_norm.default",
           {ref(a), ref(weight), ref(bias), none(), none(), flag(true), {0.1}, {1e-5}}, {n, mean, deviation})
      .add("aten.relu.default", {ref(n)}, {y});
  EXPECT_THAT(works(b.lowered(kInductor)),
              ElementsAre(reduction(growing(8 * (1 + 3)), growing(32), {16, 32}),
                          pointwise(growing(8 * (5 + 1)), {16, 32}, growing(32))));
}

// Momentum's three operators over lists become one kernel; the gradients are read once.
TEST_F(CapturedCompile, FusesAnOptimizersLists) {
  const auto of = [&](StorageRole role, const char* name) {
    return b.tensor({fixed_size(10)}, Dtype::f32, role, name);
  };
  const int w = of(StorageRole::parameter, "w"), g = of(StorageRole::gradient, "w");
  const int v = of(StorageRole::state, "w");
  b.add("aten._foreach_mul_.Scalar", {list({ref(v)}), {0.9}}, {v}, StepPhase::update)
      .add("aten._foreach_add_.List", {list({ref(v)}), list({ref(g)})}, {v}, StepPhase::update)
      .add("aten._foreach_add_.List", {list({ref(w)}), list({ref(v)}), {-0.1}}, {w}, StepPhase::update);
  EXPECT_THAT(works(b.lowered(kInductor)),
              ElementsAre(work("fused_pointwise", KernelKind::update, Phase::update, fixed_size(30),
                               fixed_size(3 * 40), fixed_size(2 * 40))));
}

// Kernels run where their last operator is: a tensor dies with the last kernel that reads it, whatever the
// recorded program held on to.
TEST_F(CapturedCompile, EndsTensorsWithTheirLastReader) {
  const int x = matrix(), a = matrix(), y = matrix(), z = matrix();
  const int w = b.tensor({fixed_size(4), fixed_size(4)}, Dtype::f32, StorageRole::parameter, "w");
  lives(a, 0, 2);
  lives(y, 1, 2);
  lives(z, 2, -1);
  b.add("aten.relu.default", {ref(x)}, {a})
      .add("aten.mm.default", {ref(a), ref(w)}, {y})
      .add("aten.mm.default", {ref(y), ref(w)}, {z});
  const TrainingStep step = b.lowered(kInductor);
  ASSERT_EQ(step.kernels.size(), 3u);
  // In the order of their storages: x, until the end as it was there before; a; y; z; w.
  ASSERT_EQ(step.tensors.size(), 5u);
  EXPECT_EQ(step.tensors[1].first_use, 0);
  EXPECT_EQ(step.tensors[1].last_use, 1);
  EXPECT_EQ(step.tensors[2].first_use, 1);
  EXPECT_EQ(step.tensors[2].last_use, 2);
}

}  // namespace
}  // namespace tbdsim
