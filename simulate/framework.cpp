#include "simulate/framework.h"

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostCopies = 16;

Lowering read_lowering(const SpecNode& node) {
  Lowering lowering;
  node.map([&](SpecMap& m) {
    lowering.layout = static_cast<Layout>(m.at("layout").one_of(kLayoutNames));
    lowering.conv_1x1 = static_cast<Conv1x1>(m.at("conv_1x1").one_of(kConv1x1Names));
    lowering.relu_keeps = static_cast<ReluKeeps>(m.at("relu_keeps").one_of(kReluKeepsNames));
    lowering.relu_in_place = m.at("relu_in_place").flag();
    lowering.weight_gradients =
        static_cast<GradientStorage>(m.at("weight_gradients").one_of(kGradientStorageNames));
    lowering.update = static_cast<UpdateKernels>(m.at("update").one_of(kUpdateKernelsNames));
    lowering.recurrence = static_cast<Recurrence>(m.at("recurrence").one_of(kRecurrenceNames));
    lowering.cell_products = static_cast<CellProducts>(m.at("cell_products").one_of(kCellProductsNames));
    lowering.step_gradients = static_cast<StepGradients>(m.at("step_gradients").one_of(kStepGradientsNames));
    lowering.layer_norm = static_cast<Composition>(m.at("layer_norm").one_of(kCompositionNames));
    lowering.global_norm = static_cast<GlobalNorm>(m.at("global_norm").one_of(kGlobalNormNames));
    lowering.dropout = static_cast<Composition>(m.at("dropout").one_of(kCompositionNames));
    lowering.softmax = static_cast<Composition>(m.at("softmax").one_of(kCompositionNames));
    lowering.embedding_gradient =
        static_cast<TableGradient>(m.at("embedding_gradient").one_of(kTableGradientNames));
    lowering.parameter_copies = static_cast<int>(m.at("parameter_copies").count(0, kMostCopies));
  });
  return lowering;
}

}  // namespace

Framework read_framework(const std::filesystem::path& file) {
  constexpr std::string_view kSourcedKeys[] = {"lowering", "workspace_limit", "context_memory"};
  const SpecTree tree = read_spec_file(file);
  Framework framework;
  framework.name = file.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    framework.title = m.at("title").text();
    framework.lowering = read_lowering(m.at("lowering"));
    framework.workspace_limit = m.at("workspace_limit").quantity<Bytes>();
    framework.context_memory = m.at("context_memory").quantity<Bytes>();
    framework.sources = read_sources(m, kSourcedKeys);
  });
  return framework;
}

}  // namespace tbdsim
