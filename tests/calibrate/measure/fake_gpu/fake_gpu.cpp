#include "fake_gpu.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <cupti.h>
#include <unistd.h>

#include "calibrate/measure/kernels/kernels.h"
#include "calibrate/measure/statistics/spans.h"

namespace {
std::uint64_t g_now_ns = 1000;
std::size_t g_used = 0;
int g_synchronisations = 0;
bool g_traced = false;
std::map<void*, std::size_t> g_sizes;
std::map<void*, std::uint64_t> g_events;
std::vector<CUpti_ActivityKernel4> g_records;
CUpti_BuffersCallbackRequestFunc g_request = nullptr;
CUpti_BuffersCallbackCompleteFunc g_complete = nullptr;
std::size_t g_read = 0;  // records of the buffer that is being read
std::size_t g_next_handle = 0;

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

double number(const char* name, double otherwise) {
  const std::string text = setting(name);
  return text.empty() ? otherwise : std::stod(text);
}

// Runs something of this length; names outlive the program's use of them.
void run(const char* name, std::uint64_t nanoseconds) {
  static unsigned noise = 1;
  noise = noise * 1664525U + 1013904223U;
  nanoseconds += nanoseconds * (noise >> 24U) / 25600;  // up to 1 %
  if (g_traced) {
    CUpti_ActivityKernel4 record{};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.start = g_now_ns;
    record.end = g_now_ns + nanoseconds;
    record.gridX = record.gridY = record.gridZ = record.blockX = record.blockY = record.blockZ = 1;
    record.name = name;
    g_records.push_back(record);
  }
  g_now_ns += nanoseconds + 500;
}

cudaError_t ran(const char* name, std::uint64_t nanoseconds) {
  run(name, nanoseconds);
  return cudaSuccess;
}

cudaError_t synchronised() {
  const double limit = number("FAKE_GPU_DIES_AFTER", 0);
  return limit > 0 && ++g_synchronisations > limit ? cudaErrorIllegalAddress : cudaSuccess;
}
}  // namespace

extern "C" void* fake_gpu_handle() { return reinterpret_cast<void*>(++g_next_handle); }

extern "C" int fake_gpu_call(const char* name, int not_supported) {
  if (setting("FAKE_GPU_REFUSES") == name) return not_supported;
  if (const double us = number("FAKE_GPU_CALL_US", 0); us > 0) ::usleep(static_cast<useconds_t>(us));
  run(name, 20000);
  run("tail", 1000);
  return 0;
}

extern "C" {
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "Fake GPU");
  properties->major = 6;
  properties->minor = 1;
  properties->multiProcessorCount = 30;
  properties->l2CacheSize = 3 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int, int) {
  return std::strcpy(text, "0000:00:00.0"), cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = 384, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "a fake error"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return synchronised(); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return synchronised(); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = static_cast<cudaStream_t>(fake_gpu_handle()), cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return *event = static_cast<cudaEvent_t>(fake_gpu_handle()), cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  return g_events[event] = g_now_ns, cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  return *ms = static_cast<float>(g_events[end] - g_events[begin]) * 1e-6F, cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = static_cast<std::size_t>(number("FAKE_GPU_MEMORY", 64e9));
  *free = *total - g_used;
  return cudaSuccess;
}
// Addresses only: nothing is ever stored in this memory.
cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  std::size_t free = 0;
  std::size_t total = 0;
  static_cast<void>(cudaMemGetInfo(&free, &total));
  if (bytes > free) return cudaErrorMemoryAllocation;
  *data = fake_gpu_handle();
  g_sizes[*data] = bytes;
  g_used += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  if (g_sizes.count(data) == 0) std::abort();  // freed twice, or never allocated
  g_used -= g_sizes[data];
  g_sizes.erase(data);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** data, std::size_t) { return *data = fake_gpu_handle(), cudaSuccess; }
cudaError_t cudaFreeHost(void*) { return cudaSuccess; }
cudaError_t cudaMemcpy(void*, const void*, std::size_t, cudaMemcpyKind) { return cudaSuccess; }
cudaError_t cudaMemcpyAsync(void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t) {
  return ran("copy", 30000);
}
cudaError_t cudaMemset(void*, int, std::size_t) { return cudaSuccess; }
cudaError_t cudaMemsetAsync(void*, int, std::size_t, cudaStream_t) { return ran("set", 3000); }

cublasStatus_t cublasGetProperty(libraryPropertyType, int* value) {
  return *value = 13, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t* result, int* count) {
  result->workspaceSize = 1024;
  return *count = 1, CUBLAS_STATUS_SUCCESS;
}

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "CUDNN_STATUS_NOT_SUPPORTED"; }
cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t, cudnnRNNDescriptor_t, std::size_t* bytes) {
  return *bytes = 4096, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t,
                                        cudnnRNNDataDescriptor_t, std::size_t* work, std::size_t* reserve) {
  return *work = *reserve = 4096, CUDNN_STATUS_SUCCESS;
}
}

namespace {
// One algorithm that always fits, one that needs 100 MB, one that fails, one with tensor cores.
template <class Perf>
cudnnStatus_t found(int* count, Perf* perf, std::size_t workspace) {
  const auto add = [&](int algorithm, std::size_t memory, cudnnStatus_t status, cudnnMathType_t math) {
    if (memory > workspace) return;
    perf[*count] = Perf{};
    perf[*count].algo = static_cast<decltype(perf->algo)>(algorithm);
    perf[*count].memory = memory;
    perf[*count].status = status;
    perf[*count].mathType = math;
    perf[(*count)++].time = 0.02F;
  };
  *count = 0;
  add(0, 0, CUDNN_STATUS_SUCCESS, CUDNN_FMA_MATH);
  add(1, 100000000, CUDNN_STATUS_SUCCESS, CUDNN_FMA_MATH);
  add(2, 0, CUDNN_STATUS_NOT_SUPPORTED, CUDNN_FMA_MATH);
  add(1, workspace > 100000000 ? 90000000 : 1000, CUDNN_STATUS_SUCCESS, CUDNN_TENSOR_OP_MATH);
  return CUDNN_STATUS_SUCCESS;
}
}  // namespace

extern "C" {
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t, cudnnTensorDescriptor_t, const void*,
                                                     cudnnFilterDescriptor_t, const void*,
                                                     cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t,
                                                     void*, int, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* perf, void*,
                                                     std::size_t bytes) {
  return found(count, perf, bytes);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(cudnnHandle_t, cudnnFilterDescriptor_t, const void*,
                                                          cudnnTensorDescriptor_t, const void*,
                                                          cudnnConvolutionDescriptor_t,
                                                          cudnnTensorDescriptor_t, void*, int, int* count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* perf, void*,
                                                          std::size_t bytes) {
  return found(count, perf, bytes);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(cudnnHandle_t, cudnnTensorDescriptor_t,
                                                            const void*, cudnnTensorDescriptor_t, const void*,
                                                            cudnnConvolutionDescriptor_t,
                                                            cudnnFilterDescriptor_t, void*, int, int* count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* perf, void*,
                                                            std::size_t bytes) {
  return found(count, perf, bytes);
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  g_request = request;
  g_complete = complete;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind) {
  if (setting("FAKE_GPU_CUPTI") == "refuse") return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  g_traced = true;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind) { return g_traced = false, CUPTI_SUCCESS; }
CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  return *text = "a fake refusal", CUPTI_SUCCESS;
}
// Hands out one buffer and keeps the records beside it.
CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0;
  std::size_t most = 0;
  g_request(&buffer, &size, &most);
  if (setting("FAKE_GPU_CUPTI") == "lose" && g_records.size() > 20) g_records.resize(10);
  g_read = 0;
  g_complete(nullptr, 0, buffer, size, size);
  g_records.clear();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(std::uint8_t*, std::size_t, CUpti_Activity** record) {
  if (g_read == g_records.size()) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(&g_records[g_read++]);
  return CUPTI_SUCCESS;
}
}

namespace tbdsim::measure {
cudaError_t launch_empty(cudaStream_t) { return ran("tbd_empty_kernel", 1000); }
cudaError_t launch_begin_mark(cudaStream_t) { return ran(kBeginMark, 1000); }
cudaError_t launch_end_mark(cudaStream_t) { return ran(kEndMark, 1000); }
cudaError_t launch_spin(cudaStream_t, long long) { return ran("tbd_spin_kernel", 300000); }
cudaError_t launch_flush(cudaStream_t, void*, std::size_t) { return ran("tbd_flush_kernel", 50000); }
cudaError_t launch_fill(cudaStream_t, Type, void*, std::int64_t, float, std::uint64_t) {
  return ran("fill", 1000);
}
cudaError_t launch_add(cudaStream_t, Type, const void*, const void*, void*, std::int64_t) {
  return ran("add", 10000);
}
cudaError_t launch_relu(cudaStream_t, Type, const void*, void*, std::int64_t) { return ran("relu", 10000); }
cudaError_t launch_relu_backward(cudaStream_t, Type, const void*, const void*, void*, std::int64_t) {
  return ran("relu", 10000);
}
cudaError_t launch_dropout(cudaStream_t, Type, const void*, void*, unsigned char*, std::int64_t,
                           std::uint64_t) {
  return ran("dropout", 10000);
}
cudaError_t launch_dropout_backward(cudaStream_t, Type, const void*, const unsigned char*, void*,
                                    std::int64_t) {
  return ran("dropout", 10000);
}
cudaError_t launch_bias(cudaStream_t, Type, const void*, const void*, void*, std::int64_t, std::int64_t) {
  return ran("bias", 10000);
}
cudaError_t launch_bias_backward(cudaStream_t, Type, const void*, float*, std::int64_t, std::int64_t) {
  return ran("bias", 10000);
}
cudaError_t launch_layer_norm(cudaStream_t, Type, const void*, const float*, const float*, void*, float*,
                              std::int64_t, std::int64_t) {
  return ran("norm", 10000);
}
cudaError_t launch_layer_norm_backward(cudaStream_t, Type, const void*, const void*, const float*,
                                       const float*, void*, std::int64_t, std::int64_t) {
  return ran("norm", 10000);
}
cudaError_t launch_layer_norm_weights(cudaStream_t, Type, const void*, const void*, const float*, float*,
                                      std::int64_t, std::int64_t) {
  return ran("norm", 10000);
}
cudaError_t launch_sgd_momentum(cudaStream_t, float*, const float*, float*, std::int64_t) {
  return ran("sgd", 10000);
}
cudaError_t launch_adam(cudaStream_t, float*, const float*, float*, float*, std::int64_t) {
  return ran("adam", 10000);
}
}  // namespace tbdsim::measure
