#include "simulate/analysis/kernel_names.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace tbdsim {
namespace {

enum class Pass { any, forward, backward, update };

// A row of the table of names; the first that matches counts. Empty texts match all.
struct KnownName {
  std::string_view family;
  std::optional<KernelKind> kind;
  std::string_view op;
  Pass pass = Pass::any;
  Algorithm algorithm = Algorithm::none;  // none: any
  std::string_view
      name;  // {} is the architecture in cuDNN's and cuBLAS's names, <> what a template is made for
};

constexpr std::string_view kGenericMxnet = "mxnet::op::mxnet_op::mxnet_generic_kernel<>";
constexpr std::string_view kEigen = "Eigen::internal::EigenMetaKernel<>";
constexpr std::string_view kPytorch = "at::native::vectorized_elementwise_kernel<>";

// Sources: (1) the TBD paper, Tables V and VI (it prints cuda::detail for cudnn::detail, and bn_fw for the
// backward kernel in Table V); (2) nvprof summaries of Sockeye on MXNet
// (UofT-EcoSystem/sockeye@c90850ac157a); (3) NeuSight's tables of PyTorch kernels
// (sitar-lab/NeuSight@6945927); (4) TensorFlow 1.3, core/kernels/conv_ops_gpu_3.cu.cc and bias_op_gpu.cu.cc.
constexpr KnownName kNames[] = {
    // (1)
    {"tensorflow",
     KernelKind::batch_norm,
     "batch_norm",
     Pass::forward,
     {},
     "cudnn::detail::bn_fw_tr_1C11_kernel_new"},
    {"tensorflow",
     KernelKind::batch_norm,
     "batch_norm",
     Pass::backward,
     {},
     "cudnn::detail::bn_bw_1C11_kernel_new"},
    {"mxnet",
     KernelKind::batch_norm,
     "batch_norm",
     Pass::forward,
     {},
     "cudnn::detail::bn_fw_tr_1C11_kernel_new"},
    {"mxnet",
     KernelKind::batch_norm,
     "batch_norm",
     Pass::backward,
     {},
     "cudnn::detail::bn_bw_1C11_kernel_new"},
    {"mxnet", {}, "relu", Pass::forward, {}, "cudnn::detail::activation_fw_4d_kernel"},
    {"mxnet", {}, "relu", Pass::backward, {}, "cudnn::detail::activation_bw_4d_kernel"},
    {"tensorflow", {}, "bias_add", Pass::any, {}, "tensorflow::BiasNHWCKernel"},
    // (2)
    {"mxnet", {}, "add", Pass::any, {}, kGenericMxnet},
    {"mxnet", {}, "add_n", Pass::any, {}, kGenericMxnet},
    {"mxnet", {}, "gradient_sum", Pass::any, {}, kGenericMxnet},
    {"mxnet",
     KernelKind::softmax,
     "softmax",
     Pass::forward,
     {},
     "mxnet::op::mxnet_op::softmax_compute_kernel"},
    {"mxnet",
     KernelKind::softmax,
     "softmax",
     Pass::backward,
     {},
     "mxnet::op::mxnet_op::softmax_gradient_kernel"},
    {"mxnet", {}, "sequence_mask", Pass::any, {}, "mxnet::op::mxnet_op::SequenceMaskKernel"},
    {"mxnet", {}, "sequence_reverse", Pass::any, {}, kGenericMxnet},
    // (4)
    {"tensorflow", {}, "bias_gradient", Pass::any, {}, "tensorflow::BiasGradNHWC_SharedAtomics"},
    {"tensorflow",
     KernelKind::transpose,
     "nhwc_nchw",
     Pass::any,
     {},
     "tensorflow::functor::SwapDimension1And2InTensor3UsingTiles"},
    {"tensorflow", KernelKind::elementwise, "", Pass::any, {}, kEigen},
    {"tensorflow", KernelKind::update, "", Pass::any, {}, kEigen},
    // (3)
    {"pytorch", KernelKind::elementwise, "", Pass::any, {}, kPytorch},
    {"pytorch",
     KernelKind::layer_norm,
     "layer_norm",
     Pass::forward,
     {},
     "at::native::vectorized_layer_norm_kernel"},
    {"", KernelKind::convolution, "", Pass::any, Algorithm::winograd,
     "{}_scudnn_winograd_128x128_ldg1_ldg4_..."},
    {"", KernelKind::convolution, "", Pass::forward, Algorithm::implicit_gemm, "{}_scudnn_..._relu_..."},
    {"", KernelKind::gemm, "matmul", Pass::any, {}, "{}_sgemm_..."},
};

bool fits(Pass pass, Phase phase) {
  if (pass == Pass::any) return true;
  if (phase == Phase::update) return pass == Pass::update;
  return (phase == Phase::forward) == (pass == Pass::forward);
}

// Pascal's single-precision kernels are Maxwell's (2), Turing's are Volta's, Ada's are Ampere's (3).
std::string_view library_architecture(const GpuSpec& gpu) {
  if (gpu.architecture == "pascal") return "maxwell";
  if (gpu.architecture == "turing") return "volta";
  if (gpu.architecture == "ada") return "ampere";
  return gpu.architecture;
}

}  // namespace

std::string kernel_name(const Kernel& kernel, Algorithm algorithm, const std::string& family,
                        const GpuSpec& gpu) {
  const auto* known = std::find_if(std::begin(kNames), std::end(kNames), [&](const KnownName& row) {
    return (row.family.empty() || row.family == family) && (!row.kind || *row.kind == kernel.kind) &&
           (row.op.empty() || row.op == kernel.op) && fits(row.pass, kernel.phase) &&
           (row.algorithm == Algorithm::none || row.algorithm == algorithm);
  });
  const std::string own = fmt::format("{} {}", kernel.op, phase_name(kernel));
  if (known == std::end(kNames)) return "(" + own + ")";
  if (known->name.ends_with("<>")) {
    return fmt::format("{}<{}>", known->name.substr(0, known->name.size() - 2), own);
  }
  if (!known->name.starts_with("{}")) return std::string(known->name);
  // Products in other precisions have other names.
  if (kernel.math != MathType::fp32) return "(" + own + ")";
  return std::string(library_architecture(gpu)) + std::string(known->name.substr(2));
}

}  // namespace tbdsim
