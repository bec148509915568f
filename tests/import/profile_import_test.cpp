// Kernels of a step from what profilers write.
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "simulate/import/kernel_sort.h"
#include "simulate/import/measured_run.h"
#include "simulate/import/recognise.h"
#include "tests/hwspecs/message_of.h"
#include "tests/import/files.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using test::import_file;
using testing::HasSubstr;

constexpr double kExact = 1e-12;  // s

class ChromeTrace : public testing::TestWithParam<const char*> {};

// Two steps of 1 ms; in each 300 us of convolutions, 50 of a batch norm, 80 of updates, a copy of 10.
TEST_P(ChromeTrace, TellsKernelsStepsPartsAndIdleTime) {
  const MeasuredRun run = read_measured_run(import_file(GetParam()));
  EXPECT_EQ(run.gpu, "Tesla V100-SXM2-16GB");
  EXPECT_TRUE(run.steps_known);
  EXPECT_EQ(run.steps, 2);
  EXPECT_NEAR(run.kernel_time.si(), 2 * 440e-6, kExact);
  ASSERT_TRUE(run.busy && run.span);
  EXPECT_NEAR(run.busy->si(), 2 * 440e-6, kExact);
  EXPECT_NEAR(run.span->si(), 2e-3, kExact);
  ASSERT_EQ(run.kernels.size(), 5u);
  EXPECT_EQ(run.kernels[0].part, StepPart::backward);
  EXPECT_EQ(run.kernels[0].kind, "convolution");
  EXPECT_NEAR(run.kernels[0].time.si(), 400e-6, kExact);
  EXPECT_EQ(run.kernels[2].part, StepPart::update);
  EXPECT_EQ(run.kernels[2].count, 4);
  EXPECT_EQ(run.kernels[3].part, StepPart::forward);
  EXPECT_EQ(run.kernels[3].kind, "batch_norm");
}

INSTANTIATE_TEST_SUITE_P(NewAndOld, ChromeTrace, testing::Values("trace.json", "trace_old.json.gz"));

// Today's traces say how much is allocated, older ones what each event adds.
TEST(ChromeTraces, TellTheMemoryPeak) {
  EXPECT_EQ(read_measured_run(import_file("trace.json")).memory_peak->si(), 5.0 * 1048576);
  EXPECT_EQ(read_measured_run(import_file("trace_old.json.gz")).memory_peak->si(), 1.0 * 1048576);
}

TEST(ChromeTraces, MayBeAListAndCountKernelsOfOneGpu) {
  const test::TempDir dir;
  const auto kernel = [](int device, int start) {
    return R"({"ph":"X","cat":"kernel","name":"gemm","ts":)" + std::to_string(start) +
           R"(,"dur":10,"args":{"device":)" + std::to_string(device) + "}}";
  };
  const MeasuredRun run = read_measured_run(
      dir.write("t.json", "[" + kernel(1, 0) + "," + kernel(1, 5) + "," + kernel(0, 3) + "]"));
  EXPECT_FALSE(run.steps_known);
  EXPECT_EQ(run.kernels.at(0).count, 2);
  EXPECT_NEAR(run.busy->si(), 15e-6, kExact);  // they overlap
  EXPECT_THAT(run.notes, testing::Contains(HasSubstr("2 GPUs; those of GPU 1")));
}

TEST(KernelTables, AreOfNvprofWithAndWithoutTypesInAnyUnit) {
  const MeasuredRun now = read_measured_run(import_file("nvprof_summary.csv"));
  ASSERT_EQ(now.kernels.size(), 3u);  // no API call
  EXPECT_EQ(now.kernels[0].count, 40);
  EXPECT_NEAR(now.kernels[0].time.si(), 123.4e-3, kExact);
  EXPECT_EQ(now.kernels[1].kind, "batch_norm");
  EXPECT_EQ(now.kernels[2].kind, "transfer");
  const MeasuredRun before = read_measured_run(import_file("nvprof_summary_old.csv"));
  ASSERT_EQ(before.kernels.size(), 1u);
  EXPECT_NEAR(before.kernels[0].time.si(), 123.4e-3, kExact);
}

TEST(KernelTables, OfSingleExecutionsTellBusyTime) {
  const MeasuredRun nvprof = read_measured_run(import_file("nvprof_trace.csv"));
  EXPECT_EQ(nvprof.gpu, "Tesla P100-PCIE-16GB");
  EXPECT_NEAR(nvprof.kernel_time.si(), 210e-6, kExact);
  EXPECT_NEAR(nvprof.busy->si(), 160e-6, 1e-9);  // two kernels overlap by 50 us
  const MeasuredRun nsys = read_measured_run(import_file("nsys_gpu_trace.csv"));
  EXPECT_NEAR(nsys.span->si(), 100e-6, 1e-9);
  EXPECT_NEAR(nsys.busy->si(), 90e-6, 1e-9);
}

TEST(KernelTables, AreOfNsightToo) {
  const MeasuredRun sums = read_measured_run(import_file("nsys_kern_sum.csv"));
  EXPECT_NEAR(sums.kernel_time.si(), 400e-6, kExact);
  EXPECT_EQ(sums.kernels[0].kind, "elementwise");
  const MeasuredRun compute = read_measured_run(import_file("ncu.csv"));
  EXPECT_NEAR(compute.kernel_time.si(), 56e-6, kExact);
  EXPECT_NEAR(read_measured_run(import_file("ncu_raw.csv")).kernel_time.si(), 51.2e-6, kExact);
}

// Kernels of forward and backward passes have the same launch where a graph holds the step.
TEST(ChromeTraces, TellNoPartOfAGraphsKernels) {
  const test::TempDir dir;
  const auto file = dir.write("t.json", R"({"traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 2, "ts": 0, "dur": 100},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 1, "tid": 2, "ts": 10, "dur": 5, "args": {"correlation": 7}},
    {"ph": "X", "cat": "kernel", "name": "ampere_sgemm_128x64_nn", "pid": 0, "tid": 7, "ts": 20, "dur": 8, "args": {"device": 0, "correlation": 7}}]})");
  const MeasuredRun run = read_measured_run(file);
  ASSERT_EQ(run.kernels.size(), 1U);
  EXPECT_EQ(run.kernels[0].part, StepPart::unknown);
}

// cuda_kern_exec_sum: 10 calls of 2 us and 4 of 1 us. cuda_gpu_sum with --timeunit usec: 20 us of kernels
// beside a copy.
TEST(KernelTables, AreOfOtherReportsOfNsight) {
  const MeasuredRun means = read_measured_run(import_file("nsys_kern_exec_sum.csv"));
  EXPECT_NEAR(means.kernel_time.si(), 24e-6, kExact);
  EXPECT_NEAR(read_measured_run(import_file("nsys_gpu_sum.csv")).kernel_time.si(), 20e-6, kExact);
}

TEST(KernelTables, RangesAreNoKernels) {
  EXPECT_EQ(
      recognise_text("Time (%),Total Time (ns),Instances,Avg (ns),Style,Range\n90,1,1,1,PushPop,forward\n"),
      std::nullopt);
}

TEST(KernelTables, NameThePlaceOfWhatIsWrong) {
  const test::TempDir dir;
  const std::string head =
      "==1== Profiling result:\n\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Min\",\"Max\",\"Name\"\n";
  const auto message = [&](const std::string& rows) {
    const auto file = dir.write("p.csv", head + rows);
    return test::message_of<SpecError>([&] { (void)read_measured_run(file); });
  };
  EXPECT_THAT(message("%,parsec,,us,us,us,\n"), HasSubstr("p.csv:3:1: 'parsec' is no unit of time"));
  EXPECT_THAT(message("%,us,,us,us,us,\n1,x,1,1,1,1,k\n"),
              HasSubstr("p.csv:4:1: 'x' of Time; expected a number"));
  EXPECT_THAT(message("%,us,,us,us,us,\n"), HasSubstr("names no kernel"));
}

// Names as cuDNN, cuBLAS, NCCL and the frameworks have them.
TEST(KernelSort, IsByName) {
  const std::pair<const char*, const char*> names[] = {
      {"volta_scudnn_128x64_relu_xregs_large_nn_v1", "convolution"},
      {"void cudnn::detail::dgrad_engine<float, 128, 6, 7, 3, 3, 5, true>(int)", "convolution"},
      {"sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc", "convolution"},
      {"void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float)", "batch_norm"},
      {"void at::native::batch_norm_collect_statistics_kernel<float>", "batch_norm"},
      {"ampere_sgemm_128x64_tn", "gemm"},
      {"void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128>>", "gemm"},
      {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>", "softmax"},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<...>", "update"},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>", "elementwise"},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", "reduction"},
      {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>", "layer_norm"},
      {"void nchwToNhwcKernel<__half, __half, float, true, false>", "transpose"},
      {"void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>", "pooling"},
      {"void (anonymous namespace)::indexSelectLargeIndex<float, long>", "gather"},
      {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "communication"},
      {"Memcpy HtoD (Pinned -> Device)", "transfer"},
      {"Cijk_Ailk_Bljk_SB_MT64x64x16_MI32x32x2x1_SN", "gemm"},
      {"igemm_fwd_gtcx_nhwc_fp16_bx0_ex0_bt256x256x32", "convolution"},
      {"igemm_bwd_gtcx_nhwc_fp16_bx0_ex0_bt128x128x32", "convolution"},
      {"igemm_wrw_gtcx_nhwc_fp32_bx0_ex1_bt128x128x8", "convolution"},
      {"my_kernel", "other"}};
  for (const auto& [name, kind] : names) EXPECT_EQ(kernel_kind(name), kind) << name;
}

}  // namespace
}  // namespace tbdsim
