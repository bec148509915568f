#include "calibrate/measure/device/dnn.h"

namespace tbdsim::measure {

cudnnDataType_t dnn_type(Type type) {
  return type == Type::f16 ? CUDNN_DATA_HALF : type == Type::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

cudnnMathType_t dnn_math(const std::string& precision) {
  if (precision == "fp32") return CUDNN_FMA_MATH;
  return precision == "tf32" ? CUDNN_DEFAULT_MATH : CUDNN_TENSOR_OP_MATH;
}

cudnnTensorFormat_t dnn_format(const std::string& layout) {
  return layout == "NHWC" ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

TensorDesc tensor_desc(Type type, cudnnTensorFormat_t format, std::int64_t n, std::int64_t c, std::int64_t h,
                       std::int64_t w) {
  TensorDesc desc;
  check(cudnnSetTensor4dDescriptor(desc.get(), format, dnn_type(type), static_cast<int>(n),
                                   static_cast<int>(c), static_cast<int>(h), static_cast<int>(w)),
        "cudnnSetTensor4dDescriptor");
  return desc;
}

}  // namespace tbdsim::measure
