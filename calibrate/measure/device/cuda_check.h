// Every status of every CUDA library goes through check(); every handle is owned.
#pragma once

#include <utility>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "hwspecs/base/error.h"

namespace tbdsim::measure {

// This point cannot be measured on this GPU (not supported, too little memory): it is skipped with a message.
class PointError : public Error {
 public:
  using Error::Error;
};

// The device no longer responds (a fault in a kernel, a GPU lost from the bus): the run ends, its records are
// kept.
class DeviceLost : public Error {
 public:
  using Error::Error;
};

// Throws unless the status is success: DeviceLost where the CUDA context cannot be used any more, else
// PointError. `what` names the call that failed.
void check(cudaError_t status, const char* what);
void check(cublasStatus_t status, const char* what);
void check(cudnnStatus_t status, const char* what);

// Clears a remembered error after a point failed; throws DeviceLost when the device no longer responds.
void recover();

// Owns a handle, descriptor, event or stream: created by Create(&handle), or adopted (Create is nullptr), and
// destroyed by Destroy(handle).
template <class T, auto Create, auto Destroy>
class Owned {
 public:
  Owned() { check(Create(&value_), "creating a handle or descriptor"); }
  explicit Owned(T adopted) : value_(adopted) {}
  ~Owned() {
    if (value_ != nullptr) static_cast<void>(Destroy(value_));
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Owned(Owned&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  [[nodiscard]] T get() const { return value_; }

 private:
  T value_ = nullptr;
};

inline cudaError_t create_event(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
inline cudaError_t create_stream(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
}

using Event = Owned<cudaEvent_t, create_event, cudaEventDestroy>;
using Stream = Owned<cudaStream_t, create_stream, cudaStreamDestroy>;
using BlasHandle = Owned<cublasHandle_t, cublasCreate, cublasDestroy>;
using DnnHandle = Owned<cudnnHandle_t, cudnnCreate, cudnnDestroy>;
using TensorDesc = Owned<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterDesc = Owned<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvDesc =
    Owned<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor>;
using PoolDesc = Owned<cudnnPoolingDescriptor_t, cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor>;
using DropoutDesc =
    Owned<cudnnDropoutDescriptor_t, cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor>;
using RnnDesc = Owned<cudnnRNNDescriptor_t, cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor>;
using RnnDataDesc =
    Owned<cudnnRNNDataDescriptor_t, cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor>;

}  // namespace tbdsim::measure
