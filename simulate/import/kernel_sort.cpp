#include "simulate/import/kernel_sort.h"

#include <string>

#include "graphs/kernel.h"

namespace tbdsim {
namespace {

// The first entry that is part of the name, in small letters, tells the kind. Sources: kernel names of cuDNN,
// cuBLAS, CUTLASS, NCCL and of PyTorch's and MXNet's own kernels as profilers print them; a name that says
// what it computes ("batch_norm") goes before one that says how ("reduce", "elementwise").
struct Part {
  std::string_view text;
  std::string_view kind;
};
constexpr std::string_view kConvolution = name_of(KernelKind::convolution);
constexpr std::string_view kGemm = name_of(KernelKind::gemm);
constexpr std::string_view kRecurrent = name_of(KernelKind::recurrent);
constexpr std::string_view kBatchNorm = name_of(KernelKind::batch_norm);
constexpr std::string_view kLayerNorm = name_of(KernelKind::layer_norm);
constexpr std::string_view kElementwise = name_of(KernelKind::elementwise);
constexpr std::string_view kPooling = name_of(KernelKind::pooling);
constexpr std::string_view kSoftmax = name_of(KernelKind::softmax);
constexpr std::string_view kReduction = name_of(KernelKind::reduction);
constexpr std::string_view kTranspose = name_of(KernelKind::transpose);
constexpr std::string_view kGather = name_of(KernelKind::gather);
constexpr std::string_view kTransfer = name_of(KernelKind::transfer);
constexpr std::string_view kUpdate = name_of(KernelKind::update);
constexpr Part kParts[] = {
    {"nccl", kCommunication},
    {"allreduce", kCommunication},
    {"memcpy", kTransfer},
    {"memset", kElementwise},
    {"multi_tensor_apply", kUpdate},
    {"multitensorapply", kUpdate},
    {"fused_adam", kUpdate},
    {"adam_", kUpdate},
    {"sgd_", kUpdate},
    {"applyadam", kUpdate},
    {"applymomentum", kUpdate},
    {"applygradientdescent", kUpdate},
    {"batch_norm", kBatchNorm},
    {"batchnorm", kBatchNorm},
    {"bn_fw", kBatchNorm},
    {"bn_bw", kBatchNorm},
    {"bn_add", kBatchNorm},
    {"layer_norm", kLayerNorm},
    {"layernorm", kLayerNorm},
    {"rmsnorm", kLayerNorm},
    {"rms_norm", kLayerNorm},
    {"group_norm", kLayerNorm},
    {"groupnorm", kLayerNorm},
    {"rownorm", kLayerNorm},
    {"gammabeta", kLayerNorm},
    {"flash", kGemm},
    {"fmha", kGemm},
    {"attention", kGemm},
    {"softmax", kSoftmax},
    {"nll_loss", kSoftmax},
    {"nllloss", kSoftmax},
    {"crossentropy", kSoftmax},
    {"cross_entropy", kSoftmax},
    {"max_pool", kPooling},
    {"avg_pool", kPooling},
    {"adaptive_average", kPooling},
    {"pooling", kPooling},
    {"maxpool", kPooling},
    {"avgpool", kPooling},
    {"nchwtonhwc", kTranspose},
    {"nhwctonchw", kTranspose},
    {"nchw2nhwc", kTranspose},
    {"nhwc2nchw", kTranspose},
    {"transpose", kTranspose},
    {"shuffletensor", kTranspose},
    {"permute", kTranspose},
    {"lstm", kRecurrent},
    {"gru_", kRecurrent},
    {"rnn_", kRecurrent},
    {"elemwisernn", kRecurrent},
    {"persistrnn", kRecurrent},
    {"convert", kElementwise},
    {"cijk_", kGemm},             // AMD's Tensile
    {"igemm_fwd", kConvolution},  // of MIOpen
    {"igemm_bwd", kConvolution},
    {"igemm_wrw", kConvolution},
    {"dgrad", kConvolution},
    {"wgrad", kConvolution},
    {"fprop", kConvolution},
    {"conv", kConvolution},
    {"scudnn", kConvolution},
    {"winograd", kConvolution},
    {"implicit", kConvolution},
    {"im2col", kConvolution},
    {"col2im", kConvolution},
    {"cudnn::cnn", kConvolution},
    {"cudnn::detail::", kConvolution},
    {"fft", kConvolution},
    {"flip_filter", kConvolution},
    {"computeoffsets", kConvolution},
    {"gemm", kGemm},
    {"gemv", kGemm},
    {"splitk", kGemm},
    {"nvjet", kGemm},
    {"cublas", kGemm},
    {"cutlass", kGemm},
    {"s884", kGemm},
    {"s1688", kGemm},
    {"s16816", kGemm},
    {"dot_kernel", kGemm},
    {"embedding", kGather},
    {"indexselect", kGather},
    {"index_elementwise", kGather},
    {"gather", kGather},
    {"scatter", kGather},
    {"indexing", kGather},
    {"cat", kElementwise},
    {"reduce", kReduction},
    {"elementwise", kElementwise},
    {"kernelpointwise", kElementwise},
    {"eigenmetakernel", kElementwise},
    {"mxnet_generic_kernel", kElementwise},
    {"mapplan", kElementwise},
    {"op_tensor", kElementwise},
    {"optensor", kElementwise},
    {"add_tensor", kElementwise},
    {"dropout", kElementwise},
    {"activation", kElementwise},
    {"triton_poi", kElementwise},
    {"triton_red", kReduction},
    {"triton_per", kReduction},
    {"fill", kElementwise},
    {"copy", kElementwise},
};

std::string in_small_letters(std::string_view name) {
  constexpr std::size_t kLooked = 2'000;  // names of templates have no end
  std::string text(name.substr(0, kLooked));
  for (char& c : text) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

}  // namespace

std::string_view kernel_kind(std::string_view name) {
  const std::string text = in_small_letters(name);
  for (const Part& part : kParts) {
    if (text.find(part.text) != std::string::npos) return part.kind;
  }
  return kOtherKernel;
}

}  // namespace tbdsim
