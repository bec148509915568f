// cross_entropy: -log softmax(x)[label] of each position over a vocabulary; dx = softmax(x) - one_hot(label).
// Its forms are LossKernels of graphs/lowering.h; the output is the loss of each position.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/wide_terms.h"

namespace tbdsim {
namespace {

// PyTorch: x.float(), log_softmax, nll_loss; backward nll_loss fills zeros and writes one number for each
// position, log_softmax reads that and its output.
constexpr WideTerm kConvert[] = {{"cast", 1, 0, 0, 1, true}};
constexpr WideTerm kPick[] = {{"nll_loss"}};
constexpr WideTerm kBackward[] = {
    {"fill", 0, 0, 0, 1}, {"nll_loss"}, {"log_softmax", 0, 2, 0, 1}, {"cast", 0, 1, 1, 0, true}};
// z-loss (Chowdhery et al., arXiv 2204.02311, section 5) as PyTorch's logsumexp: the maximum, exponentials of
// differences, their sum; back the same exponentials times the gradient, added to that of the cross entropy.
constexpr WideTerm kZForward[] = {{"amax", 0, 1}, {"sub", 0, 1, 0, 1}, {"exp", 0, 1, 0, 1}, {"sum", 0, 1}};
constexpr WideTerm kZBackward[] = {
    {"sub", 0, 1, 0, 1}, {"exp", 0, 1, 0, 1}, {"mul", 0, 1, 0, 1}, {"gradient_sum", 0, 2, 0, 1}};
// Megatron-LM, core/tensor_parallel/cross_entropy.py, on one rank: logits.float(), their maximum, which is
// subtracted in place, exponentials in their place, their sum, by which they are divided; the gradient is
// written over that softmax.
constexpr WideTerm kVocabularyForward[] = {{"cast", 1, 0, 0, 1, true}, {"amax", 0, 1}, {"sub", 0, 1, 0, 1},
                                           {"exp", 0, 1, 0, 1},        {"sum", 0, 1},  {"div", 0, 1, 0, 1}};
constexpr WideTerm kVocabularyBackward[] = {{"mul", 0, 1, 0, 1}, {"cast", 0, 1, 1, 0, true}};
constexpr std::int64_t kChunks = 8;  // torchtune, modules/loss/cross_entropy_loss.py, num_output_chunks

class CrossEntropy : public Layer {
 public:
  explicit CrossEntropy(SpecMap& keys) {
    if (const auto z = keys.find("z_loss")) z_loss_ = z->flag();
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    Shape shape = class_scores(inputs);
    shape.dims.pop_back();
    if (shape.dims.empty()) shape.dims.push_back(1);
    return shape;
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Shape& x = site.inputs[0];
    if (how.lowering.loss == LossKernels::vocabulary_parallel) {
      append_wide_terms(kVocabularyForward, sizes(x, 0), Phase::forward, how.precision, kernels);
      return;
    }
    if (writes_gradient(how.lowering.loss) && how.lowering.loss != LossKernels::chunked) {
      kernels.push_back(softmax_kernel(Phase::forward, "cross_entropy", x, how.precision, kSoftmaxFlops, 2));
      return;
    }
    const std::size_t first = kernels.size();
    eager_forward(x, how, scratch(how, 1), kernels);
    if (how.lowering.loss != LossKernels::chunked) return;
    append_backward(x, how, 2, Phase::forward, kernels);
    for (std::size_t k = first; k < kernels.size(); ++k) in_chunks(kernels[k]);
  }

  // Forms that write the gradient forward have no kernel here.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient || writes_gradient(how.lowering.loss)) return;
    if (how.lowering.loss == LossKernels::vocabulary_parallel) {
      append_wide_terms(kVocabularyBackward, sizes(site.inputs[0], 0), Phase::backward_data, how.precision,
                        kernels);
      return;
    }
    append_backward(site.inputs[0], how, 1, Phase::backward_data, kernels);
  }

  // Eager: the log softmax in fp32, and the scores, which the program returns; their copy in fp32 where a
  // z-loss reads it. Vocabulary-parallel: the softmax in fp32, in place of the scores where these are fp32.
  // Others: the gradient, in the scores' place.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    if (!site.input_gradient) return {};
    const bool eager = how.lowering.loss == LossKernels::eager;
    const Size wide = elements(site.inputs[0]) * kFp32Bytes;
    if (how.lowering.loss == LossKernels::vocabulary_parallel && !is_wide(how.precision))
      return {.extra_bytes = wide};
    const std::int64_t copies = 1 + (z_loss_ && !is_wide(how.precision) ? 1 : 0);
    return {.inputs = true, .extra_bytes = eager ? wide * copies : Size{}};
  }
  [[nodiscard]] bool gradient_is_view(const Lowering& lowering) const override {
    return writes_gradient(lowering.loss);
  }
  [[nodiscard]] bool is_loss() const override { return true; }

 private:
  // The forward kernels write the gradient over the scores.
  static bool writes_gradient(LossKernels loss) {
    return loss != LossKernels::eager && loss != LossKernels::vocabulary_parallel;
  }
  // fp32 tensors that only live while kernels run; there is none of the conversion where storage is fp32.
  static std::int64_t scratch(const LoweringContext& how, std::int64_t tensors) {
    return tensors - (is_wide(how.precision) ? 1 : 0);
  }
  static WideSizes sizes(const Shape& x, std::int64_t scratch) {
    return {elements(x), positions(x), scratch};
  }
  void append_backward(const Shape& x, const LoweringContext& how, std::int64_t tensors, Phase phase,
                       std::vector<Kernel>& kernels) const {
    const WideSizes wide = sizes(x, scratch(how, tensors + (z_loss_ ? 1 : 0)));
    if (z_loss_) append_wide_terms(kZBackward, wide, phase, how.precision, kernels);
    append_wide_terms(kBackward, wide, phase, how.precision, kernels);
  }
  void eager_forward(const Shape& x, const LoweringContext& how, std::int64_t scratch,
                     std::vector<Kernel>& kernels) const {
    append_wide_terms(kConvert, sizes(x, scratch), Phase::forward, how.precision, kernels);
    const Size wide = elements(x) * kFp32Bytes;
    Kernel softmax =
        memory_kernel(KernelKind::softmax, Phase::forward, "log_softmax", x, kSoftmaxFlops, wide, wide);
    softmax.shape = position_matrix(x);
    softmax.scratch_bytes = wide * scratch;
    kernels.push_back(softmax);
    append_wide_terms(kPick, sizes(x, scratch), Phase::forward, how.precision, kernels);
    if (z_loss_) append_wide_terms(kZForward, sizes(x, scratch + 1), Phase::forward, how.precision, kernels);
  }
  // One of eight parts of the positions, eight times.
  static void in_chunks(Kernel& kernel) {
    const auto part = [](Size& size) {
      size = {(size.fixed + kChunks - 1) / kChunks, (size.per_sample + kChunks - 1) / kChunks};
    };
    for (Size* size : {&kernel.flops, &kernel.read_bytes, &kernel.written_bytes, &kernel.scratch_bytes})
      part(*size);
    if (auto* vector = std::get_if<VectorShape>(&kernel.shape)) part(vector->elements);
    if (auto* matrix = std::get_if<MatrixShape>(&kernel.shape)) part(matrix->rows);
    kernel.repeat *= kChunks;
  }

  bool z_loss_ = false;
};

}  // namespace

std::unique_ptr<Layer> make_cross_entropy(SpecMap& keys) { return std::make_unique<CrossEntropy>(keys); }

}  // namespace tbdsim
