#include "calibrate/measure/ops/conv_algorithms.h"

#include <algorithm>
#include <array>

namespace tbdsim::measure {
namespace {
constexpr float kOne = 1;
constexpr float kZero = 0;
constexpr int kMostAlgorithms = 16;  // cuDNN 9 returns up to 8 of each, with and without tensor cores
constexpr double kMillisecond = 1e-3;

// Names from cudnn.h, without their prefix.
constexpr std::array kForward{"IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING",
                              "WINOGRAD",      "WINOGRAD_NONFUSED"};
constexpr std::array kBackwardData{"ALGO_0", "ALGO_1", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"};
constexpr std::array kBackwardFilter{"ALGO_0",    "ALGO_1", "FFT", "ALGO_3", "WINOGRAD", "WINOGRAD_NONFUSED",
                                     "FFT_TILING"};
static_assert(CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED == 7 &&
              CUDNN_CONVOLUTION_FWD_ALGO_COUNT == kForward.size());
static_assert(CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED == 5 &&
              CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT == kBackwardData.size());
static_assert(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING == 6 &&
              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT == kBackwardFilter.size());

template <class Perf, std::size_t kCount>
std::vector<ConvAlgorithm> usable(const std::array<Perf, kMostAlgorithms>& found, int count,
                                  const std::array<const char*, kCount>& names, bool fp32_only) {
  std::vector<ConvAlgorithm> algorithms;
  for (int i = 0; i < count; ++i) {
    const Perf& perf = found[static_cast<std::size_t>(i)];
    const bool tensor =
        perf.mathType == CUDNN_TENSOR_OP_MATH || perf.mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
    if (perf.status != CUDNN_STATUS_SUCCESS || (fp32_only && tensor)) continue;
    const auto number = static_cast<std::size_t>(perf.algo);
    const std::string name = number < kCount ? names[number] : "ALGO_" + std::to_string(number);
    algorithms.push_back({.name = name + (tensor ? "+tensor" : ""),
                          .algorithm = static_cast<int>(perf.algo),
                          .math = fp32_only ? CUDNN_FMA_MATH : perf.mathType,
                          .workspace = perf.memory,
                          .found_s = perf.time * kMillisecond});
  }
  return algorithms;
}
}  // namespace

Convolution::Convolution(Session& session, const PlanPoint& point)
    : session_(session), phase_(point.phase), fp32_only_(point.precision == "fp32") {
  const RecordShape& s = point.shape;
  const Type type = type_of(point.precision);
  constexpr float kWeightDeviation = 0.05F;  // keeps half-precision sums far from overflow
  describe(point);
  x_ = session.random(type, s.batch * s.channels * s.height * s.width);
  w_ = session.random(type, s.filters * (s.channels / s.groups) * s.filter_h * s.filter_w, kWeightDeviation);
  y_ = session.random(type, s.batch * s.filters * output_height(s) * output_width(s));
}

void Convolution::describe(const PlanPoint& point) {
  const RecordShape& s = point.shape;
  const Type type = type_of(point.precision);
  const cudnnTensorFormat_t format = dnn_format(point.layout);
  const auto narrow = [](std::int64_t size) { return static_cast<int>(size); };
  x_desc_ = tensor_desc(type, format, s.batch, s.channels, s.height, s.width);
  y_desc_ = tensor_desc(type, format, s.batch, s.filters, output_height(s), output_width(s));
  check(cudnnSetFilter4dDescriptor(w_desc_.get(), dnn_type(type), format, narrow(s.filters),
                                   narrow(s.channels / s.groups), narrow(s.filter_h), narrow(s.filter_w)),
        "cudnnSetFilter4dDescriptor");
  check(cudnnSetConvolution2dDescriptor(conv_.get(), narrow(s.pad_h), narrow(s.pad_w), narrow(s.stride_h),
                                        narrow(s.stride_w), narrow(s.dilation_h), narrow(s.dilation_w),
                                        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "cudnnSetConvolution2dDescriptor");
  check(cudnnSetConvolutionGroupCount(conv_.get(), narrow(s.groups)), "cudnnSetConvolutionGroupCount");
  set_math(dnn_math(point.precision));
}

void Convolution::set_math(cudnnMathType_t math) {
  check(cudnnSetConvolutionMathType(conv_.get(), math), "cudnnSetConvolutionMathType");
}

std::vector<ConvAlgorithm> Convolution::find(const DeviceBuffer& workspace, std::size_t bytes) {
  cudnnHandle_t dnn = session_.dnn();
  int count = 0;
  if (phase_ == "forward") {
    std::array<cudnnConvolutionFwdAlgoPerf_t, kMostAlgorithms> found{};
    check(cudnnFindConvolutionForwardAlgorithmEx(dnn, x_desc_.get(), x_.get(), w_desc_.get(), w_.get(),
                                                 conv_.get(), y_desc_.get(), y_.get(), kMostAlgorithms,
                                                 &count, found.data(), workspace.get(), bytes),
          "cudnnFindConvolutionForwardAlgorithmEx");
    return usable(found, count, kForward, fp32_only_);
  }
  if (phase_ == "backward_data") {
    std::array<cudnnConvolutionBwdDataAlgoPerf_t, kMostAlgorithms> found{};
    check(cudnnFindConvolutionBackwardDataAlgorithmEx(dnn, w_desc_.get(), w_.get(), y_desc_.get(), y_.get(),
                                                      conv_.get(), x_desc_.get(), x_.get(), kMostAlgorithms,
                                                      &count, found.data(), workspace.get(), bytes),
          "cudnnFindConvolutionBackwardDataAlgorithmEx");
    return usable(found, count, kBackwardData, fp32_only_);
  }
  std::array<cudnnConvolutionBwdFilterAlgoPerf_t, kMostAlgorithms> found{};
  check(cudnnFindConvolutionBackwardFilterAlgorithmEx(dnn, x_desc_.get(), x_.get(), y_desc_.get(), y_.get(),
                                                      conv_.get(), w_desc_.get(), w_.get(), kMostAlgorithms,
                                                      &count, found.data(), workspace.get(), bytes),
        "cudnnFindConvolutionBackwardFilterAlgorithmEx");
  return usable(found, count, kBackwardFilter, fp32_only_);
}

void Convolution::run(const ConvAlgorithm& a, const DeviceBuffer& workspace) {
  cudnnHandle_t dnn = session_.dnn();
  if (phase_ == "forward") {
    check(cudnnConvolutionForward(dnn, &kOne, x_desc_.get(), x_.get(), w_desc_.get(), w_.get(), conv_.get(),
                                  static_cast<cudnnConvolutionFwdAlgo_t>(a.algorithm), workspace.get(),
                                  a.workspace, &kZero, y_desc_.get(), y_.get()),
          "cudnnConvolutionForward");
  } else if (phase_ == "backward_data") {
    check(cudnnConvolutionBackwardData(dnn, &kOne, w_desc_.get(), w_.get(), y_desc_.get(), y_.get(),
                                       conv_.get(), static_cast<cudnnConvolutionBwdDataAlgo_t>(a.algorithm),
                                       workspace.get(), a.workspace, &kZero, x_desc_.get(), x_.get()),
          "cudnnConvolutionBackwardData");
  } else {
    check(
        cudnnConvolutionBackwardFilter(dnn, &kOne, x_desc_.get(), x_.get(), y_desc_.get(), y_.get(),
                                       conv_.get(), static_cast<cudnnConvolutionBwdFilterAlgo_t>(a.algorithm),
                                       workspace.get(), a.workspace, &kZero, w_desc_.get(), w_.get()),
        "cudnnConvolutionBackwardFilter");
  }
}

}  // namespace tbdsim::measure
