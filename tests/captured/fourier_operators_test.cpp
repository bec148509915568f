// Fourier transforms: passes over the numbers, copies before calls, normalization; complex products.
#include <gmock/gmock.h>

#include "tests/captured/kernel_work.h"
#include "tests/captured/step_builder.h"

namespace tbdsim {
namespace {

using test::flag, test::growing, test::list, test::pair, test::ref, test::StepBuilder, test::whole,
    test::Work, test::works;
using testing::ElementsAre;

Work pass(std::string op, std::int64_t flops, std::int64_t read, std::int64_t written) {
  return test::work(std::move(op), KernelKind::elementwise, Phase::forward, growing(flops), growing(read),
                    growing(written));
}

// Images of 3 x 8 x 16 real numbers, 1,536 bytes, become 3 x 8 x 9 complex ones, 1,728 bytes. Rows of 16 take
// 5 * 4 operations a number, columns of 8 take 5 * 3; these lie between images and columns, and are copied.
TEST(CapturedTransforms, OfRealImagesTakeRowsThenColumns) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(3), fixed_size(8), fixed_size(16)});
  const int y = b.tensor({growing(1), fixed_size(3), fixed_size(8), fixed_size(9)}, Dtype::c64);
  b.add("aten._fft_r2c.default", {ref(x), pair(2, 3), whole(0), flag(true)}, {y});
  EXPECT_THAT(works(b.lowered()),
              ElementsAre(pass("_fft_r2c", 20 * 216, 1536, 1728), pass("copy", 0, 1728, 1728),
                          pass("_fft_r2c", 15 * 216, 1728, 1728)));
}

// Both directions of 3 x 8 x 16 complex numbers, 3,072 bytes, in one call; the inverse divides by their
// number.
TEST(CapturedTransforms, OfComplexImagesAreOneCall) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(3), fixed_size(8), fixed_size(16)}, Dtype::c64);
  b.add("aten._fft_c2c.default", {ref(x), pair(2, 3), whole(2), flag(false)}, {x});
  EXPECT_THAT(works(b.lowered()),
              ElementsAre(pass("_fft_c2c", 15 * 384, 3072, 3072), pass("_fft_c2c", 20 * 384, 3072, 3072),
                          pass("scale", 384, 3072, 3072)));
}

// cuFFT gets a copy of 9 complex numbers, 72 bytes, of which it makes 16 real ones.
TEST(CapturedTransforms, ToRealNumbersWriteIntoACopy) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(9)}, Dtype::c64);
  const int y = b.tensor({growing(1), fixed_size(16)});
  b.add("aten._fft_c2r.default", {ref(x), list({whole(1)}), whole(0), whole(16)}, {y});
  EXPECT_THAT(works(b.lowered()), ElementsAre(pass("copy", 0, 72, 72), pass("_fft_c2r", 20 * 9, 72, 64)));
}

// 65,536 complex numbers are 512 KiB: two passes of 256 each, 5 * 16 / 2 operations a number.
TEST(CapturedTransforms, OfLongRowsAreTwoPasses) {
  StepBuilder b;
  const int x = b.tensor({growing(1), fixed_size(65'536)}, Dtype::c64);
  b.add("aten._fft_c2c.default", {ref(x), list({whole(1)}), whole(0), flag(true)}, {x});
  const Work half = pass("_fft_c2c", 40 * 65'536, 524'288, 524'288);
  EXPECT_THAT(works(b.lowered()), ElementsAre(half, half));
}

// Complex matrices of 5 x 7 and 7 x 3 numbers: 4 * 5 * 7 * 3 multiply-adds of real ones, as of 2 * 3 (cuBLAS'
// m) x 5 x 2 * 7; 280 + 168 bytes are read.
TEST(CapturedTransforms, ComplexProductsAreFourRealOnes) {
  StepBuilder b;
  const int x = b.tensor({growing(5), fixed_size(7)}, Dtype::c64);
  const int w = b.tensor({fixed_size(7), fixed_size(3)}, Dtype::c64);
  const int y = b.tensor({growing(5), fixed_size(3)}, Dtype::c64);
  const TrainingStep step = b.add("aten.mm.default", {ref(x), ref(w)}, {y}).lowered();
  ASSERT_EQ(step.kernels.size(), 1u);
  EXPECT_EQ(step.kernels[0].macs, growing(4 * 5 * 7 * 3));
  EXPECT_EQ(step.kernels[0].flops, growing(8 * 5 * 7 * 3));
  EXPECT_EQ(step.kernels[0].element_bytes, 4);
  EXPECT_EQ(step.kernels[0].read_bytes, (Size{168, 280}));
  const auto& shape = std::get<GemmShape>(step.kernels[0].shape);
  EXPECT_EQ(shape, (GemmShape{.m = fixed_size(6), .n = growing(5), .k = fixed_size(14)}));
}

}  // namespace
}  // namespace tbdsim
