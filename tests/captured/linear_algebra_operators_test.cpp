// Factorizations of matrices: how many kernels wait for each other, and what all of them compute.
#include <gmock/gmock.h>

#include "tests/captured/kernel_work.h"
#include "tests/captured/step_builder.h"

namespace tbdsim {
namespace {

using test::flag, test::growing, test::ref, test::StepBuilder;
using testing::ElementsAre;

// Launches of a kernel and the operations of all of them.
struct Chain {
  std::int64_t launches, flops;
  friend bool operator==(const Chain&, const Chain&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Chain& c) {
    return out << c.launches << " launches, " << c.flops << " flops";
  }
};

std::vector<Chain> chains(const TrainingStep& step) {
  std::vector<Chain> all;
  for (const Kernel& k : step.kernels) all.push_back({k.repeat, k.repeat * k.flops.fixed});
  return all;
}

std::vector<Chain> of_matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
  StepBuilder b;
  const int x = b.tensor({fixed_size(rows), fixed_size(columns)});
  b.add(name, {ref(x)}, {x});
  return chains(b.lowered());
}

// 192 x 192 numbers: behind a column lie 192^2 / 3 = 12,288 of them on average. 3 blocks of 64 columns.
TEST(CapturedFactorizations, OfCholeskyAreBlocksOfAThirdOfACube) {
  EXPECT_THAT(of_matrix("aten.linalg_cholesky_ex.default", 192, 192),
              ElementsAre(Chain{3, 192 * 192 * 192 / 3}));
}

// Columns change half of the rows of their block, 96 x 64 numbers, before the rest is changed. 192 x 64
// numbers fit into 48 KiB, a kernel for each block; 256 x 64 do not, and each column is one.
TEST(CapturedFactorizations, OfLuWaitForThePivotOfEachColumn) {
  EXPECT_THAT(of_matrix("aten.linalg_lu_factor_ex.default", 192, 192),
              ElementsAre(Chain{3, 192 * 96 * 64 * 2}, Chain{3, 2 * 192 * 192 * 192 / 3}));
  EXPECT_THAT(
      of_matrix("aten.linalg_lu_factor_ex.default", 256, 256),
      ElementsAre(Chain{256, 256 * 128 * 64 * 2}, Chain{4, 4LL * (256 * 256 / 2 - 256 * 256 / 6) * 2 * 64}));
}

// 256 x 128 numbers: m n / 2 - n^2 / 6 = 13,654 on average (rounded), 4 operations each, once more for Q.
TEST(CapturedFactorizations, OfQrMakeTheOrthogonalMatrix) {
  const Chain rest{2, 2 * 13'654 * 4 * 64};
  EXPECT_THAT(of_matrix("aten.linalg_qr.default", 256, 128),
              ElementsAre(Chain{128, 128 * 128 * 64 * 4}, rest, rest));
  EXPECT_THAT(of_matrix("aten.geqrf.default", 256, 128), ElementsAre(Chain{128, 128 * 128 * 64 * 4}, rest));
}

// Every column waits twice; eigenvectors take 4 n^3 operations.
TEST(CapturedFactorizations, OfSymmetricMatricesMultiplyTheRestByEachColumn) {
  EXPECT_THAT(of_matrix("aten._linalg_eigh.default", 192, 192),
              ElementsAre(Chain{3, 192 * 96 * 64 * 2}, Chain{192, 192 * 12'288 * 2},
                          Chain{3, 2 * 192 * 12'288}, Chain{3, 4 * 192 * 192 * 192}));
}

// Ten sweeps of 127 rounds, in which 256 x 128 numbers are multiplied and turned, and 128 x 128 turned with
// them.
TEST(CapturedFactorizations, OfSingularValuesAreSweeps) {
  EXPECT_THAT(of_matrix("aten._linalg_svd.default", 256, 128),
              ElementsAre(Chain{1270, 1270LL * 256 * 128 * 3}, Chain{1270, 1270LL * (256 + 128) * 128 * 3}));
}

// A matrix of each sample, 128 x 128, and a right side of 5 columns: 2 * 128 * 64 * 5 operations for the
// triangle, as often for its transpose. The kernels are as many at any batch.
TEST(CapturedFactorizations, SolveForEachSample) {
  StepBuilder b;
  const int triangle = b.tensor({growing(1), fixed_size(128), fixed_size(128)});
  const int right = b.tensor({growing(1), fixed_size(128), fixed_size(5)});
  b.add("aten.linalg_solve_triangular.default", {ref(triangle), ref(right), flag(true)}, {right});
  b.add("aten.cholesky_solve.default", {ref(right), ref(triangle), flag(false)}, {right});
  const TrainingStep step = b.lowered();
  ASSERT_EQ(step.kernels.size(), 2U);
  EXPECT_EQ(step.kernels[0].repeat, 2);
  EXPECT_EQ(step.kernels[0].flops, growing(128 * 5 / 2 * 2 * 64));
  EXPECT_EQ(step.kernels[1].repeat, 4);
  EXPECT_EQ(step.kernels[1].flops, step.kernels[0].flops);
}

// Matrices whose size grows with the batch are charged by their bytes.
TEST(CapturedFactorizations, OfRowsThatGrowWithTheBatchAreChargedByTheirBytes) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(8)});
  b.add("aten.linalg_qr.default", {ref(x)}, {x});
  const TrainingStep step = b.lowered();
  ASSERT_EQ(step.kernels.size(), 1U);
  EXPECT_TRUE(step.kernels[0].unknown);
}

// Questions of autograd, and stand-ins for zeros that are nowhere, run no kernel.
TEST(CapturedOperators, OfForwardGradientsThatMoveNothing) {
  StepBuilder b;
  const int x = b.tensor({growing(4)});
  b.add("aten._efficientzerotensor.default", {}, {x});
  b.add("aten._has_same_storage_numel.default", {ref(x), ref(x)}, {});
  b.add("prims.add.default", {ref(x), ref(x)}, {x});
  const TrainingStep step = b.lowered();
  ASSERT_EQ(step.kernels.size(), 1U);
  EXPECT_FALSE(step.kernels[0].unknown);
}

}  // namespace
}  // namespace tbdsim
