// Library entry points that only need to exist. No CUDA header is included, so that one variadic definition
// serves each: C linkage does not know parameter types.
#include "fake_gpu.h"

#define FAKE_OK(name) \
  extern "C" int name(...) { return 0; }
#define FAKE_CREATE(name)              \
  extern "C" int name(void** handle) { \
    *handle = fake_gpu_handle();       \
    return 0;                          \
  }
#define FAKE_CALL(name, not_supported) \
  extern "C" int name(...) { return fake_gpu_call(#name, not_supported); }

// cuBLAS: 15 is CUBLAS_STATUS_NOT_SUPPORTED.
FAKE_CREATE(cublasCreate_v2)
FAKE_OK(cublasDestroy_v2)
FAKE_OK(cublasSetStream_v2)
FAKE_CALL(cublasGemmEx, 15)
FAKE_CALL(cublasGemmStridedBatchedEx, 15)
FAKE_CALL(cublasSgemm_v2, 15)
FAKE_CALL(cublasLtMatmul, 15)
FAKE_CREATE(cublasLtMatmulDescCreate)
FAKE_OK(cublasLtMatmulDescDestroy)
FAKE_OK(cublasLtMatmulDescSetAttribute)
FAKE_CREATE(cublasLtMatmulPreferenceCreate)
FAKE_OK(cublasLtMatmulPreferenceDestroy)
FAKE_OK(cublasLtMatmulPreferenceSetAttribute)
FAKE_CREATE(cublasLtMatrixLayoutCreate)
FAKE_OK(cublasLtMatrixLayoutDestroy)

// cuDNN: 3000 is CUDNN_STATUS_NOT_SUPPORTED of version 9.
FAKE_CREATE(cudnnCreate)
FAKE_CREATE(cudnnCreateConvolutionDescriptor)
FAKE_CREATE(cudnnCreateDropoutDescriptor)
FAKE_CREATE(cudnnCreateFilterDescriptor)
FAKE_CREATE(cudnnCreatePoolingDescriptor)
FAKE_CREATE(cudnnCreateRNNDataDescriptor)
FAKE_CREATE(cudnnCreateRNNDescriptor)
FAKE_CREATE(cudnnCreateTensorDescriptor)
FAKE_OK(cudnnDestroy)
FAKE_OK(cudnnDestroyConvolutionDescriptor)
FAKE_OK(cudnnDestroyDropoutDescriptor)
FAKE_OK(cudnnDestroyFilterDescriptor)
FAKE_OK(cudnnDestroyPoolingDescriptor)
FAKE_OK(cudnnDestroyRNNDataDescriptor)
FAKE_OK(cudnnDestroyRNNDescriptor)
FAKE_OK(cudnnDestroyTensorDescriptor)
FAKE_OK(cudnnDeriveBNTensorDescriptor)
FAKE_OK(cudnnSetConvolution2dDescriptor)
FAKE_OK(cudnnSetConvolutionGroupCount)
FAKE_OK(cudnnSetConvolutionMathType)
FAKE_OK(cudnnSetDropoutDescriptor)
FAKE_OK(cudnnSetFilter4dDescriptor)
FAKE_OK(cudnnSetPooling2dDescriptor)
FAKE_OK(cudnnSetRNNDataDescriptor)
FAKE_OK(cudnnSetRNNDescriptor_v8)
FAKE_OK(cudnnSetStream)
FAKE_OK(cudnnSetTensor4dDescriptor)
FAKE_OK(cudnnSetTensorNdDescriptor)
FAKE_CALL(cudnnBatchNormalizationBackward, 3000)
FAKE_CALL(cudnnBatchNormalizationForwardTraining, 3000)
FAKE_CALL(cudnnConvolutionBackwardData, 3000)
FAKE_CALL(cudnnConvolutionBackwardFilter, 3000)
FAKE_CALL(cudnnConvolutionForward, 3000)
FAKE_CALL(cudnnPoolingBackward, 3000)
FAKE_CALL(cudnnPoolingForward, 3000)
FAKE_CALL(cudnnRNNBackwardData_v8, 3000)
FAKE_CALL(cudnnRNNBackwardWeights_v8, 3000)
FAKE_CALL(cudnnRNNForward, 3000)
FAKE_CALL(cudnnSoftmaxBackward, 3000)
FAKE_CALL(cudnnSoftmaxForward, 3000)

// The program's own kernels are built from .cu files for real GPUs; their launchers are in fake_gpu.cpp.
