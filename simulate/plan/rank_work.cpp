#include "simulate/plan/rank_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "simulate/plan/work_builder.h"

namespace tbdsim {
namespace {

// Heads of a rank, and what it makes of them.
struct Heads {
  std::int64_t heads, groups, queries;  // groups: of keys and values
};

Heads heads_of(const DecoderShape& s, const Share& share) {
  const std::int64_t heads = s.heads / share.tp;
  return {heads, std::max<std::int64_t>(1, s.kv_heads / share.tp), heads * s.head_size};
}

void projections(WorkBuilder& b, const DecoderShape& s, const Heads& h, const Adapters& adapters,
                 MathType math) {
  const std::int64_t rows = b.rows();
  const std::int64_t outputs = h.queries + h.groups * (s.head_size + s.value_size);
  if (b.joined()) {
    b.product(rows, s.hidden, outputs, math);
  } else {
    b.product(rows, s.hidden, h.queries, math);
    b.product(rows, s.hidden, h.groups * s.head_size, math, Kept::half);
    b.product(rows, s.hidden, h.groups * s.value_size, math);
  }
  b.parameters(s.hidden, outputs);
  b.adapter(adapters.attention, Sharding::columns, rows, s.hidden, outputs);
  b.keep(WorkBuilder::matrix(rows, outputs, b.attention_bytes()));
}

// Queries, keys and values by way of low-rank forms (DeepSeek-V2, 2024). The forms are kept, what is made of
// them may be computed again.
void low_rank_projections(WorkBuilder& b, const DecoderShape& s, const Heads& h, const Adapters& adapters,
                          MathType math) {
  constexpr RecomputeModules kUp{RecomputeModule::mla_up_proj};
  const std::int64_t rows = b.rows(), from = s.q_rank > 0 ? s.q_rank : s.hidden;
  if (s.q_rank > 0) {
    b.product(b.own_rows(), s.hidden, s.q_rank, math);
    b.parameters(s.hidden, s.q_rank);
    b.keep(WorkBuilder::matrix(b.own_rows(), s.q_rank));
    b.within(kUp);
    b.norm(s.q_rank);
  }
  b.within(kUp);
  b.product(rows, from, h.queries, math);
  b.parameters(from, h.queries);
  b.adapter(adapters.attention, Sharding::columns, rows, from, h.queries);
  b.within({});
  b.product(b.own_rows(), s.hidden, s.kv_rank + s.rotary_size, math);
  b.parameters(s.hidden, s.kv_rank + s.rotary_size);
  b.keep(WorkBuilder::matrix(b.own_rows(), s.kv_rank));
  b.within(kUp);
  b.norm(s.kv_rank);
  const std::int64_t keys = h.heads * (s.head_size - s.rotary_size + s.value_size);
  b.product(rows, s.kv_rank, keys, math);
  b.parameters(s.kv_rank, keys);
  b.adapter(adapters.attention, Sharding::columns, rows, s.kv_rank, keys);
  b.keep(WorkBuilder::matrix(rows, h.queries + h.heads * (s.head_size + s.value_size), b.attention_bytes()));
}

void attention_layer(WorkBuilder& b, const DecoderShape& s, const Share& share, const Adapters& adapters,
                     const WorkPrecision& precision) {
  const Heads h = heads_of(s, share);
  b.within({RecomputeModule::layernorm});
  b.norm(s.hidden, b.keeps_input(adapters.attention));
  b.within({});
  if (s.kv_rank == 0)
    projections(b, s, h, adapters, precision.math);
  else
    low_rank_projections(b, s, h, adapters, precision.math);
  if (s.rotary) {
    const std::int64_t turned = h.queries + h.groups * s.head_size;
    b.pointwise_forward(KernelKind::elementwise, "rotary", b.rows(), turned, {2, 2});
    b.pointwise_backward(KernelKind::elementwise, "rotary", b.rows(), turned, {2, 2});
  }
  b.within({});
  b.attention_kernels();
  const std::int64_t context = h.heads * s.value_size;
  b.product(b.rows(), context, s.hidden, precision.math, Kept::half);
  b.parameters(context, s.hidden);
  b.adapter(adapters.output, Sharding::rows, b.rows(), context, s.hidden);
  b.tensor_messages();
  b.residual();
}

// True if norm and activation of the feed-forward layer write its products' operands in fp8. An adapter's
// product reads 16 bits.
bool fuses_casts(const DecoderShape& s, const Adapters& adapters, const Stack& stack, MathType math) {
  const bool adapted = adapters.frozen() && (adapters.up || adapters.down);
  const bool kernels = stack.fuses_operators && stack.fused_pointwise && stack.joined_products;
  return kernels && math == MathType::fp8 && !adapted && !s.mixture();
}

// `experts_here`: those on this rank; 0: the layer is no expert. `fuses`: fuses_casts().
void feed_forward(WorkBuilder& b, const DecoderShape& s, const Adapters& adapters, std::int64_t rows,
                  std::int64_t inner, MathType math, std::int64_t experts_here = 0, bool fuses = false) {
  const std::int64_t up = s.gated ? 2 * inner : inner;
  const bool expert = experts_here > 0;
  const std::int64_t experts = std::max<std::int64_t>(1, experts_here);
  if (b.joined() || !s.gated) {
    b.product(rows, s.hidden, up, math, Kept::product, experts, {!fuses, !fuses});
  } else {
    b.product(rows, s.hidden, inner, math, Kept::product, experts);
    b.product(rows, s.hidden, inner, math, Kept::half, experts);
  }
  b.parameters(s.hidden, up, expert, experts);
  b.adapter(adapters.up, Sharding::columns, rows, s.hidden, up, expert, experts);
  b.activation(rows * experts, inner, b.keeps_input(adapters.down), expert, fuses);
  b.product(rows, inner, s.hidden, math, Kept::product, experts, {!fuses, true});
  b.parameters(inner, s.hidden, expert, experts);
  b.adapter(adapters.down, Sharding::rows, rows, inner, s.hidden, expert, experts);
}

// The bias of the experts' second product times the router's probability, by PyTorch's operators in fp32, one
// expert after another (Megatron-LM@d98e8a64, core/transformer/moe/experts.py, TEGroupedMLP._apply_bias):
// outer product, sum, concatenation, cast; back two casts, products with the probability and with the bias,
// their sums over tokens and over features.
void expert_bias(WorkBuilder& b, std::int64_t rows, std::int64_t columns, std::int64_t experts) {
  constexpr BytesOfElement kForward[] = {{0, 4}, {6, 4}, {4, 4}, {4, 2}};
  constexpr BytesOfElement kBackward[] = {{2, 4}, {4, 2}, {4, 4}, {4, 0}, {4, 4}, {4, 0}};
  for (const BytesOfElement t : kForward)
    b.pointwise_forward(KernelKind::elementwise, "expert_bias", rows, columns, t);
  for (const BytesOfElement t : kBackward)
    b.pointwise_backward(KernelKind::elementwise, "expert_bias", rows, columns, t);
  b.work.forward_experts += 2 * static_cast<double>(experts - 1);
  b.work.backward_experts += 5 * static_cast<double>(experts - 1);
}

// Launches of Megatron-Core's router and dispatcher that are no kernels of this list, for they move next to
// nothing: auxiliary loss and its gradient, counts of tokens by expert and rank, their gathering and copies
// to the host (moe/router.py, moe/token_dispatcher.py).
constexpr double kRoutingForward = 28, kRoutingBackward = 16;

// A rank's tokens are those that sequence parallelism leaves it; ranks that share experts' matrices compute
// the tokens of all of them. The rank is the one whose experts get most: `Job::imbalance` times the mean, at
// most the tokens of all ranks.
void expert_layer(WorkBuilder& b, const DecoderShape& s, const Share& share, const Job& job,
                  const WorkPrecision& precision) {
  const std::int64_t tokens = std::max<std::int64_t>(1, b.rows() / share.tp);
  const std::int64_t routed = tokens * s.experts_per_token;
  const double fullest = std::min(job.imbalance, static_cast<double>(share.ep));
  const auto sent = static_cast<std::int64_t>(std::ceil(static_cast<double>(routed) * fullest));
  const std::int64_t received = sent * share.etp;
  const std::int64_t here = s.experts / share.ep;
  b.within({RecomputeModule::layernorm});
  b.norm(s.hidden, b.keeps_input(job.adapters.up));
  b.within({RecomputeModule::moe});
  b.work.routes_again = share.modules.has(RecomputeModule::moe);
  b.product(tokens, s.hidden, s.experts, precision.attention, Kept::half);
  b.work.parameters += static_cast<double>(s.hidden * s.experts);
  // Softmax, the best of each token, their counts and places.
  for (int i = 0; i < 4; ++i)
    b.pointwise_forward(KernelKind::elementwise, "route", tokens, s.experts, {4, 4});
  for (int i = 0; i < 2; ++i)
    b.pointwise_backward(KernelKind::elementwise, "route", tokens, s.experts, {4, 4});
  b.work.forward_routing += kRoutingForward;
  b.work.backward_routing += kRoutingBackward;
  // Copied for each expert and sorted, sorted by place of the expert; both back. Rows are long: plain copies.
  const double once = 2 / static_cast<double>(s.experts_per_token);
  const std::pair<std::int64_t, BytesOfElement> permutations[] = {
      {routed, {once, 2}}, {received, {2, 2}}, {received, {2, 2}}, {routed, {2, once}}};
  for (const auto& [rows, bytes] : permutations) {
    b.pointwise_forward(KernelKind::elementwise, "permute", rows, s.hidden, bytes);
    b.pointwise_backward(KernelKind::elementwise, "permute", rows, s.hidden, bytes);
  }
  // Sorted tokens, the experts' input. Their outputs are not kept: probabilities are multiplied within the
  // experts, after the activation (Megatron-Core 0.12, transformer/moe/experts.py).
  b.keep(WorkBuilder::matrix(received, s.hidden, b.operand_bytes()));
  const std::int64_t of_each = std::max<std::int64_t>(1, received / here);
  feed_forward(b, s, job.adapters, of_each, s.expert_ffn / share.etp, precision.math, here);
  if (s.bias) expert_bias(b, received, s.hidden, here);
  b.exchange_tokens(WorkBuilder::matrix(sent, s.hidden));
  if (s.shared_ffn > 0) feed_forward(b, s, job.adapters, b.rows(), s.shared_ffn / share.tp, precision.math);
  b.within({});
  b.tensor_messages();
  b.residual();
}

// Passes over the scores of words, forward and backward.
struct LossPasses {
  std::span<const BytesOfElement> forward, backward;
};

// Megatron-LM's vocab_parallel_cross_entropy, as PyTorch's of scores in fp32: cast, maximum, difference,
// exponential, sum, division; backward difference and cast.
constexpr BytesOfElement kOperators[] = {{2, 4}, {4, 0}, {4, 4}, {4, 4}, {4, 0}, {4, 4}};
constexpr BytesOfElement kOperatorsBack[] = {{4, 4}, {4, 2}};
// The work between two collectives is one kernel: cast and maximum; exponential and sum; division.
constexpr BytesOfElement kFused[] = {{2, 4}, {4, 4}, {4, 4}};
constexpr BytesOfElement kFusedBack[] = {{4, 2}};
constexpr BytesOfElement kOneKernel[] = {{2, 0}};
constexpr BytesOfElement kOneKernelBack[] = {{2, 2}};
constexpr BytesOfElement kInPlace[] = {{4, 2}};  // read twice, for their sum and for their gradient

constexpr std::array<LossPasses, kVocabularyLossNames.size()> kLosses = {{{kOperators, kOperatorsBack},
                                                                          {kFused, kFusedBack},
                                                                          {kOneKernel, kOneKernelBack},
                                                                          {kInPlace, kOneKernelBack}}};

void loss(WorkBuilder& b, std::int64_t words, const Stack& stack) {
  const LossPasses& passes = kLosses[static_cast<std::size_t>(stack.loss)];
  for (const BytesOfElement t : passes.forward)
    b.pointwise_forward(KernelKind::elementwise, "cross_entropy", b.rows(), words, t);
  for (const BytesOfElement t : passes.backward)
    b.pointwise_backward(KernelKind::elementwise, "cross_entropy", b.rows(), words, t);
  // Each casts the scores, and takes the logarithms of their softmax.
  for (int i = 0; i < stack.metrics; ++i) {
    for (const BytesOfElement t : {BytesOfElement{2, 4}, {4, 4}})
      b.pointwise_backward(KernelKind::elementwise, "metric", b.rows(), words, t);
  }
  if (stack.metrics > 0) b.work.after = Bytes(WorkBuilder::matrix(b.rows(), words, 2 + 4 + 4));
  const double alive = stack.held_scores + loss_bytes(stack) / stack.loss_chunks;
  b.work.largest = Bytes(WorkBuilder::matrix(b.rows(), words, alive));
  if (stack.loss == VocabularyLoss::operators)
    b.work.holes =
        Bytes(WorkBuilder::matrix(b.rows(), words, stack.operators_loss_holes / stack.loss_chunks));
}

// Words whose embeddings and scores one tensor-parallel rank has.
std::int64_t words_of_rank(const DecoderShape& shape, const Share& share, const Stack& stack) {
  const std::int64_t together = share.tp * stack.word_multiple;
  return (shape.vocabulary + together - 1) / together * stack.word_multiple;
}

}  // namespace

Share share_of(const ParallelLayout& l) {
  const RecomputeModules modules = l.recompute == Recomputation::selective ? l.modules : kDefaultModules;
  return {l.tp, l.cp, l.ep, l.etp, l.context, l.sequence_parallel, l.micro_batch, modules};
}

RankWork block_work(const DecoderShape& shape, const Share& share, const Job& job, bool experts,
                    const Stack& stack, const WorkPrecision& precision) {
  WorkBuilder b(shape, share, job, stack, precision);
  b.keep_input(WorkBuilder::matrix(b.own_rows(), shape.hidden));
  attention_layer(b, shape, share, job.adapters, precision);
  b.keep(WorkBuilder::matrix(b.own_rows(), shape.hidden));  // the second norm's input
  if (experts) {
    expert_layer(b, shape, share, job, precision);
  } else {
    const bool fuses = fuses_casts(shape, job.adapters, stack, precision.math);
    b.within({RecomputeModule::layernorm, RecomputeModule::mlp});
    b.norm(shape.hidden, b.keeps_input(job.adapters.up), fuses);
    b.within({RecomputeModule::mlp});
    feed_forward(b, shape, job.adapters, b.rows(), shape.ffn / share.tp, precision.math, 0, fuses);
    b.within({});
    b.tensor_messages();
    b.residual();
    b.mark_tail();
  }
  return std::move(b.work);
}

RankWork embedding_work(const DecoderShape& shape, const Share& share, const Job& job, const Stack& stack) {
  const WorkPrecision precision;
  WorkBuilder b(shape, share, job, stack, precision);
  b.pointwise_forward(KernelKind::gather, "embedding", b.rows(), shape.hidden, {2, 2});
  const std::int64_t words = words_of_rank(shape, share, stack);
  if (!b.frozen()) {
    b.pointwise_backward(KernelKind::elementwise, "zero", words, shape.hidden,
                         {0, kHalf});  // a dense gradient
    b.pointwise_backward(KernelKind::gather, "embedding", b.rows(), shape.hidden, {2, 4});
  }
  if (shape.dropout > 0) {
    b.pointwise_forward(KernelKind::elementwise, "dropout", b.own_rows(), shape.hidden, {2, 3});
    b.keep_input(WorkBuilder::matrix(b.own_rows(), shape.hidden, 1));
  }
  if (share.tp > 1) {
    const Collective sum = share.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce;
    b.work.forward_messages.push_back(
        {sum, AcrossRanks::tensor, Bytes(WorkBuilder::matrix(b.rows(), shape.hidden))});
  }
  b.work.parameters = static_cast<double>(words * shape.hidden + shape.positions * shape.hidden);
  return std::move(b.work);
}

RankWork head_work(const DecoderShape& shape, const Share& share, const Job& job, const Stack& stack,
                   const WorkPrecision& precision) {
  WorkBuilder b(shape, share, job, stack, precision);
  const std::int64_t words = words_of_rank(shape, share, stack);
  b.norm(shape.hidden);
  b.product(b.rows(), shape.hidden, words, precision.attention);
  if (!shape.tied) b.work.parameters += static_cast<double>(words) * static_cast<double>(shape.hidden);
  loss(b, words, stack);
  if (share.tp > 1) {
    const Bytes all(WorkBuilder::matrix(b.rows(), shape.hidden));
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
