// A training step as PyTorch dispatches it, operator by operator: the content of a step file
// (docs/step_file.md). step_reader.h reads it, lower.h makes kernels and tensors of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graphs/size.h"

namespace tbdsim {

enum class Dtype : std::uint8_t {
  f32,
  f16,
  bf16,
  f64,
  f8e4m3,
  f8e5m2,
  i64,
  i32,
  i16,
  i8,
  u8,
  boolean,
  c64,
  c128
};
inline constexpr std::array<std::string_view, 14> kDtypeNames = {
    "f32", "f16", "bf16", "f64", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool", "c64", "c128"};
inline constexpr std::array<std::int64_t, 14> kDtypeBytes = {4, 2, 2, 8, 1, 1, 8, 4, 2, 1, 1, 1, 8, 16};

[[nodiscard]] constexpr std::int64_t bytes_of(Dtype dtype) {
  return kDtypeBytes[static_cast<std::size_t>(dtype)];
}

// Number formats in which a step can be captured. fp16, bf16: by autocast; pure: parameters are half, too.
enum class CapturedPrecision { fp32, tf32, fp16, bf16, pure_fp16, pure_bf16 };
inline constexpr std::array<std::string_view, 6> kCapturedPrecisionNames = {"fp32", "tf32",      "fp16",
                                                                            "bf16", "pure_fp16", "pure_bf16"};

enum class StorageRole {
  parameter,
  buffer,
  gradient,      // of a parameter
  state,         // of the optimizer
  input,         // of the step
  host,          // in the host's memory
  activation,    // made in the forward pass
  gradient_map,  // made in the backward pass
  temporary      // made by the optimizer or after it
};
inline constexpr std::array<std::string_view, 9> kStorageRoleNames = {
    "parameter", "buffer", "gradient", "state", "input", "host", "activation", "gradient_map", "temporary"};

enum class StepPhase { forward, backward, update, zero };
inline constexpr std::array<std::string_view, 4> kStepPhaseNames = {"forward", "backward", "update", "zero"};

struct CapturedModule {
  std::string path;  // "layer1.0.conv1"; empty: the whole model
  std::string type;  // "Conv2d"
};

struct CapturedStorage {
  StorageRole role = StorageRole::activation;
  Size bytes;
  int born = -1;     // operator that makes it; -1: it is there before the step
  int freed = -1;    // operator after which it is freed; -1: it is kept beyond the step
  std::string name;  // of a parameter, its gradient and state, a buffer
};

struct CapturedTensor {
  int storage = 0;
  Dtype dtype = Dtype::f32;
  std::vector<Size> shape;
  std::vector<Size> strides;  // in elements
  Size offset;                // in elements
  Size elements;              // product of the shape
  Size stored;                // the same without dimensions of stride 0, which repeat what is there
};

struct Argument;
struct TensorRef {
  int index = 0;
};
// A whole number, too, is a Size.
using ArgumentValue =
    std::variant<std::monostate, bool, double, Size, std::string, TensorRef, Dtype, std::vector<Argument>>;
struct Argument {
  ArgumentValue value;
};

struct CapturedOperator {
  std::string name;  // with its overload: "aten.add_.Tensor"
  StepPhase phase = StepPhase::forward;
  int module = 0;
  std::vector<Argument> arguments;  // in the order of the operator's schema
  std::vector<int> outputs;         // tensors; -1: none
};

// Calls visit(index) for every tensor among the arguments, those in lists included.
template <class Visit>
void each_tensor(const std::vector<Argument>& arguments, Visit visit) {
  for (const Argument& argument : arguments) {
    if (const auto* tensor = std::get_if<TensorRef>(&argument.value)) visit(tensor->index);
    if (const auto* list = std::get_if<std::vector<Argument>>(&argument.value)) each_tensor(*list, visit);
  }
}

struct CapturedStep {
  std::string file;  // its path, for errors
  std::string name, title;
  std::string sample;           // what a batch counts, singular
  std::int64_t length = 0;      // tokens or frames of a sample; 0: none
  std::string torch;            // version that captured it
  std::int64_t only_batch = 0;  // the one at which it was captured; 0: sizes are known at every batch
  CapturedPrecision precision = CapturedPrecision::fp32;
  bool channels_last = false;
  std::vector<CapturedModule> modules;
  std::vector<CapturedStorage> storages;
  std::vector<CapturedTensor> tensors;
  std::vector<CapturedOperator> operators;
  std::vector<std::string> warnings;
};

}  // namespace tbdsim
