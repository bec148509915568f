// ResNet-50 as three frameworks of the TBD suite train it, layer by layer.
//
// resnet50_layers/<variant>.csv: output shape, trained parameters and multiply-adds of one image for every
// layer, counted from the suite's sources (slim nets/resnet_v2.py, MXNet 0.11 symbols/resnet.py, CNTK
// ResNet50_ImageNet1K.cntk) by a script that knows nothing of this project. Their totals are the published
// ones: torchvision resnet50 has 25,557,032 parameters and 4.089 GMAC; slim's table gives resnet_v2_50 with
// 1000 classes 25,568,360 parameters (1001 classes: 2048 + 1 more) and 6.97 b operations, two for each
// multiply-add.
#include <algorithm>
#include <fstream>
#include <map>

#include <gmock/gmock.h>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/number.h"
#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

struct VariantCounts {
  const char* name;
  std::size_t layers;
  std::int64_t parameters, forward_macs, training_macs;
};

// Training: forward, gradient by the input, gradient by the weights; three times the forward work less the
// input gradient of convolutions that read the image. v1.5: 3 x 4,089,184,256 - 118,013,952 (conv1, 7x7 on
// the image). MXNet normalises the image by a layer whose shift is trained, so its first convolution needs
// the input gradient: 3 x 4,089,184,256. slim: 3 x 3,482,257,408 - 118,013,952.
constexpr VariantCounts kVariants[] = {
    {"slim_v2", 174, 25'570'409, 3'482'257'408, 10'328'758'272},
    {"mxnet_v2", 174, 25'549'483, 4'089'184'256, 12'267'552'768},
    {"v1.5", 175, 25'557'032, 4'089'184'256, 12'149'538'816},
};

void PrintTo(const VariantCounts& counts, std::ostream* out) { *out << counts.name; }

class ResNet50 : public testing::TestWithParam<VariantCounts> {
 protected:
  static Model build(const std::string& variant) {
    const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/resnet50.yaml");
    return build_model(file, find_variant(file, variant, ""));
  }
};

// A layer in the words of the table.
std::vector<std::string> row_of(const LayerSummary& layer) {
  EXPECT_EQ(layer.forward_macs.fixed, 0) << layer.name;  // all work is for samples
  EXPECT_EQ(layer.training_macs.fixed, 0) << layer.name;
  return {layer.name, to_text(layer.output), std::to_string(layer.trained_parameters),
          std::to_string(layer.forward_macs.per_sample), std::to_string(layer.training_macs.per_sample)};
}

TEST_P(ResNet50, EveryLayerMatchesTheTable) {
  const TrainingStep step = test::step_of(build(GetParam().name));
  const std::string file =
      std::string(TBDSIM_SOURCE_DIR "/tests/graphs/resnet50_layers/") + GetParam().name + ".csv";
  std::ifstream in(file);
  CsvReader reader(in, file);
  std::map<std::string, std::vector<std::string>> expected;
  for (std::vector<std::string> row; reader.next(row);) expected[row[0]] = row;
  ASSERT_EQ(expected.size(), GetParam().layers);
  ASSERT_EQ(step.layers.size(), GetParam().layers);
  for (const LayerSummary& layer : step.layers) {
    ASSERT_TRUE(expected.contains(layer.name)) << layer.name;
    EXPECT_EQ(row_of(layer), expected.at(layer.name));
  }
}

TEST_P(ResNet50, TotalsAreThePublishedOnes) {
  const TrainingStep step = test::step_of(build(GetParam().name));
  std::int64_t parameters = 0;
  Size forward;
  Size training;
  for (const LayerSummary& layer : step.layers) {
    parameters += layer.trained_parameters;
    forward += layer.forward_macs;
    training += layer.training_macs;
  }
  EXPECT_EQ(parameters, GetParam().parameters);
  EXPECT_EQ(forward.per_sample, GetParam().forward_macs);
  EXPECT_EQ(training.per_sample, GetParam().training_macs);
}

// Each of the 16 units ends in an addition, and each opens with a tensor that two layers read: the branch and
// the shortcut (the addition itself in identity units). Its two gradients are summed once.
TEST_P(ResNet50, OneGradientSumForEachUnit) {
  const TrainingStep step = test::step_of(build(GetParam().name));
  const auto runs = [&](std::string_view op) {
    return std::count_if(step.kernels.begin(), step.kernels.end(),
                         [&](const Kernel& k) { return k.op == op; });
  };
  EXPECT_EQ(runs("add"), 16);
  EXPECT_EQ(runs("gradient_sum"), 16);
}

INSTANTIATE_TEST_SUITE_P(Variants, ResNet50, testing::ValuesIn(kVariants));

// Bytes of feature maps that outlive the last forward kernel: what is kept for the backward pass.
Size stash(const TrainingStep& step) {
  int last_forward = 0;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    if (step.kernels[k].phase == Phase::forward) last_forward = static_cast<int>(k);
  }
  Size bytes;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.role != TensorRole::feature_map) continue;
    if (tensor.first_use <= last_forward && tensor.last_use > last_forward) bytes += tensor.bytes;
  }
  return bytes;
}

constexpr std::int64_t kImageElements = 3 * 224 * 224;

// Kept under MXNet's rules (operators' DeclareBackwardDependency: a convolution its input, a norm its input,
// an activation input and output, a pooling input and output), counted beside the layer table: 29,582,800
// elements an image. That count leaves out the image, which the first norm reads again (+150,528), and counts
// the 1000 scores of fc1, which nothing reads again: softmax keeps its own output (-1000).
TEST(ResNet50Stash, MxnetKeepsInputsAndOutputsOfActivations) {
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/resnet50.yaml");
  const Model model = build_model(file, find_variant(file, "mxnet_v2", ""));
  const TrainingStep step = test::step_of(model, {.relu_keeps = ReluKeeps::input_and_output});
  EXPECT_EQ(stash(step), (Size{0, 4 * (29'582'800 + kImageElements - 1000)}));
}

// Under TensorFlow's rules (ReluGrad the output alone, FusedBatchNormGrad and convolutions their inputs,
// MaxPoolGrad both): 15,483,346 elements, again without the image, which conv1 reads again, and with the 1001
// scores.
TEST(ResNet50Stash, TensorFlowKeepsOutputsOfActivations) {
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/resnet50.yaml");
  const Model model = build_model(file, find_variant(file, "slim_v2", ""));
  const TrainingStep step = test::step_of(model, {.relu_keeps = ReluKeeps::output});
  EXPECT_EQ(stash(step), (Size{0, 4 * (15'483'346 + kImageElements - 1001)}));
}

// In place, ReLU's output takes the place of its input, a norm's or an addition's output. Kept are: the
// image, the output of every convolution (for its norm) and of every relu (for itself and what reads it), and
// what pool1, avgpool and softmax put out.
TEST(ResNet50Stash, InPlaceReluKeepsOneTensor) {
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/resnet50.yaml");
  const Model model = build_model(file, find_variant(file, "v1.5", ""));
  std::int64_t elements = kImageElements;
  for (const GraphLayer& layer : model.graphs.at("main").layers) {
    const std::string& type = layer.spec.type;
    if (type == "conv2d" || type == "relu" || type == "max_pool" || type == "global_avg_pool" ||
        type == "softmax_loss") {
      elements += elements_per_row(layer.output);
    }
  }
  const TrainingStep step = test::step_of(model, {.relu_keeps = ReluKeeps::output, .relu_in_place = true});
  EXPECT_EQ(stash(step), (Size{0, 4 * elements}));
}

}  // namespace
}  // namespace tbdsim
