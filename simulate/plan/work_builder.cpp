#include "simulate/plan/work_builder.h"

#include <algorithm>
#include <variant>

#include "graphs/layers/linear_product.h"

namespace tbdsim {

void WorkBuilder::adapter(bool adapted, Sharding by, std::int64_t rows, std::int64_t in, std::int64_t out,
                          bool expert, std::int64_t count) {
  if (!frozen() || !adapted) return;
  const std::int64_t rank = adapters_.rank;
  matrix_products(rows, in, rank, precision_.attention, Kept::product, count, true);
  matrix_products(rows, rank, out, precision_.attention, Kept::product, count, true);
  if (!stack_.fuses_operators || share_.tp > 1) {
    pointwise_forward(KernelKind::elementwise, "scale", rows * count, out, {2, 2});
    pointwise_backward(KernelKind::elementwise, "scale", rows * count, out, {2, 2});
    pointwise_forward(KernelKind::elementwise, "add", rows * count, out, {4, 2});
  }
  keep(matrix(rows * count, rank));
  if (share_.tp > 1 && !expert) adapter_messages(by, rows, in, out);
  (expert ? work.expert_adapter_parameters : work.adapter_parameters) +=
      static_cast<double>(rank * count) * static_cast<double>(in + out);
}

void WorkBuilder::parameters(std::int64_t in, std::int64_t out, bool expert, std::int64_t count) {
  const double number =
      static_cast<double>(in + (s_.bias ? 1 : 0)) * static_cast<double>(out) * static_cast<double>(count);
  (expert ? work.expert_parameters : work.parameters) += number;
}

void WorkBuilder::norm(std::int64_t columns, bool kept, bool casts) {
  const bool eager = !stack_.fused_pointwise && s_.rms_norm;
  // Eager: float, square, mean, scale, cast, weight.
  if (eager) {
    for (const BytesOfElement t : {BytesOfElement{2, 4}, {4, 4}, {4, 0}, {4, 4}, {4, 2}, {2, 2}})
      pointwise_forward(KernelKind::elementwise, "rms_norm", own_rows_, columns, t);
    for (const BytesOfElement t :
         {BytesOfElement{2, 2}, {4, 0}, {2, 4}, {8, 4}, {8, 0}, {8, 4}, {8, 4}, {4, 2}, {4, 2}})
      pointwise_backward(KernelKind::elementwise, "rms_norm", own_rows_, columns, t);
    keep(matrix(own_rows_, columns, 4));  // in fp32
  } else {
    const double written = casts ? copies_of_cast() : kHalf;
    pointwise_forward(KernelKind::layer_norm, "norm", own_rows_, columns, {2, written});
    pointwise_backward(KernelKind::layer_norm, "norm", own_rows_, columns, {4, 2});
  }
  if (kept) keep(matrix(own_rows_, columns, operand_bytes()));
  work.parameters += static_cast<double>(columns) * (s_.rms_norm ? 1 : 2);
}

void WorkBuilder::residual() {
  const bool drops = s_.dropout > 0;
  pointwise_forward(KernelKind::elementwise, "residual", own_rows_, s_.hidden, {4, drops ? 3.0 : 2.0});
  if (drops) {
    pointwise_backward(KernelKind::elementwise, "dropout", own_rows_, s_.hidden, {3, 2});
    keep(matrix(own_rows_, s_.hidden, 1));
  }
  if (s_.bias) pointwise_backward(KernelKind::reduction, "bias", own_rows_, s_.hidden, {2, 0});
  // Gradients of both paths are added.
  pointwise_backward(KernelKind::elementwise, "add", own_rows_, s_.hidden, {4, 2});
}

void WorkBuilder::activation(std::int64_t rows, std::int64_t inner, bool kept, bool experts, bool casts) {
  const double up = s_.gated ? 4 : 2;
  const double narrow = casts ? copies_of_cast() / kHalf : 1;  // of what it writes, over 16 bits
  const RecomputeModules around = within_;
  // The activation's input, of which fp8 is half.
  keep(matrix(rows, inner, up) * (s_.gated && stack_.narrow_activations ? 0.5 : 1));
  if (experts) within(around.with({RecomputeModule::moe_act}));
  if (s_.gated && !stack_.fused_pointwise) {
    pointwise_forward(KernelKind::elementwise, "silu", rows, inner, {2, 2});
    pointwise_forward(KernelKind::elementwise, "mul", rows, inner, {4, 2});
    for (int i = 0; i < 3; ++i) pointwise_backward(KernelKind::elementwise, "mul", rows, inner, {4, 2});
    keep(matrix(rows, inner));
  } else {
    pointwise_forward(KernelKind::elementwise, "activation", rows, inner, {up, 2 * narrow});
    pointwise_backward(KernelKind::elementwise, "activation", rows, inner, {up + 2, up * narrow});
    if (s_.bias) pointwise_backward(KernelKind::reduction, "bias", rows, inner, {up, 0});
  }
  if (experts && !s_.gated) weigh_by_router(rows, inner);
  if (kept) keep(matrix(rows, inner, operand_bytes()));
  within(around);
  work.largest = std::max(work.largest, Bytes(matrix(rows, inner, up + 2)));
}

void WorkBuilder::weigh_by_router(std::int64_t rows, std::int64_t inner) {
  keep(matrix(rows, inner));
  for (const BytesOfElement t : {BytesOfElement{2, 4}, {4, 2}})
    pointwise_forward(KernelKind::elementwise, "weigh", rows, inner, t);
  for (const BytesOfElement t : {BytesOfElement{2, 4}, {4, 4}, {6, 0}, {4, 2}})
    pointwise_backward(KernelKind::elementwise, "weigh", rows, inner, t);
}

void WorkBuilder::attention_kernels() {
  const std::int64_t heads = s_.heads / share_.tp;
  const std::int64_t groups = std::max<std::int64_t>(1, s_.kv_heads / share_.tp);
  if (exchanges_heads()) heads_messages(heads, groups);
  if (stack_.fused_attention) return fused_attention(heads, groups);
  const std::int64_t batch = share_.micro_batch * heads / (exchanges_heads() ? share_.cp : 1);
  const std::int64_t queries = sequence_ / (exchanges_heads() ? 1 : share_.cp);
  within({RecomputeModule::core_attn});
  bmm(Phase::forward, batch, sequence_, queries, s_.head_size);
  const bool fused = softmax_is_fused(batch, queries);
  if (fused)
    softmax(Phase::forward, batch * queries, {2, 2});
  else
    softmax_of_operators(batch * queries);
  if (s_.dropout > 0)
    pointwise_forward(KernelKind::elementwise, "dropout", batch * queries, sequence_, {2, 3}, Kept::scores);
  bmm(Phase::forward, batch, s_.value_size, queries, sequence_);
  for (const std::int64_t k : {s_.value_size, s_.head_size}) {
    bmm(Phase::backward_data, batch, sequence_, queries, k);
    bmm(Phase::backward_data, batch, k, sequence_, queries);
  }
  if (s_.dropout > 0)
    pointwise_backward(KernelKind::elementwise, "dropout", batch * queries, sequence_, {3, 2});
  if (fused) softmax(Phase::backward_data, batch * queries, {4, 2});
  const double scores = matrix(batch * queries, sequence_, 1);
  keep(scores * (s_.dropout > 0 ? 5 : 2));
  within({});
  keep(matrix(rows_, heads * s_.value_size));
  work.largest = std::max(work.largest, Bytes(scores * 4));
}

void WorkBuilder::tensor_messages() {
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
  if (frozen()) return;
  work.backward_messages.push_back({Collective::all_gather, AcrossRanks::tensor, all});
}

void WorkBuilder::exchange_tokens(double bytes) {
  if (share_.etp > 1) {
    const Bytes all(bytes * static_cast<double>(share_.etp));
    for (auto* messages : {&work.forward_messages, &work.backward_messages}) {
      messages->push_back({Collective::all_gather, AcrossRanks::expert_tensor, all});
      messages->push_back({Collective::reduce_scatter, AcrossRanks::expert_tensor, all});
    }
  }
  if (share_.ep == 1) return;
  if (stack_.dispatches_once) bytes *= ranks_of_token() / static_cast<double>(s_.experts_per_token);
  for (auto* messages : {&work.forward_messages, &work.backward_messages}) {
    for (int i = 0; i < 2; ++i)
      messages->push_back({Collective::all_to_all, AcrossRanks::expert, Bytes(bytes)});
  }
}

void WorkBuilder::adapter_messages(Sharding by, std::int64_t rows, std::int64_t in, std::int64_t out) {
  const auto send = [&](std::vector<Message>& messages, Collective collective, std::int64_t columns) {
    messages.push_back({collective, AcrossRanks::tensor, Bytes(matrix(rows, columns)), true});
  };
  send(work.forward_messages, Collective::all_reduce, adapters_.rank);
  send(work.backward_messages, Collective::all_reduce, adapters_.rank);
  if (!share_.sequence_parallel) return;
  const bool columns = by == Sharding::columns;
  send(work.forward_messages, Collective::all_gather, columns ? in : out);
  send(work.backward_messages, columns ? Collective::reduce_scatter : Collective::all_gather,
       columns ? in : out);
}

double WorkBuilder::ranks_of_token() const {
  const auto experts = static_cast<double>(s_.experts);
  const double elsewhere = experts - experts / static_cast<double>(share_.ep);
  double none_here = 1;
  for (std::int64_t i = 0; i < s_.experts_per_token; ++i) {
    const auto taken = static_cast<double>(i);
    none_here *= std::max(0.0, elsewhere - taken) / (experts - taken);
  }
  return static_cast<double>(share_.ep) * (1 - none_here);
}

Kernel WorkBuilder::kernel_of(KernelKind kind, Phase phase, std::string_view op, std::int64_t rows,
                              std::int64_t columns, BytesOfElement t) const {
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

void WorkBuilder::softmax_of_operators(std::int64_t rows) {
  for (const BytesOfElement t : {BytesOfElement{2, 4}, {4, 4}, {4, 4}})
    pointwise_forward(KernelKind::elementwise, "mask", rows, sequence_, t, Kept::scores);
  softmax(Phase::forward, rows, {4, 4});
  pointwise_forward(KernelKind::elementwise, "cast", rows, sequence_, {4, 2}, Kept::scores);
  pointwise_backward(KernelKind::elementwise, "cast", rows, sequence_, {2, 4});
  softmax(Phase::backward_data, rows, {8, 4});
  for (const BytesOfElement t : {BytesOfElement{4, 4}, {4, 4}, {4, 2}})
    pointwise_backward(KernelKind::elementwise, "mask", rows, sequence_, t);
  keep(matrix(rows, sequence_, kStatistic));
}

void WorkBuilder::softmax(Phase phase, std::int64_t rows, BytesOfElement t) {
  Kernel kernel = kernel_of(KernelKind::softmax, phase, "softmax", rows, sequence_, t);
  if (phase == Phase::forward)
    forward(std::move(kernel), Kept::scores);
  else
    work.backward.push_back(std::move(kernel));
}

void WorkBuilder::bmm(Phase phase, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.phase = phase;
  kernel.op = "batched_matmul";
  kernel.math = vectors_fit(m) && vectors_fit(k) ? precision_.attention : MathType::fp32;
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
  if (phase == Phase::forward)
    forward(std::move(kernel), Kept::scores);
  else
    work.backward.push_back(std::move(kernel));
}

void WorkBuilder::heads_messages(std::int64_t heads, std::int64_t groups) {
  for (const std::int64_t features :
       {heads * s_.head_size, groups * s_.head_size, groups * s_.value_size, heads * s_.value_size}) {
    for (auto* messages : {&work.forward_messages, &work.backward_messages})
      messages->push_back({Collective::all_to_all, AcrossRanks::context, Bytes(matrix(rows_, features))});
  }
}

void WorkBuilder::matrix_products(std::int64_t rows, std::int64_t in, std::int64_t out, MathType math,
                                  Kept as, std::int64_t count, bool trains, Casts casts) {
  Precision precision{.name = {},
                      .math = math,
                      .storage_bytes = math == MathType::fp8 ? 1 : 2,
                      .master_weights = false,
                      .loss_scaling = false,
                      .description = {}};
  if (math == MathType::fp4) precision.linear_math = math;
  for (const Phase phase : {Phase::forward, Phase::backward_data, Phase::backward_weights}) {
    if (phase == Phase::backward_weights && !trains) continue;
    // Transformer Engine calls cuBLAS for each expert (cublaslt_gemm.cu, multi_stream_cublas_gemm).
    if (count > 1)
      (phase == Phase::forward ? work.forward_experts : work.backward_experts) +=
          static_cast<double>(count - 1);
    Kernel kernel = linear_product(phase, fixed_size(rows), in, out, precision);
    if (count > 1) {
      auto& shape = std::get<GemmShape>(kernel.shape);
      shape.batch = fixed_size(count);
      shape.grouped = true;
      for (Size* size : {&kernel.flops, &kernel.macs, &kernel.read_bytes, &kernel.written_bytes})
        *size = *size * count;
    }
    if (phase == Phase::forward)
      forward(std::move(kernel), as);
    else
      work.backward.push_back(std::move(kernel));
  }
  // Operands in fp8 are made of what is in 16 bits: inputs forward, gradients backward.
  if (math == MathType::fp8) {
    const BytesOfElement cast{2, copies_of_cast()};
    if (casts.input) pointwise_forward(KernelKind::elementwise, "cast", rows * count, in, cast);
    if (casts.gradient) pointwise_backward(KernelKind::elementwise, "cast", rows * count, out, cast);
  }
  // Their largest magnitude first; then operands in fp4 with a byte for every 16 numbers.
  if (math == MathType::fp4) {
    for (const BytesOfElement t : {BytesOfElement{2, 0}, {2, copies_of_cast() * kFp4WithScale}}) {
      pointwise_forward(KernelKind::elementwise, "cast", rows * count, in, t);
      pointwise_backward(KernelKind::elementwise, "cast", rows * count, out, t);
    }
  }
  if (as == Kept::product) keep_of_operators(matrix(rows * count, out));
}

void WorkBuilder::fused_attention(std::int64_t heads, std::int64_t groups) {
  const bool ring = share_.cp > 1 && !exchanges_heads();
  const std::int64_t length = sequence_ / (ring ? share_.cp : 1);
  const std::int64_t own_heads = heads / (exchanges_heads() ? share_.cp : 1);
  const std::int64_t blocks = ring ? (s_.causal ? share_.cp / 2 : share_.cp) : 1;
  const double queries = matrix(rows_, heads * s_.head_size);
  const double context = matrix(rows_, heads * s_.value_size);
  const double keys =
      matrix(rows_, groups * (s_.head_size + s_.value_size)) * static_cast<double>(ring ? share_.cp : 1);
  for (const Phase phase : {Phase::forward, Phase::backward_data}) {
    const bool first = phase == Phase::forward;
    Kernel kernel;
    kernel.kind = KernelKind::gemm;
    kernel.phase = phase;
    kernel.op = "attention";
    kernel.math = precision_.fused_attention;
    kernel.element_bytes = 2;
    const std::int64_t scores = share_.micro_batch * own_heads * blocks * length;
    const std::int64_t each = first ? s_.head_size + s_.value_size : 3 * s_.head_size + 2 * s_.value_size;
    kernel.macs = fixed_size(scores * length) * each;
    kernel.flops = s_.causal && !ring ? kernel.macs : kernel.macs * 2;
    const double read = first ? queries + keys : queries + keys + 2 * context;
    const double written = first ? context : queries + keys;
    kernel.read_bytes = fixed_size(static_cast<std::int64_t>(read));
    kernel.written_bytes = fixed_size(static_cast<std::int64_t>(written));
    kernel.shape = AttentionShape{.heads = fixed_size(share_.micro_batch * own_heads * blocks),
                                  .queries = fixed_size(length),
                                  .keys = fixed_size(length),
                                  .features = s_.head_size,
                                  .values = s_.value_size,
                                  .causal = s_.causal && !ring,
                                  .queries_per_key = heads / groups,
                                  .kernel = stack_.attention};
    if (first)
      forward(std::move(kernel), Kept::attention);
    else
      work.backward.push_back(std::move(kernel));
  }
  const double statistics = static_cast<double>(rows_ * heads) * kStatistic;
  const double narrow = attention_bytes() / kHalf;
  keep(context * narrow + statistics);
  // The output's product keeps its own cast, or shares the context.
  const double operand = operand_bytes() / kHalf;
  if (keeps_input(adapters_.output) && operand != narrow) keep(context * operand);
  keep_of_operators(context + statistics);
  if (ring) work.ring = Bytes(keys);
}

}  // namespace tbdsim
