// cuDNN descriptors from plan points.
#pragma once

#include "calibrate/measure/device/cuda_check.h"
#include "calibrate/measure/kernels/kernels.h"
#include "calibrate/measure/plan/plan.h"

namespace tbdsim::measure {

[[nodiscard]] cudnnDataType_t dnn_type(Type type);
// fp32 forbids TF32 (CUDNN_FMA_MATH), the others allow tensor cores.
[[nodiscard]] cudnnMathType_t dnn_math(const std::string& precision);
[[nodiscard]] cudnnTensorFormat_t dnn_format(const std::string& layout);

[[nodiscard]] TensorDesc tensor_desc(Type type, cudnnTensorFormat_t format, std::int64_t n, std::int64_t c,
                                     std::int64_t h, std::int64_t w);

}  // namespace tbdsim::measure
