// Convolutional networks: what Inception-v3 keeps for the backward pass, images of other sizes, and the names
// that tables of measured runs give the networks.
#include <gmock/gmock.h>

#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

ModelFile file_of(const std::string& model) {
  return read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/" + model + ".yaml");
}

struct Totals {
  std::int64_t parameters = 0;
  double forward_macs = 0;
};

Totals totals(const Model& model) {
  Totals sum;
  for (const LayerSummary& layer : test::step_of(model).layers) {
    sum.parameters += layer.trained_parameters;
    sum.forward_macs += layer.forward_macs.at(1);
  }
  return sum;
}

constexpr std::int64_t kInceptionImage = 3 * 299 * 299;
constexpr std::int64_t kLastBlock = 2048 * 8 * 8;  // read by an average pooling only, which needs it no more

// Counted beside the layer table as ResNet-50's (resnet50_test.cpp): 32,090,576 elements an image under
// MXNet's rules, again without the image, with the 1000 scores that nothing reads again, and with the last
// block.
TEST(InceptionV3, KeepsWhatMxnetKeeps) {
  const ModelFile file = file_of("inception_v3");
  const TrainingStep step = test::step_of(build_model(file, find_variant(file, "mxnet", "")),
                                          {.relu_keeps = ReluKeeps::input_and_output});
  EXPECT_EQ(test::kept_for_backward(step), (Size{0, 4 * (32'090'576 + kInceptionImage - 1000 - kLastBlock)}));
}

// Under TensorFlow's rules 23,153,275 elements. Beside these differences (1001 scores of each of two heads)
// the count lacks the auxiliary head's softmax (+1001) and has what dropout reads (2048), of which only the
// mask is kept, a byte an element.
TEST(InceptionV3, KeepsWhatTensorFlowKeeps) {
  const ModelFile file = file_of("inception_v3");
  const TrainingStep step = test::step_of(build_model(file, find_variant(file, "slim", "")));
  const std::int64_t elements = 23'153'275 + kInceptionImage - 2 * 1001 - kLastBlock + 1001 - 2048;
  EXPECT_EQ(test::kept_for_backward(step), (Size{0, 4 * elements + 2048}));
}

// Networks that average over all pixels, or to a fixed number of them, before their first matrix product.
struct AnySize {
  const char* model;
  const char* variant;
  std::int64_t size, larger;  // pixels
};

void PrintTo(const AnySize& c, std::ostream* out) { *out << c.model << ' ' << c.variant; }

class ImageSize : public testing::TestWithParam<AnySize> {};

// Twice as many pixels in each direction are about four times the work of the convolutions, for the same
// parameters.
TEST_P(ImageSize, ChangesWorkNotParameters) {
  const ModelFile file = file_of(GetParam().model);
  const Variant& variant = find_variant(file, GetParam().variant, "");
  const Totals usual = totals(build_model(file, variant));
  const Totals same = totals(build_model(file, variant, {{"image_size", GetParam().size}}));
  const Totals larger = totals(build_model(file, variant, {{"image_size", GetParam().larger}}));
  EXPECT_EQ(same.forward_macs, usual.forward_macs);
  EXPECT_EQ(larger.parameters, usual.parameters);
  EXPECT_GT(larger.forward_macs, 3.5 * usual.forward_macs);
  EXPECT_LT(larger.forward_macs, 4.5 * usual.forward_macs);
}

INSTANTIATE_TEST_SUITE_P(Networks, ImageSize,
                         testing::Values(AnySize{"resnet50", "slim_v2", 224, 448},
                                         AnySize{"resnet101", "mxnet_v2", 224, 448},
                                         AnySize{"resnet152", "v1", 224, 448},
                                         AnySize{"resnet18", "v1", 224, 448},
                                         AnySize{"inception_v3", "mxnet", 299, 598},
                                         AnySize{"inception_v3", "torchvision", 299, 598},
                                         AnySize{"vgg16", "torchvision_momentum", 224, 448},
                                         AnySize{"vgg13", "torchvision", 224, 448}));

struct Named {
  const char* model;
  const char* in_runs;
  const char* variant;
};

void PrintTo(const Named& c, std::ostream* out) { *out << c.model << ' ' << c.in_runs; }

class NamesInRuns : public testing::TestWithParam<Named> {};

TEST_P(NamesInRuns, FindTheirVariant) {
  const ModelFile file = file_of(GetParam().model);
  EXPECT_EQ(find_variant(file, GetParam().in_runs, "").name, GetParam().variant);
}

INSTANTIATE_TEST_SUITE_P(
    Networks, NamesInRuns,
    testing::Values(
        Named{"alexnet", "mxnet", "mxnet"}, Named{"alexnet", "tf_cnn_benchmarks", "tf_cnn_benchmarks"},
        Named{"inception_v3", "mxnet", "mxnet"},
        Named{"inception_v3", "tf_cnn_benchmarks", "tf_cnn_benchmarks"},
        Named{"inception_v3", "auxiliary head trained, NCHW, 299x299, SGD momentum", "torchvision"},
        Named{"resnet18", "torchvision", "forward_backward"},
        Named{"resnet34", "torchvision", "forward_backward"},
        Named{"resnet50", "torchvision", "forward_backward"}, Named{"resnet50", "mxnet", "mxnet_v2"},
        Named{"resnet50", "tf_cnn_benchmarks", "v1"},
        Named{"resnet50", "v1.5 (DeepLearningExamples)", "v1.5"},
        Named{"resnet50", "v1.5 (DeepLearningExamples, NCHW)", "v1.5"},
        Named{"resnet50", "v1.5 (DeepLearningExamples, NCHW, --fp16)", "v1.5"},
        Named{"resnet50", "v1b (GluonCV; stride in the 3x3, layers as v1.5)", "v1.5"},
        Named{"resnet101", "torchvision", "forward_backward"}, Named{"resnet101", "mxnet", "mxnet_v2"},
        Named{"resnet152", "torchvision", "forward_backward"}, Named{"resnet152", "mxnet", "mxnet_v2"},
        Named{"resnet152", "tf_cnn_benchmarks", "v1"}, Named{"vgg13", "torchvision", "torchvision"},
        Named{"vgg16", "torchvision", "forward_backward"},
        Named{"vgg16", "tf_cnn_benchmarks", "tf_cnn_benchmarks"}, Named{"vgg16", "train SGD", "slim_sgd"},
        Named{"vgg16", "train Adam", "slim_adam"},
        Named{"vgg16", "mxnet fine-tuning: fc6 and fc7 removed, one FC layer", "mxnet_fine_tuning"}));

// The same network compiled by XLA runs other kernels.
TEST(NamesInRuns, NotThoseOfOtherCompilers) {
  for (const char* model : {"alexnet", "inception_v3", "resnet50", "resnet152", "vgg16"}) {
    const ModelFile file = file_of(model);
    EXPECT_THROW((void)find_variant(file, "tf_cnn_benchmarks, XLA", ""), UsageError) << model;
  }
}

}  // namespace
}  // namespace tbdsim
