// The choice of a profile's block for a kernel, and the resulting cost.
#include <cmath>

#include <gmock/gmock.h>

#include "costmodel/hardware.h"
#include "hwspecs/base/catalog.h"
#include "tests/costmodel/recurrent_block.h"

namespace tbdsim {
namespace {

using test::recurrent_block;
using test::recurrent_kernel;
using test::two_seconds;
using test::with_blocks;
using test::with_residual;

KernelCost cost(const Profile& profile, MathType math = MathType::fp32) {
  const GpuSpec gpu = test::small_gpu();
  return estimate(recurrent_kernel(math), 1, calibration_of(profile, gpu));
}

// The generation of the block taken; "" for none.
template <class Family = RecurrentFamily>
std::string taken(const std::vector<ProfileBlock>& blocks, const LibraryVersions& libraries,
                  MathType math = MathType::fp32, double capability = 7.0) {
  GpuSpec gpu = test::small_gpu();
  gpu.compute_capability = capability;
  Profile profile;
  profile.families[index_of_family<Family>()] = blocks;
  const Calibration calibration = calibration_of(profile, gpu, libraries);
  const ProfileBlock* block = calibration.models[index_of_family<Family>()][index_of(math)].block;
  return block == nullptr ? "" : block->generation + (block->own ? "" : ", others");
}

constexpr MathType kHalf = MathType::fp16;
constexpr MathType kSingle = MathType::fp32;

TEST(CalibrationOf, PrecisionBeforeVersionAndGpu) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn6", kHalf),
                                            recurrent_block("cudnn4", kSingle, false)};
  EXPECT_EQ(taken(blocks, {{"cudnn", 6}}, kSingle), "cudnn4, others");
  EXPECT_EQ(taken(blocks, {{"cudnn", 4}}, kHalf), "cudnn6");
}

// A measured clock of 0.8 at 700 W: by the power that follows the clock at others, at most the boost clock,
// which is 1.1 of the clock that the peak is quoted at.
TEST(CalibrationOf, MeasuredClockUnderAnotherLimitOfPower) {
  GpuSpec gpu = test::small_gpu();
  gpu.compute_capability = 9.0;
  gpu.boost_clock = Hertz(1.1e9);
  gpu.math[index_of(kHalf)]->clock = Hertz(1e9);
  Profile profile = with_blocks({recurrent_block("cudnn9", kHalf)});
  ProfileBlock& block = profile.families[index_of_family<RecurrentFamily>()][0];
  block.own = true;
  block.clock = 0.8;
  const auto clock = [&](double watts) {
    gpu.tdp = Watts(watts);
    return calibration_of(profile, gpu)
        .models[index_of_family<RecurrentFamily>()][index_of(kHalf)]
        .sustained.clock;
  };
  EXPECT_EQ(clock(500), 0.8) << "measured with a power that nobody knows";
  profile.board_power = 700;
  EXPECT_EQ(clock(700), 0.8);
  EXPECT_NEAR(clock(500), 0.8 * std::cbrt((5.0 / 7 - 0.15) / 0.85), 1e-12);
  EXPECT_NEAR(clock(1'000), 0.8 * std::cbrt((10.0 / 7 - 0.15) / 0.85), 1e-12);
  EXPECT_EQ(clock(5'000), 1.1);
}

// 0.8 of the clock where 0.92 are expected, as of a GPU that is no GeForce: a GeForce board of the chip, of
// which 1 is expected, has 0.8 / 0.92 of it.
TEST(CalibrationOf, AnotherBoardOfTheChipHasTheMeasuredShareOfItsClock) {
  GpuSpec measured = test::small_gpu();
  measured.tdp = Watts(250);
  GpuSpec board = measured;
  board.name = "board";
  board.product_line = ProductLine::geforce;
  Profile profile = with_blocks({recurrent_block("cudnn9", kSingle)});
  profile.gpu = measured.name;
  ProfileBlock& block = profile.families[index_of_family<RecurrentFamily>()][0];
  block.own = true;
  block.clock = 0.8;
  const auto model = [&](const GpuSpec* of) {
    return calibration_of(profile, board, {}, {}, of)
        .models[index_of_family<RecurrentFamily>()][index_of(kSingle)];
  };
  EXPECT_NEAR(model(&measured).sustained.clock, 0.8 / 0.92, 1e-12);
  EXPECT_EQ(model(&measured).clock_sd, kClockBetweenBoards);
  EXPECT_EQ(model(nullptr).sustained.clock, 1) << "of a board that is not known";
}

// Tensor cores that take both formats of two bytes multiply them alike.
TEST(CalibrationOf, EitherFormatOfTwoBytes) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn5", kHalf),
                                            recurrent_block("cudnn8", MathType::bf16)};
  EXPECT_EQ(taken(blocks, {{"cudnn", 8}}, kHalf), "cudnn8");
  EXPECT_EQ(taken(blocks, {{"cudnn", 5}}, kHalf), "cudnn5");
  const Profile profile =
      with_blocks({with_residual(recurrent_block("cudnn8", MathType::bf16), two_seconds(), 0)});
  EXPECT_EQ(cost(profile, kHalf).provenance, Provenance::measured);
}

// A GPU without tensor cores computes fp16 by the lanes of fp32: by the kernels of fp32, whatever the
// version.
TEST(CalibrationOf, HalfPrecisionWithoutTensorCores) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn5", kSingle, false),
                                            recurrent_block("cudnn7", kHalf, false)};
  EXPECT_EQ(taken(blocks, {{"cudnn", 7}}, kHalf, 6.0), "cudnn5, others");
  EXPECT_EQ(taken(blocks, {{"cudnn", 7}}, kHalf, 7.0), "cudnn7, others");
}

// Products of recurrent layers that were timed on Hopper with cuBLAS 13 are of no earlier cuBLAS, not even
// where the other kernels are of another GPU and precision; those in fp32 have no other instructions.
TEST(CalibrationOf, RecurrentProductsOfNewerInstructions) {
  ProfileBlock newer = recurrent_block("cudnn9", kHalf);
  newer.capability = 9.0;
  ProfileBlock older = recurrent_block("cudnn7", MathType::bf16, false);
  older.capability = 7.0;
  const auto with_cublas = [&](int version) {
    return taken({newer, older}, {{"cublas", version}, {"cudnn", 9}}, kHalf, 9.0);
  };
  EXPECT_EQ(with_cublas(13), "cudnn9");
  EXPECT_EQ(with_cublas(12), "cudnn7, others");
  EXPECT_EQ(taken({newer, older}, {}, kHalf, 9.0), "cudnn9") << "the newest libraries";
  newer.math = older.math = kSingle;
  EXPECT_EQ(taken({newer, older}, {{"cublas", 12}, {"cudnn", 9}}, kSingle, 9.0), "cudnn9");
}

// Kernels for a V100 reach 0.62 of Hopper's 4,096 operations a clock, recurrent layers as many of the 8,192
// of 10.x.
TEST(CalibrationOf, RecurrentProductsWarpByWarp) {
  ProfileBlock older = recurrent_block("cudnn7", kHalf, false);
  older.capability = 7.0;
  const auto clock = [&](double capability) {
    GpuSpec gpu = test::small_gpu();
    gpu.compute_capability = capability;
    const Calibration calibration = calibration_of(with_blocks({older}), gpu);
    return calibration.models[index_of_family<RecurrentFamily>()][index_of(kHalf)].sustained.clock;
  };
  EXPECT_NEAR(clock(9.0) / clock(8.0), 0.62, 1e-12);
  EXPECT_NEAR(clock(10.0) / clock(8.0), 0.31, 1e-12);
  EXPECT_NEAR(clock(12.0) / clock(8.0), 1, 1e-12);
}

TEST(CalibrationOf, TheNearestVersion) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn5"), recurrent_block("cudnn7"),
                                            recurrent_block("cudnn12")};
  EXPECT_EQ(taken(blocks, {{"cudnn", 5}}), "cudnn5");
  EXPECT_EQ(taken(blocks, {{"cudnn", 8}}), "cudnn7");
  EXPECT_EQ(taken(blocks, {{"cudnn", 11}}), "cudnn12");
  EXPECT_EQ(taken(blocks, {{"cudnn", 6}}), "cudnn7") << "of two as near the newer";
}

// Another GPU counts as one and a half versions.
TEST(CalibrationOf, TheOwnGpu) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn5"),
                                            recurrent_block("cudnn7", kSingle, false)};
  EXPECT_EQ(taken(blocks, {{"cudnn", 6}}), "cudnn5");
  EXPECT_EQ(taken(blocks, {{"cudnn", 7}}), "cudnn7, others") << "two versions are more";
  EXPECT_EQ(taken({recurrent_block("cudnn6"), recurrent_block("cudnn6", kSingle, false)}, {}), "cudnn6");
}

// cuDNN 7 on a Pascal card runs the kernels of cuDNN 6; calls of cuDNN 7 on other GPUs ran other kernels.
TEST(CalibrationOf, KernelsOfCardsBeforeVolta) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn5"),
                                            recurrent_block("cudnn7", kSingle, false)};
  EXPECT_EQ(taken(blocks, {{"cudnn", 7}}, kSingle, 6.1), "cudnn5");
  EXPECT_EQ(taken({recurrent_block("cudnn6", kSingle, false), recurrent_block("cudnn7", kSingle, false)},
                  {{"cudnn", 8}}, kSingle, 6.1),
            "cudnn6, others");
}

// The own cuBLAS 8 runs what cuBLAS 11 does on a Pascal card; a Maxwell's cuBLAS 7 is a version and another
// GPU away. A framework that says nothing means the newest kernels of such cards, which another Pascal's
// cuDNN 8 ran, too.
TEST(CalibrationOf, OwnKernelsOfCardsBeforeVoltaDoNotAge) {
  ProfileBlock maxwell = recurrent_block("cublas7", kSingle, false);
  maxwell.capability = 5.2;
  EXPECT_EQ(taken({maxwell, recurrent_block("cublas8")}, {{"cublas", 11}}, kSingle, 6.1), "cublas8");
  ProfileBlock volta = recurrent_block("cudnn7", kSingle, false);
  volta.capability = 7;
  EXPECT_EQ(taken({recurrent_block("cudnn6", kSingle, false), volta}, {}, kSingle, 6.1), "cudnn6, others");
  ProfileBlock pascal = recurrent_block("cudnn8", kSingle, false);
  pascal.capability = 6.1;
  EXPECT_EQ(taken({pascal, volta}, {}, kSingle, 6.1), "cudnn8, others");
}

ProfileBlock block_of_pass(const std::string& generation, Phase phase, const ConvCall& call) {
  ProfileBlock block = recurrent_block(generation, kSingle, false);
  block.parameters.clear();
  for (const Parameter& parameter : ConvFamily::parameters) block.parameters.push_back(parameter.start);
  ConvCall timed = call;
  timed.phase = phase;
  block.residuals = ResidualTable({{ConvFamily::features(timed), 0.1, 0}});
  return block;
}

// cuDNN 8 timed forward passes alone: gradients are predicted by the next block, groups, which neither
// timed, by the nearest.
TEST(CalibrationOf, PassesThatTheNearestBlockNeverTimed) {
  ConvCall call;
  call.images = 8;
  call.channels = call.filters = 64;
  call.kernel_height = call.kernel_width = 3;
  call.out_height = call.out_width = 14;
  GpuSpec gpu = test::small_gpu();
  gpu.compute_capability = 7.0;
  Profile profile;
  auto& blocks = profile.families[index_of_family<ConvFamily>()];
  blocks = {block_of_pass("cudnn7", Phase::backward_data, call),
            block_of_pass("cudnn8", Phase::forward, call)};
  const Calibration calibration = calibration_of(profile, gpu, {{"cudnn", 8}});
  const FamilyModel& nearest = calibration.models[index_of_family<ConvFamily>()][index_of(kSingle)];
  const auto taken_by = [&](Phase phase, double groups, double size) {
    ConvCall other = call;
    other.phase = phase;
    other.groups = groups;
    other.kernel_height = other.kernel_width = size;
    return model_that_timed(other, nearest).block->generation;
  };
  EXPECT_EQ(taken_by(Phase::forward, 1, 3), "cudnn8");
  EXPECT_EQ(taken_by(Phase::forward, 1, 5), "cudnn8") << "another filter of the same pass";
  EXPECT_EQ(taken_by(Phase::backward_data, 1, 3), "cudnn7");
  EXPECT_EQ(taken_by(Phase::backward_data, 4, 3), "cudnn8");
}

// Times of cuDNN 6 on another GPU predict its convolutions better than its own cuDNN 5 without the non-fused
// Winograd; of recurrent layers the own block does.
TEST(CalibrationOf, ConvolutionsBeforeTheNonfusedWinograd) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn5"),
                                            recurrent_block("cudnn6", kSingle, false)};
  EXPECT_EQ(taken<ConvFamily>(blocks, {{"cudnn", 6}}, kSingle, 5.2), "cudnn6, others");
  EXPECT_EQ(taken<ConvFamily>(blocks, {{"cudnn", 5}}, kSingle, 5.2), "cudnn5");
  EXPECT_EQ(taken(blocks, {{"cudnn", 6}}, kSingle, 5.2), "cudnn5");
}

// A block of a library that the framework does not call is not near for having no version to compare.
TEST(CalibrationOf, ALibraryThatIsCalled) {
  const std::vector<ProfileBlock> blocks = {recurrent_block("cudnn9"), recurrent_block("trtllm1")};
  EXPECT_EQ(taken(blocks, {{"cudnn", 6}}), "cudnn9");
  EXPECT_EQ(taken(blocks, {}), "cudnn9") << "of a framework that says nothing the newest";
}

// Attention is by the library that is named where anyone timed it; before Hopper not by kernels that only
// Hopper and later GPUs have, unless no others were timed.
TEST(CalibrationOf, AttentionOfTheLibraryThatIsNamed) {
  const std::vector<ProfileBlock> flash = {recurrent_block("flash2", kHalf, false),
                                           recurrent_block("triton3", kHalf)};
  EXPECT_EQ(taken<FlashAttention2Family>(flash, {}, kHalf, 9.0), "flash2, others");
  std::vector<ProfileBlock> cudnn = {recurrent_block("trtllm1", kHalf),
                                     recurrent_block("cudnn9", kHalf, false)};
  cudnn[1].capability = 10;
  EXPECT_EQ(taken<CudnnAttentionFamily>(cudnn, {}, kHalf, 9.0), "cudnn9, others");
  EXPECT_EQ(taken<CudnnAttentionFamily>(cudnn, {}, kHalf, 8.0), "trtllm1");
  EXPECT_EQ(taken<CudnnAttentionFamily>({cudnn[1]}, {}, kHalf, 8.0), "cudnn9, others");
}

TEST(CalibrationOf, NoBlockForArithmeticThatTheCardLacks) {
  EXPECT_EQ(taken({recurrent_block()}, {}, MathType::bf16), "");
  EXPECT_EQ(taken({}, {}), "");
}

// Channels are padded for tensor cores, which multiply half precision from 7.0 on and TF32 from 8.0 on.
TEST(CalibrationOf, PadsChannelsForTensorCoresAlone) {
  const Profile profile;
  GpuSpec gpu = test::small_gpu();
  const auto pads = [&](MathType math) {
    const Calibration calibration = calibration_of(profile, gpu, {}, {.pads_channels = PadsChannels::always});
    return calibration.conv_limits[index_of(math)].pads_channels;
  };
  gpu.compute_capability = 7.0;
  EXPECT_EQ(pads(kHalf), PadsChannels::always);
  EXPECT_EQ(pads(kSingle), PadsChannels::never);
  gpu.compute_capability = 6.0;
  EXPECT_EQ(pads(kHalf), PadsChannels::never);
}

// A card without lanes for half precision computes it in fp32, and transforms it in fp32.
TEST(CalibrationOf, WideTransformsWhereHalfIsComputedInFp32) {
  const Profile profile;
  GpuSpec gpu = test::small_gpu();
  const auto wide = [&](MathType math) {
    return calibration_of(profile, gpu).conv_limits[index_of(math)].wide_transforms;
  };
  gpu.computes_in[index_of(kHalf)] = std::nullopt;
  EXPECT_FALSE(wide(kHalf));
  gpu.computes_in[index_of(kHalf)] = kSingle;
  EXPECT_TRUE(wide(kHalf));
  EXPECT_FALSE(wide(kSingle));
}

// 2000 flop at 1000 flop/s.
TEST(Estimate, ByAFamilysFormula) {
  const KernelCost c = cost(with_blocks({recurrent_block()}));
  EXPECT_DOUBLE_EQ(c.total.si(), 2);
  EXPECT_EQ(c.algorithm, Algorithm::recurrent);
  EXPECT_EQ(c.bound, Bound::compute);
}

// A clock of 0.9 times what 250 W let expect, 0.92.
TEST(Estimate, AClockBesideTheExpectedOne) {
  ProfileBlock block = recurrent_block("cudnn6", kSingle, false);
  block.clock = 0.9;
  block.clock_of_expected = true;
  const Profile profile = with_blocks({block});
  GpuSpec gpu = test::small_gpu();
  gpu.tdp = Watts(250);
  EXPECT_NEAR(estimate(recurrent_kernel(), 1, calibration_of(profile, gpu)).total.si(), 2 / (0.9 * 0.92),
              1e-12);
}

// The formula, times exp of the residual's share 0.09 / 0.0916 (residual_table_test).
TEST(Estimate, MeasuredCallsCorrectTheFormula) {
  const KernelCost c = cost(with_blocks({with_residual(recurrent_block(), two_seconds(), 0.1)}));
  constexpr double kSixDigits = 1e-6;  // residuals are looked up in single precision
  EXPECT_NEAR(c.total.si() / (2 * std::exp(0.1 * 0.09 / 0.0916)), 1, kSixDigits);
  EXPECT_DOUBLE_EQ(c.compute.si(), c.total.si());
  EXPECT_NEAR(c.sd / std::sqrt(0.0916 - 0.09 * 0.09 / 0.0916), 1, kSixDigits);
  EXPECT_DOUBLE_EQ(c.factor(), std::exp(1.2816 * c.sd));
}

// Intervals twice as wide as a normal distribution has them.
TEST(Estimate, IntervalsAreAsWideAsThoseOfCallsLeftOut) {
  ProfileBlock block = recurrent_block();
  block.interval = 2 * kEightyPercent;
  EXPECT_DOUBLE_EQ(cost(with_blocks({block})).sd, 2 * std::hypot(0.3, 0.04));
}

// A clock that is not the card's own is not known: 3-4-5.
TEST(Estimate, AnUnknownClockWidensTheInterval) {
  ProfileBlock block = recurrent_block("cudnn6", kSingle, false);
  block.kriging = {.amplitude = 0.3, .length = 1, .nugget = 0};
  block.clock_sd = 0.4;
  EXPECT_NEAR(cost(with_blocks({block})).sd, 0.5, 1e-12);
  block.own = true;
  EXPECT_NEAR(cost(with_blocks({block})).sd, 0.3, 1e-12);
}

TEST(Provenance, FromSurestToLeastSure) {
  RecurrentCall near = two_seconds();
  near.steps = 3;  // 0.15 log2(3 / 2) = 0.09 away
  RecurrentCall far = two_seconds();
  far.hidden = 8000;
  const auto of = [](const RecurrentCall& measured, bool own) {
    return cost(with_blocks({with_residual(recurrent_block("cudnn6", kSingle, own), measured, 0.1)}))
        .provenance;
  };
  EXPECT_EQ(of(two_seconds(), true), Provenance::measured);
  EXPECT_EQ(of(near, true), Provenance::interpolated);
  EXPECT_EQ(of(two_seconds(), false), Provenance::transferred);
  EXPECT_EQ(of(near, false), Provenance::transferred);
  EXPECT_EQ(of(far, true), Provenance::modelled);
  EXPECT_EQ(of(far, false), Provenance::modelled);
  EXPECT_EQ(cost(with_blocks({})).provenance, Provenance::roofline);
}

// fp16 by a block of fp32: the same shape was measured, but not this arithmetic. 2000 flop at 4000 flop/s.
TEST(Provenance, AnotherPrecisionIsAModel) {
  const Profile profile = with_blocks({with_residual(recurrent_block(), two_seconds(), 0)});
  const KernelCost exact = cost(profile), other = cost(profile, kHalf);
  EXPECT_DOUBLE_EQ(other.total.si(), 0.5);
  EXPECT_EQ(other.provenance, Provenance::modelled);
  EXPECT_NEAR(other.sd, std::hypot(exact.sd, 0.2), 1e-12);
}

// 0.18 of the variance are common to a kind. gemm: 2 x 3 s x 0.2 = 1.2 s and 3 s x 0.6 = 1.8 s, together
// 3 s; element-wise: 8 s x 0.5 = 4 s. 0.18 (9 + 16) + 0.82 (1.44 + 3.24 + 16), of 17 s.
TEST(CombinedSd, PartlyAddsWithinAKindAndInSquaresBetweenKinds) {
  const auto kernel = [](KernelKind kind, std::int64_t repeat) {
    Kernel made;
    made.kind = kind;
    made.repeat = repeat;
    return made;
  };
  const auto costing = [](double seconds, double sd) {
    KernelCost made{.compute = {}, .memory = {}, .overhead = {}, .total = Seconds(seconds), .workspace = {}};
    made.sd = sd;
    return made;
  };
  TrainingStep step;
  step.kernels = {kernel(KernelKind::gemm, 2), kernel(KernelKind::gemm, 1),
                  kernel(KernelKind::elementwise, 1)};
  EXPECT_NEAR(
      combined_sd(step, kernel_runs(step.kernels), {costing(3, 0.2), costing(3, 0.6), costing(8, 0.5)}),
      std::sqrt(0.18 * 25 + 0.82 * (1.44 + 3.24 + 16)) / 17, 1e-12);
  EXPECT_EQ(combined_sd({}, {}, {}), 0);
}

// Layers repeat, so a step costs each call once; what it says is what each kernel alone costs.
TEST(Estimate, OfAStepAsOfItsKernels) {
  const Profile profile = with_blocks({with_residual(recurrent_block(), two_seconds(), 0.1)});
  const GpuSpec gpu = test::small_gpu();
  const Calibration calibration = calibration_of(profile, gpu);
  Kernel gather, update;  // neither has a block; both are the same call
  gather.kind = KernelKind::gather;
  update.kind = KernelKind::update;
  TrainingStep step;
  step.kernels = {recurrent_kernel(), gather, recurrent_kernel(kHalf), recurrent_kernel(), update};
  const auto costs = estimate(step, 1, calibration);
  ASSERT_EQ(costs.size(), step.kernels.size());
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const KernelCost alone = estimate(step.kernels[k], 1, calibration);
    EXPECT_EQ(costs[k].total, alone.total) << k;
    EXPECT_EQ(costs[k].provenance, alone.provenance) << k;
  }
}

// An algorithm that needs more scratch memory than a framework allows is not taken.
TEST(Estimate, WorkspaceWithinTheFrameworksLimit) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  const GpuSpec gpu = read_gpu(catalog.find(Kind::gpu, "titanxp"), catalog);
  ProfileBlock block;
  block.generation = "cudnn6";
  block.own = true;
  for (const Parameter& parameter : ConvFamily::parameters) block.parameters.push_back(parameter.start);
  Profile profile = test::small_profile();
  profile.families[index_of_family<ConvFamily>()] = {block};
  Kernel conv;
  conv.kind = KernelKind::convolution;
  conv.shape = ConvShape{.images = {0, 1},
                         .channels = 256,
                         .height = 28,
                         .width = 28,
                         .filters = 256,
                         .out_height = 28,
                         .out_width = 28,
                         .kernel_height = 3,
                         .kernel_width = 3,
                         .pad_height = 1,
                         .pad_width = 1};
  const KernelCost free = estimate(conv, 64, calibration_of(profile, gpu));
  ASSERT_GT(free.workspace.si(), 0) << name_of(free.algorithm);
  const Bytes limit = free.workspace * 0.5;
  const KernelCost limited = estimate(conv, 64, calibration_of(profile, gpu, {}, {limit.si()}));
  EXPECT_LE(limited.workspace.si(), limit.si());
  EXPECT_GT(limited.total, free.total);
  EXPECT_NE(limited.algorithm, free.algorithm);
}

}  // namespace
}  // namespace tbdsim
