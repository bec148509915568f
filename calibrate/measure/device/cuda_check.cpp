#include "calibrate/measure/device/cuda_check.h"

#include <string>

namespace tbdsim::measure {
namespace {
// After these the CUDA context is gone (CUDA runtime API reference, "sticky" errors).
bool is_sticky(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorECCUncorrectable:
    case cudaErrorAssert:
    case cudaErrorDevicesUnavailable:
      return true;
    default:
      return false;
  }
}
}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  const std::string text = std::string(what) + ": " + cudaGetErrorString(status);
  if (is_sticky(status)) throw DeviceLost(text);
  throw PointError(text);
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  // cublasGetStatusString is younger than CUDA 11.0.
  const char* name = status == CUBLAS_STATUS_NOT_SUPPORTED      ? "not supported"
                     : status == CUBLAS_STATUS_ALLOC_FAILED     ? "allocation failed"
                     : status == CUBLAS_STATUS_INVALID_VALUE    ? "invalid value"
                     : status == CUBLAS_STATUS_ARCH_MISMATCH    ? "not on this architecture"
                     : status == CUBLAS_STATUS_EXECUTION_FAILED ? "execution failed"
                     : status == CUBLAS_STATUS_NOT_INITIALIZED
                         ? "not initialized (library missing or too little memory?)"
                         : "failed";
  throw PointError(std::string(what) + ": cuBLAS " + name + " (status " +
                   std::to_string(static_cast<int>(status)) + ")");
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw PointError(std::string(what) + ": " + cudnnGetErrorString(status));
}

void recover() {
  static_cast<void>(cudaGetLastError());
  const cudaError_t status = cudaDeviceSynchronize();
  if (status != cudaSuccess)
    throw DeviceLost(std::string("the device does not answer: ") + cudaGetErrorString(status));
}

}  // namespace tbdsim::measure
