// attention: softmax(Q K' / sqrt(d) + bias) V of every head, from queries, keys and values of each position.
// Its kernels are AttentionKernels of graphs/lowering.h: one that keeps no scores, or each operation apart.
#include "graphs/layers/attention_shape.h"
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kSoftmaxBackwardFlops = 4;

// The kernel that computes it; none where each operation is a kernel of its own. FlashAttention and cuDNN
// have no fp32; PyTorch gives scores with a bias that is a tensor to memory-efficient attention
// (aten/native/transformers/cuda/sdp_utils.cpp).
std::optional<AttentionKernel> kernel_of(const AttentionKeys& keys, const LoweringContext& how) {
  const AttentionKernels asked = how.lowering.attention;
  if (asked == AttentionKernels::math || asked == AttentionKernels::eager) return std::nullopt;
  if (how.precision.storage_bytes == kFp32Bytes || asked == AttentionKernels::memory_efficient)
    return AttentionKernel::memory_efficient;
  if (asked == AttentionKernels::flash3) return AttentionKernel::flash3;
  if (asked == AttentionKernels::cudnn) return AttentionKernel::cudnn;
  const bool biased = keys.bias != ScoreBias::none && asked == AttentionKernels::fused;
  return biased ? AttentionKernel::memory_efficient : AttentionKernel::flash2;
}

// Appends the kernels of one pass through the layer.
class Kernels {
 public:
  Kernels(const AttentionKeys& keys, const LayerContext& site, const LoweringContext& how, Phase phase,
          std::vector<Kernel>& out)
      : keys_(keys),
        sizes_(attention_sizes(keys, site.inputs)),
        site_(site),
        how_(how),
        phase_(phase),
        out_(out) {}

  void forward() {
    if (const auto kernel = kernel_of(keys_, how_)) {
      assemble_keys();
      if (repeats()) copy_heads("repeat_keys", keys_.kv_heads, keys_.heads);
      one_kernel(*kernel, q() + k() + v(), output() + statistics());
      return;
    }
    composite_forward();
  }
  void backward() {
    if (const auto kernel = kernel_of(keys_, how_)) {
      one_kernel(*kernel, q() + k() + v() + output() * 2 + statistics(), q() + k() + v());
      if (repeats()) sum_heads();
    } else {
      composite_backward();
    }
    return_gradients();
  }

 private:
  [[nodiscard]] bool eager() const { return how_.lowering.attention == AttentionKernels::eager; }
  // Bytes of a probability as softmax computes it, which eager code asks for in fp32. One kernel reads fp16
  // and writes fp32; bf16 is converted before it (aten/native/SoftMax.cpp, half_to_float).
  [[nodiscard]] std::int64_t wide() const { return eager() ? kFp32Bytes : how_.precision.storage_bytes; }
  [[nodiscard]] bool converts() const {
    return wide() != how_.precision.storage_bytes && how_.precision.math != MathType::fp16;
  }
  // Keys and values are copied for every head of queries that shares them.
  [[nodiscard]] bool repeats() const {
    return keys_.kv_heads != keys_.heads && (eager() || how_.lowering.repeat_keys);
  }
  [[nodiscard]] std::int64_t kv_heads() const { return repeats() ? keys_.heads : keys_.kv_heads; }
  [[nodiscard]] Size bytes(const Size& elements) const { return elements * how_.precision.storage_bytes; }
  [[nodiscard]] Size q() const { return bytes(sizes_.q(keys_)); }
  [[nodiscard]] Size k() const { return bytes(sizes_.k(kv_heads())); }
  [[nodiscard]] Size v() const { return bytes(sizes_.v(kv_heads())); }
  [[nodiscard]] Size output() const { return bytes(sizes_.output(keys_)); }
  [[nodiscard]] Size heads() const { return sizes_.rows * keys_.heads; }
  [[nodiscard]] Size statistics() const { return heads() * sizes_.queries * kFp32Bytes; }
  [[nodiscard]] Size scores() const { return heads() * checked_multiply(sizes_.queries, sizes_.keys); }
  [[nodiscard]] Shape score_shape() const {
    return {sizes_.rows, {keys_.heads, sizes_.queries, sizes_.keys}};
  }

  void copy(std::string_view op, KernelKind kind, const Size& read, const Size& written) {
    out_.push_back(memory_kernel(kind, phase_, op, {written, {}}, 0, bytes(read), bytes(written)));
  }
  // Features that all heads share are put beside those of each head.
  void assemble_keys() {
    if (keys_.shared == 0) return;
    copy("concat", KernelKind::elementwise, sizes_.k(keys_.kv_heads), sizes_.k(keys_.kv_heads));
  }
  void copy_heads(std::string_view op, std::int64_t from, std::int64_t to) {
    copy(op, KernelKind::transpose, sizes_.k(from), sizes_.k(to));
    copy(op, KernelKind::transpose, sizes_.v(from), sizes_.v(to));
  }
  void sum_heads() {
    for (const Size& repeated : {sizes_.k(keys_.heads), sizes_.v(keys_.heads)}) {
      const std::int64_t share = keys_.heads / keys_.kv_heads;
      out_.push_back(memory_kernel(KernelKind::reduction, phase_, "sum", {repeated, {}}, 1, bytes(repeated),
                                   bytes(Size{repeated.fixed / share, repeated.per_sample / share})));
    }
  }
  // Gradients of parts of one input are put side by side; those of shared features summed over heads.
  void return_gradients() {
    if (site_.inputs.size() == 1 && !keys_.strided) {
      const Size all = elements(site_.inputs[0]);
      copy("concat", KernelKind::elementwise, all, all);
    }
    if (keys_.shared == 0) return;
    const Size shared = sizes_.of(keys_.heads, sizes_.keys, keys_.shared);
    out_.push_back(memory_kernel(KernelKind::reduction, phase_, "sum", {shared, {}}, 1, bytes(shared),
                                 stored_bytes(site_.inputs[2], how_.precision)));
    copy("concat", KernelKind::elementwise, elements(site_.inputs[1]), elements(site_.inputs[1]));
  }

  // The sums of gradients times results, which the memory-efficient kernel has made before it in fp32
  // (aten/native/transformers/cuda/attention_backward.cu).
  void sum_gradients() {
    const Size results = sizes_.output(keys_);
    out_.push_back(
        memory_kernel(KernelKind::elementwise, phase_, "mul", {results, {}}, 1, output() * 2, output()));
    out_.push_back(
        memory_kernel(KernelKind::reduction, phase_, "sum", {results, {}}, 1, output(), statistics()));
  }

  void one_kernel(AttentionKernel whose, const Size& read, const Size& written) {
    const bool forward = phase_ == Phase::forward;
    const bool wide = how_.precision.storage_bytes == kFp32Bytes;
    if (!forward && wide && whose == AttentionKernel::memory_efficient) sum_gradients();
    const std::int64_t products =
        forward ? sizes_.features + sizes_.values : 3 * sizes_.features + 2 * sizes_.values;
    Kernel kernel = memory_kernel(KernelKind::gemm, phase_, "attention", {heads(), {}}, 0, read, written);
    const Size computed = heads() * visible_scores(keys_, sizes_);
    kernel.math = how_.precision.math;
    kernel.macs = scores() * products;
    kernel.flops = computed * (2 * products + kSoftmaxFlops);
    kernel.shape = AttentionShape{.heads = heads(),
                                  .queries = fixed_size(sizes_.queries),
                                  .keys = fixed_size(sizes_.keys),
                                  .features = sizes_.features,
                                  .values = sizes_.values,
                                  .causal = keys_.causal,
                                  .window = keys_.window < sizes_.keys ? keys_.window : 0,
                                  .queries_per_key = keys_.heads / kv_heads(),
                                  .drops = keys_.drops,
                                  .kernel = whose};
    out_.push_back(std::move(kernel));
  }

  // C[m x n] = A * B over k for every head.
  void product(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b) {
    Kernel kernel;
    kernel.kind = KernelKind::gemm;
    kernel.phase = phase_;
    kernel.op = "batched_matmul";
    kernel.math = how_.precision.math;
    kernel.macs = heads() * checked_multiply(checked_multiply(m, n), k);
    kernel.flops = kernel.macs * 2;
    kernel.read_bytes = bytes(heads() * checked_multiply(m, k) + heads() * checked_multiply(k, n));
    kernel.written_bytes = bytes(heads() * checked_multiply(m, n));
    kernel.scratch_bytes = bytes(scores());
    kernel.shape = GemmShape{.m = fixed_size(m),
                             .n = fixed_size(n),
                             .k = fixed_size(k),
                             .batch = heads(),
                             .transpose_a = transpose_a,
                             .transpose_b = transpose_b};
    out_.push_back(std::move(kernel));
  }
  // One pass over scores, which reads and writes so many bytes for each.
  void over_scores(std::string_view op, std::int64_t read, std::int64_t written) {
    out_.push_back(memory_kernel(KernelKind::elementwise, phase_, op, {scores(), {}}, 1, scores() * read,
                                 scores() * written));
    out_.back().scratch_bytes = scores() * written;
  }
  void softmax(std::int64_t flops, std::int64_t read, std::int64_t written) {
    Kernel kernel = memory_kernel(KernelKind::softmax, phase_, "softmax", {scores(), {}}, flops,
                                  scores() * read, scores() * written);
    kernel.shape = position_matrix(score_shape());
    kernel.scratch_bytes = scores() * read;
    out_.push_back(std::move(kernel));
  }

  // torch.matmul copies inputs of which heads are not contiguous.
  void copy_rows(const Size& rows) {
    if (!keys_.strided) copy("copy", KernelKind::transpose, rows, rows);
  }
  void scale() {
    if (!keys_.strided) over_scores("scale", how_.precision.storage_bytes, how_.precision.storage_bytes);
  }

  // Softmax in fp32 is eager code's own.
  void composite_forward() {
    const std::int64_t stored = how_.precision.storage_bytes;
    assemble_keys();
    copy_rows(sizes_.q(keys_));
    if (!keys_.strided) copy_heads("copy", keys_.kv_heads, keys_.heads);
    product(sizes_.keys, sizes_.queries, sizes_.features, true, false);
    scale();
    if (keys_.bias != ScoreBias::none) over_scores("add", 2 * stored, stored);
    if (!keys_.strided && (keys_.causal || keys_.window > 0)) over_scores("attention_mask", stored, stored);
    if (keys_.sinks) over_scores("concat", stored, stored);
    if (converts()) over_scores("cast", stored, wide());
    softmax(kSoftmaxFlops, converts() ? wide() : stored, wide());
    if (wide() != stored) over_scores("cast", wide(), stored);
    if (keys_.drops) over_scores("dropout", stored, stored + 1);
    product(sizes_.values, sizes_.queries, sizes_.keys, false, false);
    copy_rows(sizes_.output(keys_));
  }
  void composite_backward() {
    const std::int64_t stored = how_.precision.storage_bytes;
    copy_rows(sizes_.output(keys_));
    product(sizes_.values, sizes_.keys, sizes_.queries, false, true);  // of the values
    product(sizes_.keys, sizes_.queries, sizes_.values, true, false);  // of the probabilities
    if (keys_.drops) over_scores("dropout", stored + 1, stored);
    if (wide() != stored) over_scores("cast", stored, wide());
    softmax(kSoftmaxBackwardFlops, 2 * wide(), converts() ? wide() : stored);
    if (converts()) over_scores("cast", wide(), stored);
    if (keys_.sinks) over_scores("concat", stored, stored);
    if (keys_.bias == ScoreBias::relative) over_scores("sum", stored, 0);
    scale();
    product(sizes_.features, sizes_.queries, sizes_.keys, false, false);  // of the queries
    product(sizes_.features, sizes_.keys, sizes_.queries, false, true);   // of the keys
    if (keys_.kv_heads != keys_.heads) sum_heads();
    // Gradients go back to the layout of products: of all three where one product made them, of values alone
    // where rotary positions have done so for queries and keys.
    const bool joined = site_.inputs.size() == 1;
    if (joined) copy_rows(sizes_.q(keys_));
    copy_rows(sizes_.v(keys_.kv_heads));
  }

  const AttentionKeys& keys_;
  AttentionSizes sizes_;
  const LayerContext& site_;
  const LoweringContext& how_;
  Phase phase_;
  std::vector<Kernel>& out_;
};

class Attention : public Layer {
 public:
  explicit Attention(SpecMap& keys) : keys_(read_attention_keys(keys)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const AttentionSizes sizes = attention_sizes(keys_, inputs);
    return {sizes.rows, {sizes.queries, checked_multiply(keys_.heads, sizes.values)}};
  }
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape>) const override {
    std::vector<ParameterTensor> tensors;
    if (keys_.buckets > 0) tensors.push_back({"table", checked_multiply(keys_.buckets, keys_.heads)});
    if (keys_.sinks) tensors.push_back({"sinks", keys_.heads});
    return tensors;
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    Kernels(keys_, site, how, Phase::forward, kernels).forward();
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient) Kernels(keys_, site, how, Phase::backward_data, kernels).backward();
  }

  // One kernel: inputs, output and the sum of each query's exponentials, copies of keys and values where
  // heads of queries have their own. Apart: contiguous copies of the inputs, probabilities in both types, the
  // dropout's mask and output.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    if (!site.input_gradient) return {};
    const AttentionSizes sizes = attention_sizes(keys_, site.inputs);
    const std::int64_t stored = how.precision.storage_bytes;
    const Size repeated = (sizes.k(keys_.heads) + sizes.v(keys_.heads)) * stored;
    if (kernel_of(keys_, how)) {
      const bool copies = keys_.kv_heads != keys_.heads && how.lowering.repeat_keys;
      const Size assembled = keys_.shared == 0 ? Size{} : sizes.k(keys_.kv_heads) * stored;
      return {.inputs = true,
              .output = true,
              .extra_bytes = sizes.of(keys_.heads, sizes.queries, kFp32Bytes) + assembled +
                             (copies ? repeated : Size{})};
    }
    const bool eager = how.lowering.attention == AttentionKernels::eager;
    const std::int64_t probabilities = eager && stored != kFp32Bytes ? kFp32Bytes + stored : stored;
    const std::int64_t dropped = keys_.drops ? stored + 1 : 0;
    const Size scores =
        sizes.rows * checked_multiply(keys_.heads, checked_multiply(sizes.queries, sizes.keys));
    const Size kept = scores * (probabilities + dropped);
    if (keys_.strided) return {.inputs = true, .extra_bytes = kept};
    return {.extra_bytes = sizes.q(keys_) * stored + repeated + kept};
  }

 private:
  AttentionKeys keys_;
};

}  // namespace

std::unique_ptr<Layer> make_attention(SpecMap& keys) { return std::make_unique<Attention>(keys); }

}  // namespace tbdsim
