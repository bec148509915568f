// Scaled dot product attention, recorded as one operator: (query, key, value, mask, dropout, causal, scale),
// and its backward pass (gradient, query, key, value, output, mask, dropout, causal, scale, gradient of the
// mask).
//
//   fused      one kernel that keeps no scores (FlashAttention, memory-efficient attention), and in the
//              backward pass one that computes them again: 5 products for the forward pass's 2. Blocks of
//              scores that a causal mask hides are not computed: about half
//   composite  products, scaling, softmax and dropout as kernels of their own; the probabilities are kept
#include <algorithm>

#include "graphs/captured/operators/operators.h"

namespace tbdsim {
namespace {

struct Attention {
  const CapturedTensor& q;
  const CapturedTensor& k;
  const CapturedTensor& v;
  const CapturedTensor* mask = nullptr;
  bool drops = false;
  bool causal = false;
  Size heads;          // of all samples
  Size queries, keys;  // of a head
  Size features, values;
  Size scores;  // of all heads
};

Attention attention_of(const OperatorSite& site, std::size_t first, std::size_t mask) {
  const CapturedTensor& q = site.tensor(first);
  const CapturedTensor& k = site.tensor(first + 1);
  const CapturedTensor& v = site.tensor(first + 2);
  const std::size_t rank = q.shape.size();
  if (rank < 2 || k.shape.size() != rank || v.shape.size() != rank)
    site.fail(first, "queries, keys and values of one rank, 2 or more");
  Attention a{.q = q,
              .k = k,
              .v = v,
              .mask = site.find_tensor(mask),
              .drops = site.number(mask + 1, 0) > 0,
              .causal = site.flag(mask + 2),
              .heads = fixed_size(1),
              .queries = q.shape[rank - 2],
              .keys = k.shape[rank - 2],
              .features = q.shape[rank - 1],
              .values = v.shape[rank - 1],
              .scores = {}};
  for (std::size_t i = 0; i + 2 < rank; ++i) a.heads = site.product(a.heads, q.shape[i]);
  a.scores = site.product(site.product(a.heads, a.queries), a.keys);
  return a;
}

// Returns the library whose kernel keeps no scores. FlashAttention and cuDNN have no fp32; PyTorch gives a
// mask that is a tensor to memory-efficient attention.
AttentionKernel kernel_of(const Attention& attention, MathType math, AttentionKernels asked) {
  const bool wide = math == MathType::fp32 || math == MathType::tf32;
  if (wide || asked == AttentionKernels::memory_efficient) return AttentionKernel::memory_efficient;
  if (asked == AttentionKernels::flash) return AttentionKernel::flash2;
  if (asked == AttentionKernels::flash3) return AttentionKernel::flash3;
  if (asked == AttentionKernels::cudnn) return AttentionKernel::cudnn;
  return attention.mask != nullptr ? AttentionKernel::memory_efficient : AttentionKernel::by_gpu;
}

// Heads of queries that share a head of keys and values; 1 where the tensors have no such dimension.
std::int64_t queries_per_key(const Attention& a) {
  const std::size_t rank = a.q.shape.size();
  if (rank < 3) return 1;
  const Size& heads = a.q.shape[rank - 3];
  const Size& shared = a.k.shape[rank - 3];
  if (heads.per_sample != 0 || shared.per_sample != 0 || shared.fixed < 1) return 1;
  return std::max<std::int64_t>(1, heads.fixed / shared.fixed);
}

class Kernels {
 public:
  Kernels(OperatorSite& site, const Attention& attention)
      : site_(site), a_(attention), bytes_(bytes_of(attention.q.dtype)) {}

  // The sums of gradients times results, which the memory-efficient kernel has made before it in fp32
  // (aten/native/transformers/cuda/attention_backward.cu).
  void sum_gradients(const CapturedTensor& output) {
    const AttentionKernel kernel =
        kernel_of(a_, math_of(a_.q.dtype, site_.how.precision.math), site_.how.lowering.attention);
    if (kernel != AttentionKernel::memory_efficient || output.dtype != Dtype::f32) return;
    const Size bytes = output.elements * bytes_;
    const Size sums = site_.product(a_.heads, a_.queries) * kFp32Bytes;
    site_.emit(bytes_kernel(KernelKind::elementwise, site_.phase, "mul", output.elements, 1, bytes * 2, bytes,
                            bytes_));
    site_.emit(
        bytes_kernel(KernelKind::reduction, site_.phase, "sum", output.elements, 1, bytes, sums, bytes_));
  }

  // One kernel that reads `read` and writes `written` bytes.
  void fused(const Size& read, const Size& written) {
    const bool forward = site_.phase == Phase::forward;
    const std::int64_t features = site_.fixed(a_.features), values = site_.fixed(a_.values);
    Kernel kernel = bytes_kernel(KernelKind::gemm, site_.phase, "attention", a_.scores, kSoftmaxFlops, read,
                                 written, bytes_);
    kernel.math = math_of(a_.q.dtype, site_.how.precision.math);
    kernel.macs = a_.scores * (forward ? features + values : 3 * features + 2 * values);
    kernel.flops += a_.causal ? kernel.macs : kernel.macs * 2;
    kernel.shape = AttentionShape{.heads = a_.heads,
                                  .queries = a_.queries,
                                  .keys = a_.keys,
                                  .features = features,
                                  .values = values,
                                  .causal = a_.causal,
                                  .queries_per_key = queries_per_key(a_),
                                  .drops = a_.drops,
                                  .kernel = kernel_of(a_, kernel.math, site_.how.lowering.attention)};
    site_.emit(std::move(kernel));
  }

  // C[m x n] = A * B over k, for each head.
  void product(const Size& m, const Size& n, const Size& k, bool transpose_a, bool transpose_b) {
    Kernel kernel;
    kernel.kind = KernelKind::gemm;
    kernel.phase = site_.phase;
    kernel.op = "matmul";
    kernel.math = math_of(a_.q.dtype, site_.how.precision.math);
    kernel.macs = site_.product(site_.product(site_.product(a_.heads, m), n), k);
    kernel.flops = kernel.macs * 2;
    kernel.element_bytes = bytes_;
    const auto matrix = [&](const Size& rows, const Size& columns) {
      return site_.product(site_.product(a_.heads, rows), columns) * bytes_;
    };
    kernel.read_bytes = matrix(m, k) + matrix(k, n);
    kernel.written_bytes = matrix(m, n);
    kernel.shape = GemmShape{
        .m = m, .n = n, .k = k, .batch = a_.heads, .transpose_a = transpose_a, .transpose_b = transpose_b};
    site_.emit(std::move(kernel));
  }

  void over_scores(std::string_view op, std::int64_t reads, std::int64_t writes, const Size& further = {}) {
    const Size scores = a_.scores * bytes_;
    site_.emit(bytes_kernel(KernelKind::elementwise, site_.phase, op, a_.scores, 1, scores * reads + further,
                            scores * writes, bytes_));
  }

  void softmax(std::int64_t flops, std::int64_t reads) {
    const Size scores = a_.scores * bytes_;
    Kernel kernel = bytes_kernel(KernelKind::softmax, site_.phase, "softmax", a_.scores, flops,
                                 scores * reads, scores, bytes_);
    if (a_.keys.per_sample == 0 && a_.keys.fixed > 0)
      kernel.shape = MatrixShape{site_.product(a_.heads, a_.queries), a_.keys.fixed};
    site_.emit(std::move(kernel));
  }

  // The scores' gradient, summed over what the mask is the same for.
  void mask_gradient(const CapturedTensor& gradient) {
    site_.emit(bytes_kernel(KernelKind::reduction, site_.phase, "sum", a_.scores, 1, a_.scores * bytes_,
                            bytes_of(gradient), bytes_));
  }

  // A product of stacked matrices needs heads one behind another; others are copied.
  void contiguous(const CapturedTensor& tensor) {
    const std::size_t rank = tensor.shape.size();
    if (rank < 4) return;
    const Size& outer = tensor.strides[rank - 4];
    const Size& inner = tensor.strides[rank - 3];
    const Size& heads = tensor.shape[rank - 3];
    if (heads.per_sample == 0 && inner.per_sample == 0 && outer == inner * heads.fixed) return;
    site_.emit(bytes_kernel(KernelKind::transpose, site_.phase, "copy", tensor.elements, 0, bytes_of(tensor),
                            bytes_of(tensor), bytes_));
  }

 private:
  OperatorSite& site_;
  const Attention& a_;
  std::int64_t bytes_;
};

constexpr std::int64_t kSoftmaxBackward = 4;  // operations on each element

bool is_composite(const OperatorSite& site) {
  return site.how.lowering.attention == AttentionKernels::math ||
         site.how.lowering.attention == AttentionKernels::eager;
}

}  // namespace

void lower_attention(OperatorSite& site) {
  const Attention a = attention_of(site, 0, 3);
  const CapturedTensor& output = site.output(0);
  Kernels kernels(site, a);
  const Size mask = a.mask == nullptr ? Size{} : bytes_of(*a.mask);
  if (!is_composite(site)) {
    kernels.fused(bytes_of(a.q) + bytes_of(a.k) + bytes_of(a.v) + mask, bytes_of(output));
    return;
  }
  const std::int64_t bytes = bytes_of(a.q.dtype);
  for (const CapturedTensor* tensor : {&a.q, &a.k, &a.v}) kernels.contiguous(*tensor);
  kernels.product(a.keys, a.queries, a.features, true, false);
  kernels.over_scores("mul", 1, 1);
  if (a.mask != nullptr) kernels.over_scores("add", 1, 1, mask);
  kernels.softmax(kSoftmaxFlops, 1);
  if (a.drops) kernels.over_scores("dropout", 1, 1, a.scores);
  kernels.product(a.values, a.queries, a.keys, false, false);
  // The probabilities, and what dropout makes of them with its mask.
  site.keep(output.storage, a.scores * bytes + (a.drops ? a.scores * (bytes + 1) : Size{}));
}

void lower_attention_backward(OperatorSite& site) {
  const Attention a = attention_of(site, 1, 5);
  const CapturedTensor& dy = site.tensor(0);
  const CapturedTensor& output = site.tensor(4);
  Kernels kernels(site, a);
  if (!is_composite(site)) {
    const Size inputs = bytes_of(a.q) + bytes_of(a.k) + bytes_of(a.v);
    const Size mask = a.mask == nullptr ? Size{} : bytes_of(*a.mask);
    const CapturedTensor* of_mask = site.find_output(3);
    kernels.sum_gradients(output);
    kernels.fused(inputs + bytes_of(output) + bytes_of(dy) + mask,
                  inputs + (of_mask == nullptr ? Size{} : bytes_of(*of_mask)));
    return;
  }
  kernels.product(a.values, a.keys, a.queries, false, true);  // of the values
  kernels.product(a.keys, a.queries, a.values, true, false);  // of the probabilities
  if (a.drops) kernels.over_scores("dropout", 1, 1, a.scores);
  kernels.softmax(kSoftmaxBackward, 2);
  if (site.find_output(3) != nullptr) kernels.mask_gradient(*site.find_output(3));
  kernels.over_scores("mul", 1, 1);
  kernels.product(a.features, a.queries, a.keys, false, false);  // of the queries
  kernels.product(a.features, a.keys, a.queries, false, true);   // of the keys
  site.release(output.storage);
}

}  // namespace tbdsim
