#include "calibrate/measure/plan/op_table.h"

namespace tbdsim::measure {
namespace {
using Names = std::vector<std::string>;

const Names kNone{""};
const Names kForwardAndBackward{"forward", "backward_data"};
const Names kAllPhases{"forward", "backward_data", "backward_weights"};
const Names kMatrixTypes{"fp32", "tf32", "fp16", "bf16"};
const Names kTypes{"fp32", "fp16", "bf16"};
const Names kFp32{"fp32"};
const Names kTransposes{"NN", "NT", "TN", "TT"};
const Names kImages{"NCHW", "NHWC"};
const Names kCold{"cold", "hot"};
const Names kHot{"hot"};
const Names kConvSizes{"batch", "channels", "height", "width", "filters", "filter_h", "filter_w"};
const Names kConvOnes{"stride_h", "stride_w", "dilation_h", "dilation_w", "groups"};
const Names kPoolSizes{"batch", "channels", "height", "width", "filter_h", "filter_w"};
const Names kImageSizes{"batch", "channels", "height", "width"};
const Names kMatrix{"rows", "cols"};
const Names kVector{"elements"};
const Names kRnnSizes{"steps", "batch", "input_size", "hidden"};
const Names kRnnOnes{"layers", "directions"};

// One row per op. name, library, phases, precisions, layouts, caches, sizes, sizes that default to 1, what
// clang-format off
const std::vector<OpSpec> kTable{
    {"gemm", "cublas", kNone, kMatrixTypes, kTransposes, kCold, {"m", "n", "k"}, {}, "cublasGemmEx, cublasLtMatmul"},
    {"batched_gemm", "cublas", kNone, kMatrixTypes, kTransposes, kCold, {"batch", "m", "n", "k"}, {},
     "cublasGemmStridedBatchedEx"},
    {"conv", "cudnn", kAllPhases, kMatrixTypes, kImages, kCold, kConvSizes, kConvOnes,
     "every cuDNN algorithm found within workspaces of 64 MB, 512 MB, 1 GB, 4 GB"},
    {"batch_norm", "cudnn", kForwardAndBackward, kTypes, kImages, kCold, kImageSizes, {},
     "cuDNN training batch norm; backward_data holds all three gradients"},
    {"max_pool", "cudnn", kForwardAndBackward, kTypes, kImages, kCold, kPoolSizes, {"stride_h", "stride_w"},
     "cuDNN max pooling"},
    {"avg_pool", "cudnn", kForwardAndBackward, kTypes, kImages, kCold, kPoolSizes, {"stride_h", "stride_w"},
     "cuDNN average pooling, padding not counted"},
    {"softmax", "cudnn", kForwardAndBackward, kTypes, kNone, kCold, kMatrix, {}, "cuDNN softmax over cols"},
    {"lstm", "cudnn", kAllPhases, kMatrixTypes, kNone, kCold, kRnnSizes, kRnnOnes, "cuDNN fused LSTM, training"},
    {"gru", "cudnn", kAllPhases, kMatrixTypes, kNone, kCold, kRnnSizes, kRnnOnes, "cuDNN fused GRU, training"},
    {"add", "own", {"forward"}, kTypes, kNone, kCold, kVector, {}, "c = a + b"},
    {"relu", "own", kForwardAndBackward, kTypes, kNone, kCold, kVector, {}, "y = max(x, 0), out of place"},
    {"bias", "own", {"forward", "backward_weights"}, kTypes, kNone, kCold, kMatrix, {},
     "y = x + b per column; gradient: sum over rows"},
    {"dropout", "own", kForwardAndBackward, kTypes, kNone, kCold, kVector, {}, "one-byte mask"},
    {"layer_norm", "own", kAllPhases, kTypes, kNone, kCold, kMatrix, {},
     "over cols; backward_weights: gradients of scale and shift"},
    {"sgd_momentum", "own", {"update"}, kFp32, kNone, kCold, kVector, {}, "one fused kernel over a flat tensor"},
    {"adam", "own", {"update"}, kFp32, kNone, kCold, kVector, {}, "one fused kernel over a flat tensor"},
    {"launch", "cuda", kNone, kFp32, kNone, kHot, {}, {},
     "empty kernel: CPU time of a launch, rate back to back, launch and wait, duration"},
    {"l2_flush", "own", kNone, kFp32, kNone, kHot, {}, {}, "write four times the L2 cache"},
    {"copy_h2d", "cuda", kNone, kFp32, kNone, kHot, {"bytes"}, {}, "pinned and pageable host memory to the device"},
    {"copy_d2h", "cuda", kNone, kFp32, kNone, kHot, {"bytes"}, {}, "device to pinned and pageable host memory"},
    {"copy_d2d", "cuda", kNone, kFp32, kNone, kCold, {"bytes"}, {}, "within the device; bytes are counted once"},
    {"all_reduce", "nccl", kNone, kTypes, kNone, kHot, {"bytes", "ranks"}, {}, "NCCL, one process, first ranks GPUs"},
};
// clang-format on
}  // namespace

const std::vector<OpSpec>& op_table() { return kTable; }

const OpSpec* find_op(std::string_view name) {
  for (const OpSpec& op : kTable) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

}  // namespace tbdsim::measure
