// How a framework turns layers into kernels: data of its file. Layers read these values and never the
// framework's name.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace tbdsim {

enum class Layout { nchw, nhwc };     // of images; cuDNN convolves fp32 in NCHW
enum class NormLayout { any, nchw };  // of images that batch norms take; others are transposed
// Convolutions of one tap and stride 1: gemm, of NHWC images a matrix product; image_products, of NCHW images
// on tensor cores those of image_product.h.
enum class Conv1x1 { convolution, gemm, image_products };
// Tensors that backward passes of activations read. input: the input of ReLUs that do not run in place, else
// the output.
enum class ReluKeeps { output, input_and_output, input };
// Weight gradients.
//   transient      each is freed once it is applied, or with the last where the optimizer has state
//   persistent     kept from iteration to iteration
//   until_update   made by the backward pass, freed after the update of all (zero_grad(set_to_none=True))
//   at_once        applied and freed as soon as it is made, whatever the optimizer
enum class GradientStorage { transient, persistent, until_update, at_once };
// Kernels of an optimizer's update.
//   per_tensor  one kernel for each parameter tensor
//   fused       one kernel over all parameters
//   for_loop    one element-wise kernel for each operator of the update (optimizer_operators.h) and tensor
//   foreach     one kernel for each operator, over all parameters
enum class UpdateKernels { per_tensor, fused, for_loop, foreach };

enum class Recurrence { cells, fused };        // a recurrent layer step by step, or as one cuDNN call
enum class CellProducts { joined, separate };  // a cell multiplies [x, h] at once, or x and h apart
// How gradients accumulate over the steps of an unrolled recurrence or the passes before an update: in the
// GEMM that computes them (beta = 1), or by a kernel of their own.
enum class GradientAccumulation { in_place, added };
enum class Composition { fused, composite };  // an operation as one kernel, or one for each of its terms
// Kernels of scaled dot product attention.
//   fused             PyTorch's choice: FlashAttention, or memory-efficient attention in fp32 and for biases of
//                     scores
//   math              products, softmax and dropout in the storage type, scores of later keys included
//   eager             the same as a program writes it, softmax in fp32 and keys repeated for each query's head
//   memory_efficient, flash, flash3, cudnn   the library named
enum class AttentionKernels { fused, math, eager, memory_efficient, flash, flash3, cudnn };
// Cross entropy over a vocabulary; the last two with the product that makes its scores (linear_loss.h).
//   eager                scores copied to fp32, their log softmax kept, its gradient written in fp32 and copied
//                        back
//   fused                one kernel, which writes the gradient over the scores
//   chunked              eager on eight parts of the positions, one after another
//   vocabulary_parallel  Megatron-LM's operators on scores in fp32, in place, whose softmax is kept
//   fused_linear         fused on a part of the positions at a time, with the products before and behind it
//   cut                  no score leaves the kernels of the products
enum class LossKernels { eager, fused, chunked, vocabulary_parallel, fused_linear, cut };
// Kernels of norms of rows that are one kernel forward.
//   rows     PyTorch: a block of 128 threads reads each row twice; gradients of parameters by a kernel of their own
//   held     TorchInductor: the same kernels, which hold a row in registers
//   joined   Transformer Engine, Apex's FastLayerNorm: they hold it, and one kernel makes all gradients
enum class NormKernels { rows, held, joined };
// A batch norm by constant statistics. fused: one kernel forward and one backward, which sums the gradients
// of its parameters where these are trained; summing: the same, and it always sums; composite: one kernel for
// each term.
enum class GlobalNorm { fused, summing, composite };
// Inputs that the product of two activations keeps for its backward pass: those that gradients need, or both.
enum class SavedMatmulInputs { needed, both };
// Gradient of an embedding: of the whole table, or of the rows looked up.
enum class TableGradient { dense, sparse };
// How concat and split are lowered.
//   parts   one kernel for each part, forward and backward
//   whole   one kernel for a concat or a split; one for each part of a concat's gradient
//   views   one kernel for a concat; its gradient and a split are views
enum class ConcatLowering { parts, whole, views };

// Who computes convolutions of one channel a group.
//   own          kernels of the framework
//   half_by_size images in NHWC and, where sizes suit it, in half precision: the library; else the framework
//   library      the library, always
enum class DepthwiseKernels { own, half_by_size, library };

// The compiler that makes kernels for the operators of a captured step. eager: each operator has its own.
//   inductor   element-wise operators and reductions run in kernels of several (graphs/captured/compile.h)
enum class Compiler { eager, inductor };

// Where parameters and optimizer state live. host: weights are sent to the GPU before each pass and gradients
// brought back after it; the host updates.
enum class Variables { device, host };

// Where gradients longer than the clipping norm are detected: the host reads the norm, which synchronizes, or
// the GPU multiplies by a factor that may be 1.
enum class ClipDecision { host, device };

inline constexpr std::array<std::string_view, 2> kLayoutNames = {"nchw", "nhwc"};
inline constexpr std::array<std::string_view, 2> kNormLayoutNames = {"any", "nchw"};
inline constexpr std::array<std::string_view, 3> kConv1x1Names = {"convolution", "gemm", "image_products"};
inline constexpr std::array<std::string_view, 3> kReluKeepsNames = {"output", "input_and_output", "input"};
inline constexpr std::array<std::string_view, 4> kGradientStorageNames = {"transient", "persistent",
                                                                          "until_update", "at_once"};
inline constexpr std::array<std::string_view, 4> kUpdateKernelsNames = {"per_tensor", "fused", "for_loop",
                                                                        "foreach"};
inline constexpr std::array<std::string_view, 2> kRecurrenceNames = {"cells", "fused"};
inline constexpr std::array<std::string_view, 2> kCellProductsNames = {"joined", "separate"};
inline constexpr std::array<std::string_view, 2> kGradientAccumulationNames = {"in_place", "added"};
inline constexpr std::array<std::string_view, 2> kCompositionNames = {"fused", "composite"};
inline constexpr std::array<std::string_view, 7> kAttentionKernelsNames = {
    "fused", "math", "eager", "memory_efficient", "flash", "flash3", "cudnn"};
inline constexpr std::array<std::string_view, 6> kLossKernelsNames = {
    "eager", "fused", "chunked", "vocabulary_parallel", "fused_linear", "cut"};
inline constexpr std::array<std::string_view, 3> kNormKernelsNames = {"rows", "held", "joined"};
inline constexpr std::array<std::string_view, 3> kGlobalNormNames = {"fused", "summing", "composite"};
inline constexpr std::array<std::string_view, 2> kSavedMatmulInputsNames = {"needed", "both"};
inline constexpr std::array<std::string_view, 2> kTableGradientNames = {"dense", "sparse"};
inline constexpr std::array<std::string_view, 3> kConcatLoweringNames = {"parts", "whole", "views"};
inline constexpr std::array<std::string_view, 3> kDepthwiseKernelsNames = {"own", "half_by_size", "library"};
inline constexpr std::array<std::string_view, 2> kCompilerNames = {"eager", "inductor"};
inline constexpr std::array<std::string_view, 2> kVariablesNames = {"device", "host"};
inline constexpr std::array<std::string_view, 2> kClipDecisionNames = {"host", "device"};

struct Lowering {
  Layout layout = Layout::nchw;
  Layout tensor_core_layout = Layout::nchw;  // in which tensor cores convolve; other images are transposed
  Conv1x1 conv_1x1 = Conv1x1::convolution;
  ReluKeeps relu_keeps = ReluKeeps::output;
  bool relu_in_place = false;  // ReLU overwrites its input where no other kernel reads it
  GradientStorage weight_gradients = GradientStorage::persistent;
  UpdateKernels update = UpdateKernels::per_tensor;
  Recurrence recurrence = Recurrence::cells;
  CellProducts cell_products = CellProducts::separate;
  Composition cell_pointwise = Composition::composite;
  GradientAccumulation step_gradients = GradientAccumulation::in_place;
  Composition layer_norm = Composition::fused;
  GlobalNorm global_norm = GlobalNorm::fused;
  Composition dropout = Composition::fused;
  Composition softmax = Composition::fused;  // between layers, and of a smoothed loss
  TableGradient embedding_gradient = TableGradient::dense;
  ConcatLowering joins = ConcatLowering::whole;
  int parameter_copies = 0;  // further copies of all parameters on the GPU (MXNet's kvstore)
  // Optional keys of a framework's file, with their defaults.
  Variables variables = Variables::device;
  ClipDecision clip_decision = ClipDecision::device;
  // Where several layers read an output: the kernel of each further one's gradient adds to the sum, or a
  // kernel of its own does.
  GradientAccumulation branch_gradients = GradientAccumulation::added;
  Composition gelu = Composition::fused;
  Composition lrn = Composition::fused;
  SavedMatmulInputs product_keeps = SavedMatmulInputs::needed;
  AttentionKernels attention = AttentionKernels::fused;
  Composition rms_norm = Composition::composite;  // PyTorch before 2.9; a program's own module
  Composition rotary = Composition::composite;
  Composition gated = Composition::composite;     // activation of one half times the other
  Composition gelu_new = Composition::composite;  // GELU by its hyperbolic tangent
  LossKernels loss = LossKernels::eager;
  NormKernels norm_kernels = NormKernels::rows;
  Composition linear_bias =
      Composition::composite;  // of models' layers: part of the product, or added after it
  bool repeat_keys = false;    // keys and values shared by heads of queries are copied for each of them
  Composition product_bias =
      Composition::fused;                     // of captured steps: added by the product, or copied before it
  std::optional<Layout> half_layout = {};     // of images in half precision; none: `layout`
  std::optional<Composition> half_gelu = {};  // of GELUs in half precision; none: `gelu`
  NormLayout norm_layout = NormLayout::any;
  DepthwiseKernels depthwise = DepthwiseKernels::own;
  bool zero_gradients = false;  // gradients are filled with zeros, and each new one is added by a kernel
  Variables optimizer_state = Variables::device;  // host: it updates there, by gradients sent to it
  bool counts_batches = false;  // a batch norm counts its batches, in a kernel of one number
  Compiler compiler = Compiler::eager;
  bool moments_apart = false;       // layer norms find mean and variance in a kernel of their own
  bool group_norm_in_fp32 = false;  // in mixed precision: torch.autocast's list has group_norm
  bool scale_in_update = false;     // the update divides gradients by the loss scale, no kernel before it
  bool aten_kernels = false;        // pools and, in bf16, batch norms are PyTorch's own kernels, not cuDNN's
  bool synced_norms = false;        // batch norms take their statistics over all ranks (SyncBatchNorm)

  friend bool operator==(const Lowering&, const Lowering&) = default;
};

}  // namespace tbdsim
