#include "graphs/training_step.h"

#include <algorithm>
#include <map>
#include <set>

#include "graphs/lowering_reader.h"
#include "graphs/orthogonal_update.h"
#include "graphs/parameter_kernels.h"
#include "graphs/parameter_updates.h"
#include "graphs/pass_expansion.h"
#include "graphs/same_kernels.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostKernels = 2'000'000;    // of an iteration; what memory holds
constexpr std::size_t kMostLayersRun = 2'000'000;  // also such as need no kernel
// Kernels and tensors for which room is made for each layer run, forward, back and in the update: models of
// the catalogue have 3 to 10 kernels. Of a model with more layers than kLayersReserved the rest grows.
constexpr std::size_t kKernelsOfLayer = 8;
constexpr std::size_t kTensorsOfLayer = 6;
constexpr std::size_t kLayersReserved = 10'000;

// Weights, their gradients and what the optimizer keeps; they live as long as the model.
void append_parameter_tensors(const LayerGraph& graph, int first_layer, const Model& model,
                              const LoweringContext& how, TrainingStep& step) {
  const int last = std::max(0, static_cast<int>(step.kernels.size()) - 1);
  const bool on_host = how.lowering.variables == Variables::host;
  const Optimizer& optimizer = optimizer_of(model.variant, how.precision);
  const bool state_on_host = on_host || how.lowering.optimizer_state == Variables::host;
  const bool fp32_copy = how.precision.fp32_copy && !state_on_host;
  const std::int64_t copies = how.lowering.parameter_copies + (fp32_copy ? 1 : 0);
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    for (const ParameterTensor& tensor : graph.layers[i].parameters) {
      const Size words = fixed_size(tensor.elements);
      const int at = first_layer + static_cast<int>(i);
      const std::int64_t cast = tensor.cast && how.precision.master_weights ? how.precision.storage_bytes : 0;
      step.tensors.push_back({TensorRole::weights, at, words * (how.precision.weight_bytes + cast), 0, last});
      if (model.variant.average)
        step.tensors.push_back({TensorRole::dynamic, at, words * kFp32Bytes, 0, last});
      const bool trained = tensor.trained && graph.layers[i].weight_gradient;
      const Optimizer& rule = rule_of(optimizer, graph.layers[i], tensor);
      const Size state = state_on_host ? Size{} : state_of(rule, tensor, words, how.precision.state_bytes);
      const Size kept = state + words * (copies * kFp32Bytes);
      if (trained && kept != Size{}) step.tensors.push_back({TensorRole::dynamic, at, kept, 0, last});
    }
  }
}

// The last kernel of each layer's backward pass that makes gradients of its weights.
std::vector<int> last_gradient_kernels(const TrainingStep& step) {
  std::vector<int> last(step.layers.size(), 0);
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    if (kernel.layer >= 0 && kernel.phase == Phase::backward_weights)
      last[static_cast<std::size_t>(kernel.layer)] = static_cast<int>(k);
  }
  return last;
}

// Lifetime of the gradients of one graph's weights: several passes, or batches, may accumulate into them
// before one updates.
struct GradientUse {
  std::vector<int> first;  // kernel that writes a layer's gradients first
  int last = 0;            // kernel that needs them last
  bool kept = false;       // from the first batch of an update to its last
};

// Appends the tensors of a graph's weight gradients. Transient ones are freed as soon as they are applied
// under an optimizer without state; under others they live until the last gradient is computed (VGG-16 on a
// V100, TensorFlow 2018: Adam needs more memory than SGD by its state and these gradients).
void append_weight_gradients(const LayerGraph& graph, int first_layer, const GradientUse& use,
                             const Model& model, const LoweringContext& how, TrainingStep& step) {
  const GradientStorage storage = how.lowering.weight_gradients;
  const bool persistent = storage == GradientStorage::persistent;
  const bool stateless = optimizer_of(model.variant, how.precision).state_words == 0;
  const bool frees_applied =
      storage == GradientStorage::at_once ||
      (storage == GradientStorage::transient && stateless && model.variant.clip != Clip::norm);
  const bool at_once = frees_applied && !use.kept;
  const std::vector<int> made = last_gradient_kernels(step);
  const int end = static_cast<int>(step.kernels.size()) - 1;
  each_trained(graph, [&](int layer, const ParameterTensor& tensor) {
    const int at = first_layer + layer;
    const int born = use.kept ? 0 : use.first[static_cast<std::size_t>(layer)];
    const int applied = at_once ? std::max(born, made[static_cast<std::size_t>(at)]) : use.last;
    step.tensors.push_back({TensorRole::weight_gradients, at,
                            gradient_elements(tensor, how.lowering) * how.precision.gradient_bytes,
                            persistent ? 0 : born, persistent ? end : applied});
  });
}

// For every layer its last kernel from `first` on; -1 where it has none.
std::vector<int> last_kernels(const TrainingStep& step, std::size_t first) {
  std::vector<int> last(step.layers.size(), -1);
  for (std::size_t k = first; k < step.kernels.size(); ++k) {
    const int layer = step.kernels[k].layer;
    if (layer >= 0) last[static_cast<std::size_t>(layer)] = static_cast<int>(k);
  }
  return last;
}

// Appends the gradients that ranks exchange after a pass that ends with the last kernel. A tied layer's
// kernels write the gradients of the layer that owns the weights.
void append_gradients(const LayerGraph& graph, int first_layer, std::vector<int> last,
                      const Lowering& lowering, std::int64_t repeat, TrainingStep& step) {
  const auto at = [&](int layer) -> int& { return last[static_cast<std::size_t>(first_layer + layer)]; };
  for (int i = 0; i < static_cast<int>(graph.layers.size()); ++i) {
    const GraphLayer& layer = graph.layers[static_cast<std::size_t>(i)];
    if (layer.tied_to >= 0 && layer.weight_gradient) at(layer.tied_to) = std::max(at(layer.tied_to), at(i));
  }
  const auto before = static_cast<std::ptrdiff_t>(step.gradients.size());
  each_trained(graph, [&](int layer, const ParameterTensor& tensor) {
    const int ready = at(layer) < 0 ? static_cast<int>(step.kernels.size()) - 1 : at(layer);
    step.gradients.push_back({first_layer + layer, gradient_elements(tensor, lowering), ready, repeat});
  });
  std::stable_sort(step.gradients.begin() + before, step.gradients.end(),
                   [](const ParameterGradient& a, const ParameterGradient& b) { return a.ready < b.ready; });
}

LayerSummary summarise(const GraphLayer& layer) {
  LayerSummary summary{.name = layer.spec.name,
                       .type = layer.spec.type,
                       .output = layer.output,
                       .forward_macs = {},
                       .training_macs = {},
                       .shard = layer.spec.shard,
                       .repetition = layer.spec.repetition};
  for (const ParameterTensor& tensor : layer.parameters) {
    std::int64_t& sum = !tensor.trained     ? summary.statistics
                        : layer.spec.frozen ? summary.frozen_parameters
                                            : summary.trained_parameters;
    sum = checked_add(sum, tensor.elements);
  }
  return summary;
}

// Counts the multiply-adds of one forward pass through each layer: those of the kernels from `from` on.
void count_forward_macs(std::size_t from, std::int64_t repeat, TrainingStep& step) {
  for (std::size_t k = from; k < step.kernels.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    step.layers[static_cast<std::size_t>(kernel.layer)].forward_macs +=
        kernel.macs * (kernel.repeat / repeat);
  }
}

void count_training_macs(TrainingStep& step) {
  for (const Kernel& kernel : step.kernels) {
    if (kernel.layer < 0) continue;
    step.layers[static_cast<std::size_t>(kernel.layer)].training_macs += kernel.macs * kernel.repeat;
  }
}

// Expands a model pass by pass.
class StepExpansion {
 public:
  StepExpansion(const Model& model, const LoweringContext& how) : model_(model), how_(how) {
    step_.sample = model.sample;
    step_.synced_norms = how_.lowering.synced_norms;
    for (const auto& [name, graph] : model.graphs) {
      first_layers_[name] = static_cast<int>(step_.layers.size());
      for (const GraphLayer& layer : graph.layers) {
        step_.layers.push_back(summarise(layer));
        in_fp32_.push_back(stays_single(layer.spec, how));
      }
    }
  }

  TrainingStep run() {
    reserve();
    for (const TrainingPass& pass : model_.training) run_pass(pass);
    if (step_.kernels.empty()) fail(" runs no kernel; expected a layer that computes");
    end_tensors_with_the_step();
    for (const auto& [name, graph] : model_.graphs)
      append_parameter_tensors(graph, first_layers_[name], model_, how_, step_);
    for (const auto& [name, use] : gradients_)
      append_weight_gradients(model_.graphs.at(name), first_layers_[name], use, model_, how_, step_);
    count_training_macs(step_);
    for (const TrainingPass& pass : model_.training) step_.batches = std::max(step_.batches, pass.batches);
    mark_duplicates(step_.kernels);
    step_.updates = parameter_updates(step_);
    return std::move(step_);
  }

 private:
  // Makes room for the kernels and tensors of all runs, so that none is moved as they become more.
  void reserve() {
    std::size_t layers = 0;
    for (const TrainingPass& pass : model_.training) {
      for (const GraphRun& run : pass.runs) layers += model_.graphs.at(run.graph).layers.size();
    }
    if (layers > kMostLayersRun)
      fail(": more than 2000000 layers in all runs; expected fewer layers or runs");
    step_.kernels.reserve(std::min(layers, kLayersReserved) * kKernelsOfLayer);
    step_.tensors.reserve(std::min(layers, kLayersReserved) * kTensorsOfLayer);
  }

  void require_few_kernels() const {
    if (step_.kernels.size() > kMostKernels)
      fail(": more than 2000000 kernels; expected fewer layers or passes");
  }

  // Where a layer has no kernel its tensors name the next one, which the last layer lacks.
  void end_tensors_with_the_step() {
    const int last = static_cast<int>(step_.kernels.size()) - 1;
    for (Tensor& tensor : step_.tensors) {
      tensor.first_use = std::min(tensor.first_use, last);
      tensor.last_use = std::min(tensor.last_use, last);
    }
  }

  [[noreturn]] void fail(const std::string& what) const { throw ModelError("model " + model_.name + what); }

  // Trained graphs of a pass, each with the first kernel that writes each layer's gradients.
  using TrainedGraphs = std::map<std::string, std::vector<int>>;

  // Runs forward in order, backward in reverse order, then updates each trained graph once.
  void run_pass(const TrainingPass& pass) {
    fill_gradients(pass);
    const std::size_t first = step_.kernels.size();
    ready_weights(pass);
    std::vector<PassExpansion> runs = run_forward(pass);
    TrainedGraphs trained = run_backward(pass, runs);
    const int backward_end = static_cast<int>(step_.kernels.size()) - 1;
    for (std::size_t k = first; k < step_.kernels.size(); ++k) {
      const int layer = step_.kernels[k].layer;
      if (layer >= 0 && in_fp32_[static_cast<std::size_t>(layer)]) continue;
      step_.kernels[k].element_bytes = how_.precision.storage_bytes;
    }
    if (pass.update) exchange(pass, trained, first);
    update_parameters(pass, trained);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      runs[i].feature_maps();
      if (pass.runs[i].backward != Backward::none) runs[i].gradient_maps(backward_end);
    }
    for (auto& [name, births] : trained) use_gradients(pass, name, std::move(births));
  }

  std::vector<PassExpansion> run_forward(const TrainingPass& pass) {
    std::vector<PassExpansion> runs;
    runs.reserve(pass.runs.size());
    for (const GraphRun& run : pass.runs) {
      runs.emplace_back(model_.graphs.at(run.graph), run.backward, runs_of(pass), how_,
                        first_layers_[run.graph], step_);
      const std::size_t before = step_.kernels.size();
      runs.back().forward();
      require_few_kernels();
      if (lowered_graphs_.insert(run.graph).second) count_forward_macs(before, runs_of(pass), step_);
    }
    return runs;
  }

  TrainedGraphs run_backward(const TrainingPass& pass, std::vector<PassExpansion>& runs) {
    TrainedGraphs trained;
    for (std::size_t i = runs.size(); i-- > 0;) {
      const std::string& graph = pass.runs[i].graph;
      if (pass.runs[i].backward == Backward::none) continue;
      runs[i].backward(additions(pass, graph, trained.contains(graph)));
      require_few_kernels();
      if (trains(pass.runs[i])) trained.try_emplace(graph, runs[i].weight_gradient_births());
    }
    return trained;
  }

  // Records the gradients that ranks exchange after the pass, whose kernels begin at `first`.
  void exchange(const TrainingPass& pass, const TrainedGraphs& trained, std::size_t first) {
    const std::vector<int> last = last_kernels(step_, first);
    for (const auto& [name, births] : trained)
      append_gradients(model_.graphs.at(name), first_layers_[name], last, how_.lowering, pass.repeat, step_);
  }

  void update_parameters(const TrainingPass& pass, const TrainedGraphs& trained) {
    for (const auto& [name, births] : trained) {
      parameters_of(name, runs_of(pass)).gradient_casts();
      ParameterKernels parameters = parameters_of(name, pass.repeat);
      if (pass.update) update(parameters);
    }
  }

  // Extends the lifetime of the graph's weight gradients to the end of the pass.
  void use_gradients(const TrainingPass& pass, const std::string& graph, std::vector<int> births) {
    GradientUse& use = gradients_[graph];
    if (use.first.empty()) use.first = std::move(births);
    use.last = static_cast<int>(step_.kernels.size()) - 1;
    use.kept = use.kept || pass.batches > 1;
    if (pass.update)
      accumulating_gradients_.erase(graph);
    else
      accumulating_gradients_.insert(graph);
  }

  void update(ParameterKernels& parameters) const {
    const Optimizer& optimizer = optimizer_of(model_.variant, how_.precision);
    if (model_.variant.graph_decay) parameters.graph_decay();
    parameters.unscale();
    if (how_.lowering.variables == Variables::host) {
      parameters.update_on_host(optimizer, model_.variant.clip);
      return;
    }
    if (how_.lowering.optimizer_state == Variables::host) {
      parameters.update_on_host(optimizer, model_.variant.clip);
      parameters.fetch_updated();
      return;
    }
    parameters.clip(model_.variant.clip);
    parameters.update(optimizer);
    if (model_.variant.average) parameters.average();
    if (optimizer.name != "none") parameters.copy();
  }

  // Several runs, or passes, make gradients of the graph's weights before one update.
  [[nodiscard]] bool adds_up(const TrainingPass& pass, const std::string& graph) const {
    const auto trains_it = [&](const GraphRun& run) { return trains(run) && run.graph == graph; };
    return !pass.update || pass.batches > 1 || accumulating_gradients_.contains(graph) ||
           std::count_if(pass.runs.begin(), pass.runs.end(), trains_it) > 1;
  }

  // True where gradients are zeros before each update's passes, and kernels add to them. An optimizer that
  // runs in one kernel of the program's own sets gradients to None instead.
  [[nodiscard]] bool zeroes_gradients() const {
    return how_.lowering.zero_gradients && optimizer_of(model_.variant, how_.precision).own_operators != 1;
  }

  // How often a pass does its runs in an iteration.
  static std::int64_t runs_of(const TrainingPass& pass) {
    return checked_multiply(pass.repeat, pass.batches);
  }

  // In how many of those a run of the graph finds gradients to add to: those of a run before it in this pass,
  // or of batches and passes since the last update, or zeros. Kernels that accumulate in place need zeroed
  // gradients first.
  [[nodiscard]] std::int64_t additions(const TrainingPass& pass, const std::string& graph,
                                       bool ran_before) const {
    if (how_.lowering.step_gradients == GradientAccumulation::in_place)
      return adds_up(pass, graph) ? runs_of(pass) : 0;
    if (ran_before || zeroes_gradients()) return runs_of(pass);
    const std::int64_t first = accumulating_gradients_.contains(graph) ? 1 : 0;
    const std::int64_t updates = pass.update ? pass.repeat : 1;
    return runs_of(pass) - updates + first;
  }

  // Where products add to gradients in place, or every gradient is added to zeros, these are filled in after
  // every update.
  void fill_gradients(const TrainingPass& pass) {
    const bool in_place = how_.lowering.step_gradients == GradientAccumulation::in_place;
    if (!in_place && !zeroes_gradients()) return;
    std::set<std::string> graphs;
    for (const GraphRun& run : pass.runs) {
      if (trains(run) && (!in_place || adds_up(pass, run.graph))) graphs.insert(run.graph);
    }
    for (const std::string& name : graphs) {
      const std::int64_t times =
          (pass.update ? pass.repeat : 1) - (accumulating_gradients_.contains(name) ? 1 : 0);
      if (times > 0) parameters_of(name, times).fill_gradients();
    }
  }

  // Weights that live on the host are sent before each pass; under mixed precision it casts those it uses.
  void ready_weights(const TrainingPass& pass) {
    std::set<std::string> graphs;
    for (const GraphRun& run : pass.runs) graphs.insert(run.graph);
    for (const std::string& name : graphs) {
      if (how_.lowering.variables == Variables::host) parameters_of(name, runs_of(pass)).fetch();
      parameters_of(name, runs_of(pass)).casts();
    }
  }

  [[nodiscard]] ParameterKernels parameters_of(const std::string& graph, std::int64_t repeat) {
    return {model_.graphs.at(graph), first_layers_[graph], how_, repeat, step_};
  }

  static bool trains(const GraphRun& run) {
    return run.backward == Backward::weights || run.backward == Backward::penalty;
  }

  const Model& model_;
  const LoweringContext& how_;
  TrainingStep step_;
  std::map<std::string, int> first_layers_;
  std::vector<bool> in_fp32_;  // by layer: single precision always
  std::map<std::string, GradientUse> gradients_;
  std::set<std::string> lowered_graphs_;          // graphs that ran already
  std::set<std::string> accumulating_gradients_;  // graphs whose gradients wait for an update
};

}  // namespace

Lowering lowering_of(const Model& model, const Lowering& framework, const Precision& precision) {
  const bool departs = model.variant.lowering.kind == SpecTree::Kind::map;
  Lowering lowering =
      departs ? override_lowering(SpecNode(model.variant.lowering, "lowering"), framework) : framework;
  const bool half = precision.storage_bytes < kFp32Bytes;
  if (half && lowering.half_layout) lowering.layout = *lowering.half_layout;
  if (half && lowering.half_gelu) lowering.gelu = *lowering.half_gelu;
  return lowering;
}

TrainingStep expand_training_step(const Model& model, const Lowering& framework, const Precision& precision) {
  const Lowering lowering = lowering_of(model, framework, precision);
  try {
    return StepExpansion(model, {lowering, precision}).run();
  } catch (const std::overflow_error& overflow) {
    throw ModelError("model " + model.name + ": " + overflow.what() + "; expected smaller layers");
  }
}

}  // namespace tbdsim
