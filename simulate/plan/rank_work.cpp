#include "simulate/plan/rank_work.h"

#include <algorithm>

#include "graphs/layer.h"
#include "graphs/layers/linear_product.h"

namespace tbdsim {
namespace {

constexpr double kHalf = 2;   // bytes of a bf16 or fp16 number
constexpr double kStatistic = 4;

std::size_t index_of(Recomputation r) { return static_cast<std::size_t>(r); }

// Bytes that a kernel reads and writes for each element.
struct Traffic {
  double reads, writes;
};

class Builder {
 public:
  Builder(const DecoderShape& shape, const Share& share, std::int64_t sequence, const Stack& stack,
          const WorkPrecision& precision)
      : s_(shape), share_(share), stack_(stack), precision_(precision), sequence_(sequence) {
    rows_ = share.micro_batch * sequence / share.cp;
    own_rows_ = share.sequence_parallel ? rows_ / share.tp : rows_;
  }

  RankWork work;

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t own_rows() const { return own_rows_; }  // of norms and residuals
  [[nodiscard]] static double matrix(std::int64_t rows, std::int64_t columns, double bytes = kHalf) {
    return static_cast<double>(rows) * static_cast<double>(columns) * bytes;
  }

  void keep(double bytes, Kept as) {
    work.kept[index_of(Recomputation::none)] += Bytes(bytes);
    if (as != Kept::scores) work.kept[index_of(Recomputation::selective)] += Bytes(bytes);
  }
  void keep_of_operators(double bytes) { work.kept[index_of(Recomputation::operators)] += Bytes(bytes); }
  // The block's input, which every recomputation starts from.
  void keep_input(double bytes) {
    for (Bytes& kept : work.kept) kept += Bytes(bytes);
  }

  void forward(Kernel kernel, Kept as) {
    work.forward.push_back(std::move(kernel));
    work.again.push_back(as);
  }

  // y = W x of `count` matrices of experts, or of one.
  void product(std::int64_t rows, std::int64_t in, std::int64_t out, MathType math, Kept as = Kept::product,
               std::int64_t count = 1, bool input_gradient = true) {
    const Precision precision{
        .name = {}, .math = math, .storage_bytes = math == MathType::fp8 ? 1 : 2, .master_weights = false,
        .loss_scaling = false, .description = {}};
    for (const Phase phase : {Phase::forward, Phase::backward_data, Phase::backward_weights}) {
      if (phase == Phase::backward_data && !input_gradient) continue;
      Kernel kernel = linear_product(phase, fixed_size(rows), in, out, precision);
      if (count > 1) {
        auto& shape = std::get<GemmShape>(kernel.shape);
        shape.batch = fixed_size(count);
        shape.grouped = true;
        for (Size* size : {&kernel.flops, &kernel.macs, &kernel.read_bytes, &kernel.written_bytes})
          *size = *size * count;
      }
      if (phase == Phase::forward) forward(std::move(kernel), as);
      else work.backward.push_back(std::move(kernel));
    }
    // Values and their transposes in fp8, made of what is in 16 bits: inputs forward, gradients backward.
    if (math == MathType::fp8) {
      pointwise_forward(KernelKind::elementwise, "cast", rows * count, in, {2, 2});
      pointwise_backward(KernelKind::elementwise, "cast", rows * count, out, {2, 2});
    }
    if (as == Kept::product) keep_of_operators(matrix(rows * count, out));
  }

  void parameters(std::int64_t in, std::int64_t out, bool expert = false, std::int64_t count = 1) {
    const double number = static_cast<double>(in + (s_.bias ? 1 : 0)) * static_cast<double>(out) *
                          static_cast<double>(count);
    (expert ? work.expert_parameters : work.parameters) += number;
  }

  void norm(std::int64_t columns) {
    const bool eager = !stack_.fused_pointwise && s_.rms_norm;
    // Eager: float, square, mean, scale, cast, weight.
    if (eager) {
      for (const Traffic t : {Traffic{2, 4}, {4, 4}, {4, 0}, {4, 4}, {4, 2}, {2, 2}})
        pointwise_forward(KernelKind::elementwise, "rms_norm", own_rows_, columns, t);
      for (const Traffic t : {Traffic{2, 2}, {4, 0}, {2, 4}, {8, 4}, {8, 0}, {8, 4}, {8, 4}, {4, 2}, {4, 2}})
        pointwise_backward(KernelKind::elementwise, "rms_norm", own_rows_, columns, t);
      keep(matrix(own_rows_, columns, 4), Kept::pointwise);  // in fp32
    } else {
      pointwise_forward(KernelKind::layer_norm, "norm", own_rows_, columns, {2, 2});
      pointwise_backward(KernelKind::layer_norm, "norm", own_rows_, columns, {4, 2});
    }
    keep(matrix(own_rows_, columns), Kept::pointwise);  // its output, the products' input
    work.parameters += static_cast<double>(columns) * (s_.rms_norm ? 1 : 2);
  }

  // The sum of a branch and what it branched from, with bias and dropout.
  void residual() {
    const bool drops = s_.dropout > 0;
    pointwise_forward(KernelKind::elementwise, "residual", own_rows_, s_.hidden,
                      {4, drops ? 3.0 : 2.0});
    if (drops) {
      pointwise_backward(KernelKind::elementwise, "dropout", own_rows_, s_.hidden, {3, 2});
      keep(matrix(own_rows_, s_.hidden, 1), Kept::pointwise);
    }
    if (s_.bias) pointwise_backward(KernelKind::reduction, "bias", own_rows_, s_.hidden, {2, 0});
    // Gradients of both paths are added.
    pointwise_backward(KernelKind::elementwise, "add", own_rows_, s_.hidden, {4, 2});
  }

  void activation(std::int64_t rows, std::int64_t inner) {
    const double up = s_.gated ? 4 : 2;
    if (s_.gated && !stack_.fused_pointwise) {
      pointwise_forward(KernelKind::elementwise, "silu", rows, inner, {2, 2});
      pointwise_forward(KernelKind::elementwise, "mul", rows, inner, {4, 2});
      for (int i = 0; i < 3; ++i) pointwise_backward(KernelKind::elementwise, "mul", rows, inner, {4, 2});
      keep(matrix(rows, inner), Kept::pointwise);
    } else {
      pointwise_forward(KernelKind::elementwise, "activation", rows, inner, {up, 2});
      pointwise_backward(KernelKind::elementwise, "activation", rows, inner, {up + 2, up});
      if (s_.bias) pointwise_backward(KernelKind::reduction, "bias", rows, inner, {up, 0});
    }
    keep(matrix(rows, inner, up), Kept::pointwise);  // the activation's input
    keep(matrix(rows, inner), Kept::pointwise);      // its output
    work.largest = std::max(work.largest, Bytes(matrix(rows, inner, up + 2)));
  }

  void pointwise_forward(KernelKind kind, std::string_view op, std::int64_t rows, std::int64_t columns,
                         Traffic t, Kept as = Kept::pointwise) {
    forward(kernel_of(kind, Phase::forward, op, rows, columns, t), as);
  }
  void pointwise_backward(KernelKind kind, std::string_view op, std::int64_t rows, std::int64_t columns,
                          Traffic t) {
    work.backward.push_back(kernel_of(kind, Phase::backward_data, op, rows, columns, t));
  }

  void attention_kernels() {
    const std::int64_t heads = s_.heads / share_.tp;
    const std::int64_t groups = std::max<std::int64_t>(1, s_.kv_heads / share_.tp);
    if (stack_.fused_attention) return fused_attention(heads, groups);
    const std::int64_t batch = share_.micro_batch * heads;
    const std::int64_t queries = sequence_ / share_.cp;
    bmm(Phase::forward, batch, sequence_, queries, s_.head_size);
    softmax(Phase::forward, batch * queries, {2, 2});
    if (s_.dropout > 0)
      pointwise_forward(KernelKind::elementwise, "dropout", batch * queries, sequence_, {2, 3}, Kept::scores);
    bmm(Phase::forward, batch, s_.value_size, queries, sequence_);
    for (const std::int64_t k : {s_.value_size, s_.head_size}) {
      bmm(Phase::backward_data, batch, sequence_, queries, k);
      bmm(Phase::backward_data, batch, k, sequence_, queries);
    }
    if (s_.dropout > 0)
      pointwise_backward(KernelKind::elementwise, "dropout", batch * queries, sequence_, {3, 2});
    softmax(Phase::backward_data, batch * queries, {4, 2});
    const double scores = matrix(batch * queries, sequence_, 1);
    keep(scores * (s_.dropout > 0 ? 5 : 2), Kept::scores);
    keep(matrix(rows_, heads * s_.value_size), Kept::attention);
    work.largest = std::max(work.largest, Bytes(scores * 4));
  }

  // Collectives before and after a pair of a column-wise and a row-wise product, forward and backward.
  void tensor_messages() {
    if (share_.tp == 1) return;
    const Bytes all(matrix(rows_, s_.hidden));
    if (!share_.sequence_parallel) {
      work.forward_messages.push_back({Collective::all_reduce, AcrossRanks::tensor, all});
      work.backward_messages.push_back({Collective::all_reduce, AcrossRanks::tensor, all});
      return;
    }
    for (auto* messages : {&work.forward_messages, &work.backward_messages}) {
      messages->push_back({Collective::all_gather, AcrossRanks::tensor, all});
      messages->push_back({Collective::reduce_scatter, AcrossRanks::tensor, all});
    }
    // The input is gathered again for the gradients of weights.
    work.backward_messages.push_back({Collective::all_gather, AcrossRanks::tensor, all});
  }

  void exchange_tokens(double bytes) {
    if (share_.ep == 1) return;
    for (auto* messages : {&work.forward_messages, &work.backward_messages}) {
      for (int i = 0; i < 2; ++i)
        messages->push_back({Collective::all_to_all, AcrossRanks::expert, Bytes(bytes)});
    }
  }

 private:
  Kernel kernel_of(KernelKind kind, Phase phase, std::string_view op, std::int64_t rows, std::int64_t columns,
                   Traffic t) const {
    const Shape shape{fixed_size(rows), {columns}};
    const auto bytes = [&](double each) {
      return fixed_size(static_cast<std::int64_t>(matrix(rows, columns, each)));
    };
    Kernel kernel = memory_kernel(kind, phase, op, shape, 4, bytes(t.reads), bytes(t.writes));
    kernel.element_bytes = 2;
    if (kind == KernelKind::layer_norm || kind == KernelKind::softmax)
      kernel.shape = MatrixShape{fixed_size(rows), columns};
    return kernel;
  }

  void softmax(Phase phase, std::int64_t rows, Traffic t) {
    Kernel kernel = kernel_of(KernelKind::softmax, phase, "softmax", rows, sequence_, t);
    if (phase == Phase::forward) forward(std::move(kernel), Kept::scores);
    else work.backward.push_back(std::move(kernel));
  }

  void bmm(Phase phase, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
    Kernel kernel;
    kernel.kind = KernelKind::gemm;
    kernel.phase = phase;
    kernel.op = "batched_matmul";
    kernel.math = precision_.attention;
    kernel.element_bytes = 2;
    kernel.macs = fixed_size(batch * m * n) * k;
    kernel.flops = kernel.macs * 2;
    kernel.read_bytes = fixed_size(batch * (m + n) * k * 2);
    kernel.written_bytes = fixed_size(batch * m * n * 2);
    kernel.shape = GemmShape{.m = fixed_size(m),
                             .n = fixed_size(n),
                             .k = fixed_size(k),
                             .batch = fixed_size(batch),
                             .transpose_a = true};
    if (phase == Phase::forward) forward(std::move(kernel), Kept::scores);
    else work.backward.push_back(std::move(kernel));
  }

  // With several context-parallel ranks as many blocks of length / cp as each of them computes: half of all,
  // where zig-zag halves what a causal mask leaves.
  void fused_attention(std::int64_t heads, std::int64_t groups) {
    const std::int64_t length = sequence_ / share_.cp;
    const bool ring = share_.cp > 1;
    const std::int64_t blocks = ring ? (s_.causal ? share_.cp / 2 : share_.cp) : 1;
    const double queries = matrix(rows_, heads * s_.head_size);
    const double context = matrix(rows_, heads * s_.value_size);
    const double keys = matrix(rows_, groups * (s_.head_size + s_.value_size)) * static_cast<double>(share_.cp);
    for (const Phase phase : {Phase::forward, Phase::backward_data}) {
      const bool first = phase == Phase::forward;
      Kernel kernel;
      kernel.kind = KernelKind::gemm;
      kernel.phase = phase;
      kernel.op = "attention";
      kernel.math = precision_.attention;
      kernel.element_bytes = 2;
      const std::int64_t scores = share_.micro_batch * heads * blocks * length;
      const std::int64_t each = first ? s_.head_size + s_.value_size : 3 * s_.head_size + 2 * s_.value_size;
      kernel.macs = fixed_size(scores * length) * each;
      kernel.flops = s_.causal && !ring ? kernel.macs : kernel.macs * 2;
      const double read = first ? queries + keys : queries + keys + 2 * context;
      const double written = first ? context : queries + keys;
      kernel.read_bytes = fixed_size(static_cast<std::int64_t>(read));
      kernel.written_bytes = fixed_size(static_cast<std::int64_t>(written));
      kernel.shape = AttentionShape{.heads = fixed_size(share_.micro_batch * heads * blocks),
                                    .queries = fixed_size(length),
                                    .keys = fixed_size(length),
                                    .features = s_.head_size,
                                    .values = s_.value_size,
                                    .causal = s_.causal && !ring,
                                    .queries_per_key = heads / groups,
                                    .kernel = stack_.attention};
      if (first) forward(std::move(kernel), Kept::attention);
      else work.backward.push_back(std::move(kernel));
    }
    const double statistics = static_cast<double>(rows_ * heads) * kStatistic;
    keep(context + statistics, Kept::attention);
    keep_of_operators(context + statistics);
    if (ring) work.ring = Bytes(keys);
  }

  const DecoderShape& s_;
  const Share& share_;
  const Stack& stack_;
  const WorkPrecision& precision_;
  std::int64_t sequence_;
  std::int64_t rows_ = 0;      // tokens of the micro-batch on this rank
  std::int64_t own_rows_ = 0;  // of those divided over tensor-parallel ranks too
};

void attention_layer(Builder& b, const DecoderShape& s, const Share& share, const WorkPrecision& precision) {
  const std::int64_t rows = b.rows(), tp = share.tp;
  const std::int64_t heads = s.heads / tp;
  const std::int64_t groups = std::max<std::int64_t>(1, s.kv_heads / tp);
  const std::int64_t queries = heads * s.head_size;
  b.norm(s.hidden);
  if (s.kv_rank == 0) {
    const std::int64_t outputs = queries + groups * (s.head_size + s.value_size);
    b.product(rows, s.hidden, outputs, precision.math);
    b.parameters(s.hidden, outputs);
    b.keep(Builder::matrix(rows, outputs), Kept::attention);
  } else {
    const std::int64_t from = s.q_rank > 0 ? s.q_rank : s.hidden;
    if (s.q_rank > 0) {
      b.product(b.own_rows(), s.hidden, s.q_rank, precision.math);
      b.parameters(s.hidden, s.q_rank);
      b.norm(s.q_rank);
    }
    b.product(rows, from, queries, precision.math);
    b.parameters(from, queries);
    b.product(b.own_rows(), s.hidden, s.kv_rank + s.rotary_size, precision.math);
    b.parameters(s.hidden, s.kv_rank + s.rotary_size);
    b.norm(s.kv_rank);
    const std::int64_t keys = heads * (s.head_size - s.rotary_size + s.value_size);
    b.product(rows, s.kv_rank, keys, precision.math);
    b.parameters(s.kv_rank, keys);
    b.keep(Builder::matrix(rows, queries + heads * (s.head_size + s.value_size)), Kept::attention);
  }
  if (s.rotary) {
    const std::int64_t turned = queries + groups * s.head_size;
    b.pointwise_forward(KernelKind::elementwise, "rotary", rows, turned, {2, 2});
    b.pointwise_backward(KernelKind::elementwise, "rotary", rows, turned, {2, 2});
  }
  b.attention_kernels();
  b.product(rows, heads * s.value_size, s.hidden, precision.math, Kept::half);
  b.parameters(heads * s.value_size, s.hidden);
  b.tensor_messages();
  b.residual();
}

void feed_forward(Builder& b, const DecoderShape& s, std::int64_t rows, std::int64_t inner, MathType math,
                  std::int64_t experts = 1) {
  const std::int64_t up = s.gated ? 2 * inner : inner;
  const bool expert = experts > 1;
  b.product(rows, s.hidden, up, math, Kept::product, experts);
  b.parameters(s.hidden, up, expert, experts);
  b.activation(rows * experts, inner);
  b.product(rows, inner, s.hidden, math, Kept::product, experts);
  b.parameters(inner, s.hidden, expert, experts);
}

// Experts are whole on a rank; its tokens are those that sequence parallelism leaves it.
void expert_layer(Builder& b, const DecoderShape& s, const Share& share, const WorkPrecision& precision) {
  const std::int64_t tokens = std::max<std::int64_t>(1, b.rows() / share.tp);
  const std::int64_t routed = tokens * s.experts_per_token;
  const std::int64_t here = s.experts / share.ep;
  b.norm(s.hidden);
  b.product(tokens, s.hidden, s.experts, precision.attention, Kept::half);
  b.work.parameters += static_cast<double>(s.hidden * s.experts);
  // Softmax, the best of each token, their counts and places.
  for (int i = 0; i < 4; ++i)
    b.pointwise_forward(KernelKind::elementwise, "route", tokens, s.experts, {4, 4});
  for (int i = 0; i < 2; ++i)
    b.pointwise_backward(KernelKind::elementwise, "route", tokens, s.experts, {4, 4});
  for (int i = 0; i < 4; ++i) {  // sorted by expert, and by place of the expert; and back
    b.pointwise_forward(KernelKind::gather, "permute", routed, s.hidden, {2, 2});
    b.pointwise_backward(KernelKind::gather, "permute", routed, s.hidden, {2, 2});
  }
  b.keep(Builder::matrix(routed, s.hidden) * 2, Kept::pointwise);
  const std::int64_t of_each = std::max<std::int64_t>(1, routed / here);
  feed_forward(b, s, of_each, s.expert_ffn, precision.math, here);
  b.exchange_tokens(Builder::matrix(routed, s.hidden));
  if (s.shared_ffn > 0) feed_forward(b, s, b.rows(), s.shared_ffn / share.tp, precision.math);
  b.tensor_messages();
  b.residual();
}

}  // namespace

Share share_of(const ParallelLayout& l) {
  return {l.tp, l.cp, l.ep, l.sequence_parallel, l.micro_batch};
}

RankWork block_work(const DecoderShape& shape, const Share& share, std::int64_t sequence, bool experts,
                    const Stack& stack, const WorkPrecision& precision) {
  Builder b(shape, share, sequence, stack, precision);
  b.keep_input(Builder::matrix(b.own_rows(), shape.hidden));
  attention_layer(b, shape, share, precision);
  b.keep(Builder::matrix(b.own_rows(), shape.hidden), Kept::pointwise);  // the second norm's input
  if (experts) {
    expert_layer(b, shape, share, precision);
  } else {
    b.norm(shape.hidden);
    feed_forward(b, shape, b.rows(), shape.ffn / share.tp, precision.math);
    b.tensor_messages();
    b.residual();
  }
  return std::move(b.work);
}

RankWork embedding_work(const DecoderShape& shape, const Share& share, std::int64_t sequence,
                        const Stack& stack) {
  const WorkPrecision precision;
  Builder b(shape, share, sequence, stack, precision);
  b.pointwise_forward(KernelKind::gather, "embedding", b.rows(), shape.hidden, {2, 2});
  b.pointwise_backward(KernelKind::gather, "embedding", b.rows(), shape.hidden, {2, 4});
  if (shape.dropout > 0) {
    b.pointwise_forward(KernelKind::elementwise, "dropout", b.own_rows(), shape.hidden, {2, 3});
    b.keep_input(Builder::matrix(b.own_rows(), shape.hidden, 1));
  }
  if (share.tp > 1) {
    const Collective sum = share.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce;
    b.work.forward_messages.push_back(
        {sum, AcrossRanks::tensor, Bytes(Builder::matrix(b.rows(), shape.hidden))});
  }
  b.work.parameters = static_cast<double>(shape.vocabulary) / static_cast<double>(share.tp) *
                          static_cast<double>(shape.hidden) +
                      static_cast<double>(shape.positions * shape.hidden);
  return std::move(b.work);
}

RankWork head_work(const DecoderShape& shape, const Share& share, std::int64_t sequence, const Stack& stack,
                   const WorkPrecision& precision) {
  Builder b(shape, share, sequence, stack, precision);
  const std::int64_t words = (shape.vocabulary + share.tp - 1) / share.tp;
  b.norm(shape.hidden);
  b.product(b.rows(), shape.hidden, words, precision.attention);
  if (!shape.tied)
    b.work.parameters += static_cast<double>(words) * static_cast<double>(shape.hidden);
  // Megatron-LM's vocab_parallel_cross_entropy, as PyTorch's of scores in fp32: cast, maximum, difference,
  // exponential, sum, division; backward difference and cast.
  if (stack.fused_loss) {  // one pass for maximum and sum, one for the gradient
    b.pointwise_forward(KernelKind::elementwise, "cross_entropy", b.rows(), words, {2, 0});
    b.pointwise_backward(KernelKind::elementwise, "cross_entropy", b.rows(), words, {2, 2});
    b.work.largest = Bytes(Builder::matrix(b.rows(), words, 2 + 2));
  } else {
    for (const Traffic t : {Traffic{2, 4}, {4, 0}, {4, 4}, {4, 4}, {4, 0}, {4, 4}})
      b.pointwise_forward(KernelKind::elementwise, "cross_entropy", b.rows(), words, t);
    for (const Traffic t : {Traffic{4, 4}, {4, 2}})
      b.pointwise_backward(KernelKind::elementwise, "cross_entropy", b.rows(), words, t);
    b.work.largest = Bytes(Builder::matrix(b.rows(), words, 2 + 4 + 4));  // scores, probabilities, gradients
  }
  if (share.tp > 1) {
    const Bytes all(Builder::matrix(b.rows(), shape.hidden));
    const Collective sum = share.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce;
    if (share.sequence_parallel)
      b.work.forward_messages.push_back({Collective::all_gather, AcrossRanks::tensor, all});
    for (int i = 0; i < 3; ++i)  // maximum, the class's own score, sum
      b.work.forward_messages.push_back(
          {Collective::all_reduce, AcrossRanks::tensor, Bytes(static_cast<double>(b.rows()) * kStatistic)});
    b.work.backward_messages.push_back({sum, AcrossRanks::tensor, all});
  }
  b.work.kept = {};
  return std::move(b.work);
}

}  // namespace tbdsim
