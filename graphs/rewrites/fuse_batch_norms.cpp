#include "graphs/rewrites/fuse_batch_norms.h"

#include <algorithm>
#include <map>
#include <vector>

#include "graphs/parameter_updates.h"
#include "graphs/same_kernels.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kBits = 8;  // of a byte

// Kernels, first to last, that become one.
struct Chain {
  int first = 0, last = 0;
  int norm = 0, relu = 0;  // layers
  [[nodiscard]] int length() const { return last - first + 1; }
};

class NormFusion {
 public:
  NormFusion(const TrainingStep& step, FusedNorms how) : step_(step), how_(how) {
    find_chains();
    chain_of_.assign(step.kernels.size(), nullptr);
    fuse(forward_);
    if (how != FusedNorms::forward_pass) fuse(backward_);
  }

  TrainingStep run() {
    TrainingStep made = step_;
    made.kernels.clear();
    place_.resize(step_.kernels.size());
    for (int k = 0; k < count(); ++k) {
      const Chain* chain = chain_of_[at(k)];
      if (chain == nullptr) made.kernels.push_back(kernel(k));
      if (chain != nullptr && k == chain->first)
        made.kernels.push_back(kernel(k).phase == Phase::forward ? forward(*chain) : backward(*chain));
      place_[at(k)] = static_cast<int>(made.kernels.size()) - 1;
    }
    mark_duplicates(made.kernels);
    made.updates = parameter_updates(made);
    std::erase_if(made.tensors, [&](const Tensor& tensor) { return vanishes(tensor); });
    for (Tensor& tensor : made.tensors) {
      for (int* use : {&tensor.first_use, &tensor.last_use, &tensor.last_forward, &tensor.first_again})
        *use = *use < 0 ? *use : place_[at(*use)];
    }
    for (ParameterGradient& gradient : made.gradients) gradient.ready = place_[at(gradient.ready)];
    place_.push_back(static_cast<int>(made.kernels.size()));
    for (IndependentChains& chains : made.chains) {
      for (int* begin : {&chains.first, &chains.second, &chains.end}) *begin = place_[at(*begin)];
    }
    for (const Chain& chain : forward_) append_bits(chain, made);
    return made;
  }

 private:
  static std::size_t at(int k) { return static_cast<std::size_t>(k); }
  [[nodiscard]] int count() const { return static_cast<int>(step_.kernels.size()); }
  [[nodiscard]] const Kernel& kernel(int k) const { return step_.kernels[at(k)]; }

  void fuse(const std::vector<Chain>& chains) {
    for (const Chain& chain : chains) {
      for (int k = chain.first; k <= chain.last; ++k) chain_of_[at(k)] = &chain;
    }
  }

  [[nodiscard]] bool is(int k, std::string_view op, Phase phase, std::int64_t repeat) const {
    return k < count() && kernel(k).op == op && kernel(k).phase == phase && kernel(k).repeat == repeat;
  }

  // A batch norm, or a norm by constant statistics in one kernel (graphs/layers/batch_norm.cpp).
  [[nodiscard]] bool is_norm(int k, Phase phase, std::int64_t repeat) const {
    return is(k, "batch_norm", phase, repeat) || is(k, "affine_norm", phase, repeat);
  }

  // The kernel that writes a tensor: the first of its layer that does more than count batches.
  [[nodiscard]] int writer_of(const Tensor& tensor) const {
    int k = tensor.first_use;
    while (k >= 0 && k < count() && kernel(k).op == "count_batches") ++k;
    return k;
  }

  // The map that kernel k writes; none where it writes over its input.
  [[nodiscard]] const Tensor* map_of(int k) const {
    for (auto [found, end] = maps_.equal_range(k); found != end; ++found) {
      const Tensor& tensor = step_.tensors[found->second];
      if (tensor.layer == kernel(k).layer && !tensor.library_state) return &tensor;
    }
    return nullptr;
  }

  // Nothing but the next kernel reads what k writes, or the next one overwrites it; where both passes are
  // fused, the backward pass may have read it: it reads the bits instead.
  [[nodiscard]] bool goes_to_next(int k) const {
    const Tensor* map = map_of(k);
    if (map == nullptr) return false;
    const bool bits_instead = how_ != FusedNorms::forward_pass && map->first_again >= 0;
    return map_of(k + 1) == nullptr || (bits_instead ? map->last_forward : map->last_use) == k + 1;
  }

  void find_chains() {
    for (std::size_t i = 0; i < step_.tensors.size(); ++i) {
      if (step_.tensors[i].role == TensorRole::feature_map) maps_.emplace(writer_of(step_.tensors[i]), i);
    }
    std::map<int, int> norm_of;  // by the ReLU's layer
    for (int k = 0; k < count(); ++k) {
      const std::int64_t repeat = kernel(k).repeat;
      if (is_norm(k, Phase::forward, repeat)) {
        const bool sum = is(k + 1, "add", Phase::forward, repeat) &&
                         kernel(k + 1).read_bytes == kernel(k + 1).written_bytes * 2;
        const int relu = sum ? k + 2 : k + 1;
        if (!is(relu, "relu", Phase::forward, repeat) || !goes_to_next(k) || (sum && !goes_to_next(k + 1)))
          continue;
        forward_.push_back({k, relu, kernel(k).layer, kernel(relu).layer});
        norm_of[kernel(relu).layer] = kernel(k).layer;
      } else if (is(k, "relu", Phase::backward_data, repeat) &&
                 is_norm(k + 1, Phase::backward_data, repeat)) {
        const auto norm = norm_of.find(kernel(k).layer);
        if (norm != norm_of.end() && norm->second == kernel(k + 1).layer)
          backward_.push_back({k, k + 1, norm->second, kernel(k).layer});
      }
    }
    keep_whole_layers();
  }

  // All kernels of the norm and of the ReLU are in chains, or none; sums of gradients are not moved.
  void keep_whole_layers() {
    std::map<int, int> left;  // kernels of a layer in no chain
    for (const Kernel& kernel : step_.kernels) {
      if (kernel.op == "batch_norm" || kernel.op == "affine_norm" || kernel.op == "relu")
        ++left[kernel.layer];
    }
    for (const std::vector<Chain>* chains : {&forward_, &backward_}) {
      for (const Chain& chain : *chains) {
        --left[chain.norm];
        --left[chain.relu];
      }
    }
    const auto partly = [&](const Chain& chain) { return left[chain.norm] != 0 || left[chain.relu] != 0; };
    std::erase_if(forward_, partly);
    std::erase_if(backward_, partly);
  }

  [[nodiscard]] bool is_half_convolution(int k) const {
    return k >= 0 && k < count() && kernel(k).kind == KernelKind::convolution && kernel(k).element_bytes == 2;
  }

  // True if the convolution before the norm sums its statistics.
  [[nodiscard]] bool summed_by_convolution(const Chain& chain) const {
    return how_ == FusedNorms::with_convolutions && kernel(chain.first).op == "batch_norm" &&
           is_half_convolution(chain.first - 1);
  }

  // True if the next convolution normalises what it reads, and its gradient by the weights does so again.
  [[nodiscard]] bool applied_by_convolution(const Chain& chain) const {
    if (!summed_by_convolution(chain) || chain.length() > 2 || !is_half_convolution(chain.last + 1))
      return false;
    const Tensor* map =
        map_of(map_of(chain.last) != nullptr ? chain.last : chain.first);  // a ReLU in place has none
    return map != nullptr && map->last_forward == chain.last + 1;
  }

  static Size bits_of(const Kernel& norm, Size map) {
    const std::int64_t bits = kBits * norm.element_bytes;
    return {map.fixed / bits, map.per_sample / bits};
  }

  static std::string_view name_of(const Kernel& norm, bool with_sum) {
    if (norm.op == "affine_norm") return with_sum ? "affine_norm_add_relu" : "affine_norm_relu";
    return with_sum ? "batch_norm_add_relu" : "batch_norm_relu";
  }

  [[nodiscard]] Kernel forward(const Chain& chain) const {
    Kernel fused = kernel(chain.first);
    const Size map = fused.written_bytes;
    fused.op = name_of(fused, chain.length() > 2);
    if (chain.length() > 2) fused.read_bytes += map;
    for (int k = chain.first + 1; k <= chain.last; ++k) fused.flops += kernel(k).flops;
    fused.written_bytes += bits_of(fused, map);
    if (summed_by_convolution(chain)) fused.read_bytes = fused.read_bytes + map * -1;
    if (applied_by_convolution(chain)) {  // what is left turns sums into a factor and a summand
      fused.op = "norm_factors";
      const Size numbers = fixed_size(2 * kFp32Bytes * std::get<ImageShape>(fused.shape).channels);
      fused.flops = fused.read_bytes = fused.written_bytes = numbers;
    }
    return fused;
  }

  [[nodiscard]] Kernel backward(const Chain& chain) const {
    Kernel fused = kernel(chain.last);
    const Size map = kernel(chain.first).written_bytes;
    fused.op = name_of(fused, false);
    fused.flops += kernel(chain.first).flops;
    fused.read_bytes += bits_of(fused, map) * 2;
    const bool for_others = std::any_of(
        step_.tensors.begin(), step_.tensors.end(),
        [&](const Tensor& tensor) { return is_gradient_of(tensor, chain) && tensor.last_use > chain.last; });
    if (for_others) fused.written_bytes += map;
    return fused;
  }

  // True for the gradient that the ReLU's backward kernel writes.
  static bool is_gradient_of(const Tensor& tensor, const Chain& backward) {
    return tensor.role == TensorRole::gradient_map && tensor.first_use == backward.first;
  }

  [[nodiscard]] bool vanishes(const Tensor& tensor) const {
    const int writer = writer_of(tensor);
    if (writer < 0 || writer >= count()) return false;
    const Chain* chain = chain_of_[at(writer)];
    if (chain == nullptr) return false;
    if (tensor.role == TensorRole::gradient_map)
      return is_gradient_of(tensor, *chain) && tensor.last_use <= chain->last;
    if (tensor.role != TensorRole::feature_map) return false;
    if (applied_by_convolution(*chain)) return true;
    if (writer == chain->last) return false;
    const bool written_over = writer + 1 == chain->last && map_of(chain->last) == nullptr;
    return !written_over && map_of(writer) != nullptr && tensor.layer == map_of(writer)->layer;
  }

  void append_bits(const Chain& chain, TrainingStep& made) const {
    const Kernel& norm = kernel(chain.first);
    int first_again = -1, last = place_[at(chain.first)];
    for (const Chain& back : backward_) {
      if (back.norm != chain.norm || back.first < chain.last) continue;
      last = place_[at(back.last)];
      if (first_again < 0) first_again = last;
    }
    if (first_again < 0) return;
    made.tensors.push_back({.role = TensorRole::feature_map,
                            .layer = chain.norm,
                            .bytes = bits_of(norm, norm.written_bytes),
                            .first_use = place_[at(chain.first)],
                            .last_use = last,
                            .last_forward = place_[at(chain.first)],
                            .first_again = first_again});
  }

  const TrainingStep& step_;
  FusedNorms how_;
  std::multimap<int, std::size_t> maps_;  // by the kernel that writes them
  std::vector<Chain> forward_, backward_;
  std::vector<const Chain*> chain_of_;
  std::vector<int> place_;
};

}  // namespace

TrainingStep with_fused_norms(const TrainingStep& step, FusedNorms how) {
  return NormFusion(step, how).run();
}

}  // namespace tbdsim
