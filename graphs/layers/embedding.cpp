// embedding: y = table[x] for every position of x, a vector of whole numbers. Its gradient is a sum into the
// rows looked up. summed_to: rows are added up to so many vectors of a sample, as those of a category with
// several values (torch.nn.EmbeddingBag). distinct: rows that differ in an iteration, for each sample of it:
// indices are sorted, and the gradients of each row are added up before it is updated once
// (NVIDIA-Merlin/HugeCTR@2f2016f, HugeCTR/embedding: index calculation, local reduce, update).
#include "graphs/aten_embedding.h"
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostWords = 1'000'000'000;
constexpr std::int64_t kMostOutputs = 10'000'000;
constexpr std::int64_t kMostShards = 1'000;
// Passes of a radix sort of 32-bit keys, by eight bits at a time (CUB's DeviceRadixSort).
constexpr std::int64_t kSortPasses = 4;

class Embedding : public Layer {
 public:
  explicit Embedding(SpecMap& keys)
      : words_(keys.at("words").count(1, kMostWords)), outputs_(keys.at("outputs").count(1, kMostOutputs)) {
    if (const auto dense = keys.find("dense_gradient")) dense_gradient_ = dense->flag();
    if (const auto sparse = keys.find("sparse")) sparse_ = sparse->flag();
    if (sparse_ && dense_gradient_)
      keys.at("sparse").fail("is true beside dense_gradient: true; expected one of them");
    if (const auto vectors = keys.find("summed_to")) summed_to_ = vectors->count(1, kMostWords);
    if (const auto distinct = keys.find("distinct")) {
      distinct_ = distinct->count(0, kMostWords);
      if (distinct_ > 0 && !sparse_) keys.at("distinct").fail("is there without sparse: true; expected both");
    }
    if (const auto shards = keys.find("shards")) shards_ = shards->count(1, kMostShards);
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    Shape shape = inputs[0];
    if (summed_to_ > elements_per_row(shape)) {
      throw ShapeMismatch("input has shape " + to_text(shape) + "; expected a row or more for each of " +
                          std::to_string(summed_to_) + " sums");
    }
    if (distinct_ > elements_per_row(inputs[0])) {
      throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected a row or more for each of " +
                          std::to_string(distinct_) + " that differ");
    }
    if (summed_to_ > 0) shape.dims = {summed_to_};
    shape.dims.push_back(outputs_);
    return shape;
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    return {{.name = "table",
             .elements = checked_multiply(words_, outputs_),
             .gradient_rows = dense_gradient_ ? Size{} : updated_rows(inputs[0]) * outputs_,
             .sparse = sparse_,
             .row = outputs_}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (shards_ > 1) copy_table(Phase::forward, "concat", kernels);
    const Size y = stored_bytes(site.output, how.precision);
    const std::int64_t sums = summed_to_ > 0 ? 1 : 0;  // operations for each element that is written
    add(site, Phase::forward, sums, looked_up(site) * how.precision.weight_bytes + indices(site), y, kernels);
  }

  // Dense: the table's gradient is zeroed, then rows are added to it. Sparse: the rows are the gradient.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.weight_gradient) return;
    const Size dy = stored_bytes(site.output, how.precision);
    const Size rows = updated_rows(site.inputs[0]) * outputs_ * how.precision.gradient_bytes;
    if (distinct_ > 0) {
      const Size sorted = indices(site) * (2 * kSortPasses);  // with the place of each
      kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_weights, "sort",
                                      {elements(site.inputs[0]), {}}, 1, sorted, sorted));
      add(site, Phase::backward_weights, 1, looked_up(site) * how.precision.storage_bytes + indices(site) * 2,
          rows, kernels);
      return;
    }
    if (sparse_ || (!dense_gradient_ && how.lowering.embedding_gradient == TableGradient::sparse)) {
      add(site, Phase::backward_weights, 0, dy + indices(site), rows, kernels);
      return;
    }
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_weights, "fill", table(), 0, {},
                                    elements(table()) * how.precision.gradient_bytes));
    if (how.lowering.aten_kernels) {
      const AtenEmbedding sums{.op = "embedding",
                               .indices = elements(site.inputs[0]),
                               .elements = elements(site.output),
                               .read = dy + indices(site),
                               .written = rows,
                               .element_bytes = how.precision.storage_bytes};
      for (Kernel& kernel : gradient_kernels(sums)) kernels.push_back(std::move(kernel));
    } else {
      add(site, Phase::backward_weights, 1, dy + rows + indices(site), rows, kernels);
    }
    if (shards_ > 1) copy_table(Phase::backward_weights, "split", kernels);
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    const Size joined = shards_ > 1 ? elements(table()) * kFp32Bytes : Size{};
    return {.inputs = site.weight_gradient, .extra_bytes = joined};
  }

 private:
  [[nodiscard]] Shape table() const { return {fixed_size(checked_multiply(words_, outputs_)), {}}; }
  // Elements of the rows that are looked up.
  [[nodiscard]] Size looked_up(const LayerContext& site) const { return elements(site.inputs[0]) * outputs_; }
  // Rows that have a gradient of their own.
  [[nodiscard]] Size updated_rows(const Shape& input) const {
    return distinct_ > 0 ? input.rows * distinct_ : elements(input);
  }
  static Size indices(const LayerContext& site) { return elements(site.inputs[0]) * kIndexBytes; }

  static void add(const LayerContext& site, Phase phase, std::int64_t flops, Size read, Size written,
                  std::vector<Kernel>& kernels) {
    kernels.push_back(
        memory_kernel(KernelKind::gather, phase, "embedding", site.output, flops, read, written));
    kernels.back().shape = position_matrix(site.output);
  }

  // Copies the shards into one table, or its gradient into theirs.
  void copy_table(Phase phase, std::string_view op, std::vector<Kernel>& kernels) const {
    const Size bytes = elements(table()) * kFp32Bytes;
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, op, table(), 0, bytes, bytes));
  }

  std::int64_t words_;
  std::int64_t outputs_;
  bool dense_gradient_ = false;  // instead of the framework's
  bool sparse_ = false;          // likewise, and only the rows looked up are updated
  std::int64_t shards_ = 1;
  std::int64_t distinct_ = 0;   // rows for each sample; 0: every row that is looked up
  std::int64_t summed_to_ = 0;  // vectors of a sample; 0: a vector for each row
};

}  // namespace

std::unique_ptr<Layer> make_embedding(SpecMap& keys) { return std::make_unique<Embedding>(keys); }

}  // namespace tbdsim
