// Properties of the training step of every model variant under every framework's lowering and every
// precision.
#include <set>

#include <gmock/gmock.h>

#include "graphs/lowering_reader.h"
#include "tests/graphs/model_fixture.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

struct Case {
  std::string name;
  const Model* model;
  Lowering lowering;
  TrainingStep step;
  const LayerGraph* graph;  // the only one, so that layers of the step are layers of the graph
  const Precision* precision;
};

bool has_attention(const Model& model) {
  const std::vector<GraphLayer>& layers = model.graphs.begin()->second.layers;
  return std::any_of(layers.begin(), layers.end(),
                     [](const GraphLayer& l) { return l.spec.type == "attention"; });
}

// Transformers run in these, each with lowerings of its own, and other models in none of those that are only
// for transformers; transformers in half of the precisions.
constexpr std::string_view kTransformerFrameworks[] = {"pytorch", "pytorch_hf_eager", "megatron"};
constexpr std::string_view kTransformersOnly[] = {
    "pytorch_hf",       "pytorch_hf_eager", "pytorch_hf_cudnn",        "llm_c",
    "pytorch_compiled", "megatron",         "pytorch_hf_mem_efficient"};

// Recipes of fp8 and fp4 differ in kernels beside their products alone, tf32_convolutions in the arithmetic
// of kernels that fp32 and tf32 have: the plainest stands for all.
bool runs_in(const Model& model, const std::string& framework, const Precision& precision) {
  if (precision.scaling != Scaling::none || precision.cudnn_math) return false;
  if (has_attention(model))
    return std::ranges::count(kTransformerFrameworks, framework) > 0 && precision.math != MathType::fp16;
  const bool first = &precision < kPrecisions.data() + kFp32VariablePrecisions;
  return first && std::ranges::count(kTransformersOnly, framework) == 0;
}

// All combinations, made once, of training steps; frameworks that lower a model alike count as one, and amp,
// whose steps are those of fp16, is left out.
const std::vector<Case>& cases() {
  static std::vector<Model> models;
  static const std::vector<Case> all = [] {
    SpecCache specs = test::source_specs();
    const Catalog& catalog = specs.catalog();
    for (const std::string& name : catalog.names(Kind::model)) {
      const ModelFile& file = *specs.model(name);
      for (const Variant& variant : file.variants) models.push_back(build_model(file, variant));
    }
    std::vector<Case> made;
    for (const Model& model : models) {
      if (model.graphs.size() != 1 || model.training.size() != 1) continue;
      if (model.training[0].runs[0].backward == Backward::none) continue;
      for (const Precision& precision : kPrecisions) {
        if (precision.name == "amp") continue;
        std::vector<Lowering> seen;
        for (const std::string& framework : catalog.names(Kind::framework)) {
          if (!runs_in(model, framework, precision)) continue;
          const Lowering& lowering = specs.framework(framework)->lowering;
          if (std::find(seen.begin(), seen.end(), lowering_of(model, lowering, precision)) != seen.end())
            continue;
          seen.push_back(lowering_of(model, lowering, precision));
          made.push_back(
              {model.name + " " + model.variant.name + " " + framework + " " + std::string(precision.name),
               &model, lowering_of(model, lowering, precision),
               expand_training_step(model, lowering, precision), &model.graphs.begin()->second, &precision});
        }
      }
    }
    return made;
  }();
  return all;
}

std::vector<std::vector<int>> readers_of(const LayerGraph& graph) {
  std::vector<std::vector<int>> readers(graph.layers.size());
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    for (const int input : graph.layers[i].inputs) {
      if (input >= 0) readers[static_cast<std::size_t>(input)].push_back(static_cast<int>(i));
    }
  }
  return readers;
}

// Layers that pass a gradient back: one that chooses, say, has none.
std::vector<std::vector<int>> gradient_readers_of(const LayerGraph& graph) {
  std::vector<std::vector<int>> readers = readers_of(graph);
  for (std::vector<int>& of_one : readers) {
    std::erase_if(of_one, [&](int i) { return !graph.layers[static_cast<std::size_t>(i)].input_gradient; });
  }
  return readers;
}

bool needs_gradient(const GraphLayer& layer) { return layer.input_gradient || layer.weight_gradient; }

bool is_backward(const Kernel& kernel) {
  return kernel.phase == Phase::backward_data || kernel.phase == Phase::backward_weights;
}

// Some tensor of that role and layer is there while kernel k runs.
bool alive(const TrainingStep& step, TensorRole role, int layer, int k) {
  return std::any_of(step.tensors.begin(), step.tensors.end(), [&](const Tensor& tensor) {
    return tensor.role == role && tensor.layer == layer && tensor.first_use <= k && k <= tensor.last_use;
  });
}

TEST(StepProperty, ThereAreCases) { EXPECT_GE(cases().size(), 4u * 4u * 5u); }

TEST(StepProperty, LifetimesAreIntervalsOfTheStep) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const int kernels = static_cast<int>(c.step.kernels.size());
    for (const Tensor& tensor : c.step.tensors) {
      ASSERT_GE(tensor.first_use, 0);
      ASSERT_LE(tensor.first_use, tensor.last_use);
      ASSERT_LT(tensor.last_use, kernels);
      ASSERT_GE(tensor.bytes.fixed + tensor.bytes.per_sample, 1);
    }
  }
}

// A kernel said to be the same as an earlier one computes and moves what that one does, and that one is the
// first of its sort.
TEST(StepProperty, SameKernelsComputeAndMoveTheSame) {
  std::size_t repeated = 0;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    for (std::size_t k = 0; k < c.step.kernels.size(); ++k) {
      const Kernel& kernel = c.step.kernels[k];
      if (kernel.duplicate_of < 0) continue;
      ++repeated;
      ASSERT_LT(kernel.duplicate_of, static_cast<int>(k));
      const Kernel& first = c.step.kernels[static_cast<std::size_t>(kernel.duplicate_of)];
      ASSERT_EQ(first.duplicate_of, -1);
      ASSERT_EQ(first.kind, kernel.kind);
      ASSERT_EQ(first.phase, kernel.phase);
      ASSERT_EQ(first.op, kernel.op);
      ASSERT_EQ(first.math, kernel.math);
      ASSERT_TRUE(first.shape == kernel.shape);
      ASSERT_TRUE(first.flops == kernel.flops);
      ASSERT_TRUE(first.read_bytes == kernel.read_bytes && first.written_bytes == kernel.written_bytes);
    }
  }
  EXPECT_GT(repeated, 0u);
}

// Forward, then backward, then updates, after gradients were filled with zeros; kernels of a layer carry its
// index.
TEST(StepProperty, PhasesFollowEachOther) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    int stage = 0;
    for (const Kernel& kernel : c.step.kernels) {
      const int now = kernel.phase == Phase::forward ? 0 : kernel.phase == Phase::update ? 2 : 1;
      if (kernel.op != "fill") {
        ASSERT_GE(now, stage);
        stage = now;
      }
      ASSERT_LT(kernel.layer, static_cast<int>(c.step.layers.size()));
      ASSERT_GE(kernel.repeat, 1);
      ASSERT_GT(kernel.read_bytes.at(1) + kernel.written_bytes.at(1), 0);
    }
    EXPECT_EQ(stage, c.model->variant.optimizer.name == "none" ? 1 : 2);
  }
}

// Puts together the gradients that a layer's readers hand back.
bool gathers(const Kernel& kernel) { return kernel.op == "gradient_sum" || kernel.op == "gradient_concat"; }

// Between the precisions of weights and their gradients, or of weights alone, outside the passes.
bool converts(const Kernel& kernel) {
  return kernel.op == "cast" || kernel.op == "unscale" || kernel.op == "gradient_norm" ||
         kernel.op == "clip" || kernel.op == "fill" || kernel.op == "copy" || kernel.op.starts_with("l2_");
}

// Feature maps are born in the forward pass, with the first kernel of their layer.
TEST(StepProperty, FeatureMapsAreBornWithTheirLayer) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    for (const Tensor& tensor : c.step.tensors) {
      if (tensor.role != TensorRole::feature_map) continue;
      const Kernel& first = c.step.kernels[static_cast<std::size_t>(tensor.first_use)];
      ASSERT_EQ(first.phase, Phase::forward);
      if (tensor.layer >= 0) {
        ASSERT_EQ(first.layer, tensor.layer);
      }
    }
  }
}

// The tensors that a layer's forward kernels read, and those that its backward kernels read again, are alive
// when they run. A tensor written in place lives under the name of the layer that made the buffer.
TEST(StepProperty, InputsAreAliveWhenReadAgain) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto owner = [&](int layer) {
      while (layer >= 0 &&
             std::none_of(c.step.tensors.begin(), c.step.tensors.end(), [&](const Tensor& tensor) {
               return tensor.role == TensorRole::feature_map && tensor.layer == layer;
             })) {
        layer = c.graph->layers[static_cast<std::size_t>(layer)].inputs[0];
      }
      return layer;
    };
    std::vector<int> owners;
    for (std::size_t i = 0; i < c.graph->layers.size(); ++i) owners.push_back(owner(static_cast<int>(i)));
    for (std::size_t k = 0; k < c.step.kernels.size(); ++k) {
      const Kernel& kernel = c.step.kernels[k];
      if (kernel.layer < 0 || kernel.phase == Phase::update || gathers(kernel) || converts(kernel)) continue;
      const GraphLayer& layer = c.graph->layers[static_cast<std::size_t>(kernel.layer)];
      const BackwardNeeds needs = layer.spec.layer->backward_needs(layer.site(), {c.lowering, *c.precision});
      if (kernel.phase == Phase::forward || needs.inputs) {
        for (const int input : layer.inputs) {
          const int made_by = input < 0 ? -1 : owners[static_cast<std::size_t>(input)];
          ASSERT_TRUE(alive(c.step, TensorRole::feature_map, made_by, static_cast<int>(k)))
              << layer.spec.name;
        }
      }
      if (is_backward(kernel) && needs.output) {
        const int made_by = owners[static_cast<std::size_t>(kernel.layer)];
        ASSERT_TRUE(alive(c.step, TensorRole::feature_map, made_by, static_cast<int>(k))) << layer.spec.name;
      }
    }
  }
}

// A gradient map is never used before it is written: its first kernel is a backward kernel of a layer that
// reads the map's tensor, or what gathers several gradients; and it ends in the backward pass.
TEST(StepProperty, GradientMapsAreWrittenBeforeTheyAreUsed) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto readers = readers_of(*c.graph);
    for (const Tensor& tensor : c.step.tensors) {
      if (tensor.role != TensorRole::gradient_map) continue;
      const Kernel& first = c.step.kernels[static_cast<std::size_t>(tensor.first_use)];
      ASSERT_TRUE(is_backward(first));
      ASSERT_TRUE(is_backward(c.step.kernels[static_cast<std::size_t>(tensor.last_use)]));
      if (first.layer == tensor.layer) {
        ASSERT_TRUE(gathers(first));
      } else {
        ASSERT_THAT(readers[static_cast<std::size_t>(tensor.layer)], testing::Contains(first.layer));
      }
    }
  }
}

// While a layer's backward kernels run, the gradient of its output is there: its own map, or, where the only
// reader is an addition, that addition's.
TEST(StepProperty, OutputGradientsAreAliveInBackwardKernels) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto readers = gradient_readers_of(*c.graph);
    const auto owner = [&](int layer) {
      while (true) {
        const auto& all = readers[static_cast<std::size_t>(layer)];
        const bool shared =
            all.size() == 1 &&
            c.graph->layers[static_cast<std::size_t>(all[0])].spec.layer->gradient_is_view(c.lowering);
        if (!shared) return layer;
        layer = all[0];
      }
    };
    for (std::size_t k = 0; k < c.step.kernels.size(); ++k) {
      const Kernel& kernel = c.step.kernels[k];
      if (!is_backward(kernel) || converts(kernel)) continue;
      const int made_by = owner(kernel.layer);
      if (readers[static_cast<std::size_t>(made_by)].empty()) continue;  // the loss itself
      ASSERT_TRUE(alive(c.step, TensorRole::gradient_map, made_by, static_cast<int>(k)))
          << c.step.layers[static_cast<std::size_t>(kernel.layer)].name;
    }
  }
}

// One sum, or concatenation of parts, wherever the output of a layer that needs a gradient gets several.
TEST(StepProperty, OneGradientSumForEachJoin) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto readers = gradient_readers_of(*c.graph);
    int joins = 0;
    for (std::size_t i = 0; i < readers.size(); ++i) {
      if (readers[i].size() > 1 && needs_gradient(c.graph->layers[i])) ++joins;
    }
    int sums = 0;
    for (const Kernel& kernel : c.step.kernels) sums += gathers(kernel) ? 1 : 0;
    EXPECT_EQ(sums, joins);
  }
}

// No lowering and no precision changes what is learnt or how much arithmetic that is, but for attention,
// whose scores are computed again going back where none are kept; and where a recurrent cell multiplies input
// and state at once, it also computes a gradient of its input that nothing needs.
TEST(StepProperty, CountsDoNotDependOnFrameworkOrPrecision) {
  std::map<const Model*, const TrainingStep*> first;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const TrainingStep& reference = *first.emplace(c.model, &c.step).first->second;
    ASSERT_EQ(c.step.layers.size(), reference.layers.size());
    for (std::size_t i = 0; i < reference.layers.size(); ++i) {
      ASSERT_EQ(c.step.layers[i].trained_parameters, reference.layers[i].trained_parameters);
      if (reference.layers[i].type == "attention") continue;
      if (reference.layers[i].type == "lstm" && !c.graph->layers[i].input_gradient) continue;
      ASSERT_EQ(c.step.layers[i].training_macs, reference.layers[i].training_macs);
    }
  }
}

// Tensors that backward passes keep besides inputs and outputs: masks.
Size masks(const Case& c, const Precision& precision) {
  Size bytes;
  for (const GraphLayer& layer : c.graph->layers) {
    if (!layer.input_gradient && !layer.weight_gradient) continue;
    bytes +=
        layer.spec.layer->backward_needs(layer.site(), {c.lowering, precision}).extra_bytes * layer.steps;
  }
  return bytes;
}

// Half the bytes an element, from fp32 to fp16: the sum of all feature maps halves exactly, but for masks,
// where another layout makes a copy a view, and where layers stay in single precision.
TEST(StepProperty, HalfPrecisionHalvesFeatureMaps) {
  std::map<std::string, Size> fp32;
  std::map<std::string, Layout> layouts;
  for (const Case& c : cases()) {
    if (std::ranges::any_of(c.graph->layers, [](const GraphLayer& layer) { return layer.spec.fp32; }))
      continue;
    const std::size_t space = c.name.rfind(' ');
    const std::string base = c.name.substr(0, space);
    const Precision* precision = nullptr;
    for (const Precision& known : kPrecisions) {
      if (known.name == c.name.substr(space + 1)) precision = &known;
    }
    ASSERT_NE(precision, nullptr);
    Size sum = masks(c, *precision) * -1;
    for (const Tensor& tensor : c.step.tensors) {
      if (tensor.role == TensorRole::feature_map) sum += tensor.bytes;
    }
    if (precision->name == "fp32") {
      fp32[base] = sum;
      layouts[base] = c.lowering.layout;
    }
    if (precision->name == "fp16" && c.lowering.layout == layouts.at(base)) {
      EXPECT_EQ(sum * 2, fp32.at(base)) << base;
    }
  }
}

}  // namespace
}  // namespace tbdsim
