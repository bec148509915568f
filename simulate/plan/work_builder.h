// Collects what one rank computes, sends and keeps of a piece of a network, operator by operator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "graphs/layer.h"
#include "graphs/layer_graph.h"
#include "simulate/plan/rank_work.h"

namespace tbdsim {

inline constexpr double kHalf = 2;  // bytes of a bf16 or fp16 number
inline constexpr double kStatistic = 4;
inline constexpr double kFp4WithScale = 0.5 + 1.0 / 16;  // a byte of scale for 16 numbers

[[nodiscard]] inline std::size_t index_of(Recomputation r) { return static_cast<std::size_t>(r); }

// Bytes that a kernel reads and writes for each element.
struct BytesOfElement {
  double reads, writes;
};

// Of a product in fp8: what no kernel before it has cast.
struct Casts {
  bool input = true, gradient = true;
};

class WorkBuilder {
 public:
  WorkBuilder(const DecoderShape& shape, const Share& share, const Job& job, const Stack& stack,
              const WorkPrecision& precision)
      : s_(shape),
        share_(share),
        stack_(stack),
        precision_(precision),
        adapters_(job.adapters),
        sequence_(job.sequence) {
    rows_ = share.micro_batch * job.sequence / share.cp;
    own_rows_ = share.sequence_parallel ? rows_ / share.tp : rows_;
  }

  RankWork work;

  [[nodiscard]] bool joined() const { return stack_.joined_products; }
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t own_rows() const { return own_rows_; }  // of norms and residuals
  [[nodiscard]] static double matrix(std::int64_t rows, std::int64_t columns, double bytes = kHalf) {
    return static_cast<double>(rows) * static_cast<double>(columns) * bytes;
  }

  // Bytes that the backward pass reads, of the modules within which they are made.
  void keep(double bytes) {
    work.kept[index_of(Recomputation::none)] += Bytes(bytes);
    if (!selected()) work.kept[index_of(Recomputation::selective)] += Bytes(bytes);
  }
  void keep_of_operators(double bytes) { work.kept[index_of(Recomputation::operators)] += Bytes(bytes); }
  // The block's input, which every recomputation starts from.
  void keep_input(double bytes) {
    for (Bytes& kept : work.kept) kept += Bytes(bytes);
  }

  void forward(Kernel kernel, Kept as) {
    work.forward.push_back(std::move(kernel));
    work.again.push_back({as, selected()});
  }
  // Marks the last product so far, and what follows it, as the block's tail.
  void mark_tail() {
    const auto is_product = [](const Again& again) { return again.kept == Kept::product; };
    const auto last = std::find_if(work.again.rbegin(), work.again.rend(), is_product);
    if (last == work.again.rend()) return;
    for (auto again = std::prev(last.base()); again != work.again.end(); ++again) again->tail = true;
  }

  // Operators that follow are of these modules, up to the next call.
  void within(RecomputeModules modules) { within_ = modules; }

  [[nodiscard]] bool frozen() const { return adapters_.frozen(); }
  // Copies of an operand that a cast writes: values, and their transpose where a gradient of the weight needs
  // it (Transformer Engine, module/linear.py, set_usage).
  [[nodiscard]] double copies_of_cast() const { return frozen() ? 1 : 2; }

  // True if a product's input is kept for the gradient of its weight or of the adapter beside it.
  [[nodiscard]] bool keeps_input(bool adapted) const { return !frozen() || adapted; }

  // Bytes of a number of attention's operands and output as they are kept: in fp8 attention their casts
  // alone (Transformer Engine, attention/dot_product_attention/backends.py, fp8_tensors).
  [[nodiscard]] double attention_bytes() const {
    return stack_.fused_attention && precision_.fused_attention == MathType::fp8 ? 1 : kHalf;
  }

  // Bytes of a number of a product's input as it is kept for the gradient of the weight: as the product reads
  // it, where a library casts it before (Transformer Engine, module/linear.py, saved_inputmat; its
  // transpose alone). Adapters read 16 bits.
  [[nodiscard]] double operand_bytes() const {
    if (frozen() || !stack_.keeps_casts) return kHalf;
    if (precision_.math == MathType::fp8) return 1;
    return precision_.math == MathType::fp4 ? kFp4WithScale : kHalf;
  }

  // y = W x of `count` matrices of experts, or of one. `casts`: kernels of their own that it needs.
  void product(std::int64_t rows, std::int64_t in, std::int64_t out, MathType math, Kept as = Kept::product,
               std::int64_t count = 1, Casts casts = {}) {
    matrix_products(rows, in, out, math, as, count, !frozen(), casts);
  }

  // An adapter beside `count` matrices that are divided so: two products, a scale and a sum.
  void adapter(bool adapted, Sharding by, std::int64_t rows, std::int64_t in, std::int64_t out,
               bool expert = false, std::int64_t count = 1);

  void parameters(std::int64_t in, std::int64_t out, bool expert = false, std::int64_t count = 1);

  // `kept`: its output, the next products' input. `casts`: it writes that in fp8.
  void norm(std::int64_t columns, bool kept = true, bool casts = false);

  // The sum of a branch and what it branched from, with bias and dropout.
  void residual();

  // `kept`: its output, the next product's input. `experts`: whose outputs the router weighs here. `casts`:
  // it writes that, and its input's gradient, in fp8.
  void activation(std::int64_t rows, std::int64_t inner, bool kept = true, bool experts = false,
                  bool casts = false);

  void pointwise_forward(KernelKind kind, std::string_view op, std::int64_t rows, std::int64_t columns,
                         BytesOfElement t, Kept as = Kept::pointwise) {
    forward(kernel_of(kind, Phase::forward, op, rows, columns, t), as);
  }
  void pointwise_backward(KernelKind kind, std::string_view op, std::int64_t rows, std::int64_t columns,
                          BytesOfElement t) {
    work.backward.push_back(kernel_of(kind, Phase::backward_data, op, rows, columns, t));
  }

  void attention_kernels();

  // Collectives before and after a pair of a column-wise and a row-wise product, forward and backward.
  void tensor_messages();

  // `bytes`: of all copies of a rank's tokens, one for each expert. Ranks that share an expert's matrices
  // gather each other's.
  void exchange_tokens(double bytes);

 private:
  // The few columns between an adapter's factors are summed or gathered. With sequence parallelism it gathers
  // the input of a matrix divided by columns again, by itself; beside one divided by rows it gathers its
  // output before each rank keeps its tokens (NVIDIA-NeMo/Megatron-Bridge@067f987d, peft/utils.py,
  // ParallelLinearAdapter.forward).
  void adapter_messages(Sharding by, std::int64_t rows, std::int64_t in, std::int64_t out);

  // Mean number of expert-parallel ranks that have some of a token's experts, where all are as likely.
  [[nodiscard]] double ranks_of_token() const;

  Kernel kernel_of(KernelKind kind, Phase phase, std::string_view op, std::int64_t rows, std::int64_t columns,
                   BytesOfElement t) const;

  // Whether scale, mask and softmax of scores are one kernel
  // (bigscience-workshop/Megatron-DeepSpeed@8387ae17, megatron/model/fused_softmax.py, is_kernel_available).
  [[nodiscard]] bool softmax_is_fused(std::int64_t batch, std::int64_t queries) const {
    constexpr std::int64_t kMostKeys = 4096;
    return sequence_ <= kMostKeys && sequence_ % 4 == 0 && queries % 4 == 0 && batch % 4 == 0;
  }

  // Else they are PyTorch's operators in fp32 (forward_torch_softmax): cast, scale, mask, softmax, cast; and
  // back.
  void softmax_of_operators(std::int64_t rows);

  // The activation's output, which is kept, times the router's probability in fp32 and a cast, by operators:
  // Megatron-Core fuses them for gated experts alone (core/transformer/moe/experts.py@d98e8a64,
  // bias_act_func).
  void weigh_by_router(std::int64_t rows, std::int64_t inner);

  void softmax(Phase phase, std::int64_t rows, BytesOfElement t);

  // True if rows of this many 16-bit numbers begin at multiples of 16 bytes, as loads of tensor cores'
  // operands need. Heads of other sizes begin amid rows of the joined queries, keys and values; cuBLAS then
  // computes on fp32 units (its kernels' names say sgemm). Runs of BLOOM with heads of 150 and 450 features
  // need as long.
  static bool vectors_fit(std::int64_t numbers) { return numbers % 8 == 0; }

  void bmm(Phase phase, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k);

  // True where the rank has all tokens of some heads, not some tokens of all heads.
  [[nodiscard]] bool exchanges_heads() const {
    return share_.cp > 1 && share_.context == ContextExchange::all_to_all;
  }

  // Queries, keys and values go to the ranks of their heads, contexts come back; backward their gradients.
  void heads_messages(std::int64_t heads, std::int64_t groups);

  void matrix_products(std::int64_t rows, std::int64_t in, std::int64_t out, MathType math, Kept as,
                       std::int64_t count, bool trains, Casts casts = {});

  // With several context-parallel ranks as many blocks of length / cp as each of them computes: half of all,
  // where zig-zag halves what a causal mask leaves.
  void fused_attention(std::int64_t heads, std::int64_t groups);

  // True within a module that selective recomputation computes again.
  [[nodiscard]] bool selected() const { return within_.meets(share_.modules); }

  const DecoderShape& s_;
  const Share& share_;
  const Stack& stack_;
  const WorkPrecision& precision_;
  const Adapters& adapters_;
  std::int64_t sequence_;
  RecomputeModules within_;
  std::int64_t rows_ = 0;      // tokens of the micro-batch on this rank
  std::int64_t own_rows_ = 0;  // of those divided over tensor-parallel ranks too
};

}  // namespace tbdsim
