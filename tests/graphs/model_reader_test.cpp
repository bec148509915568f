// Model files: every file of the catalogue, and what a reader does with small ones.
#include <gmock/gmock.h>

#include "graphs/model.h"
#include "hwspecs/base/catalog.h"
#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

using test::model_from;
using test::model_text;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

constexpr const char* kRelu = "      - {name: a, type: relu}\n";

std::vector<std::filesystem::path> catalogue_models() {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  std::vector<std::filesystem::path> files;
  for (const std::string& name : catalog.names(Kind::model)) files.push_back(catalog.find(Kind::model, name));
  return files;
}

// The counts a variant promises under `expected:` are those of its kernels: trained parameters, multiply-adds
// of one sample forward and in training.
void expect_promised_counts(const ModelFile& file, const Variant& variant) {
  const TrainingStep step = test::step_of(build_model(file, variant));
  std::int64_t parameters = 0;
  double forward = 0;
  double training = 0;
  for (const LayerSummary& layer : step.layers) {
    parameters += layer.trained_parameters;
    forward += layer.forward_macs.at(1);
    training += layer.training_macs.at(1);
  }
  EXPECT_EQ(parameters, variant.expected->parameters);
  EXPECT_EQ(forward, static_cast<double>(variant.expected->forward_macs));
  EXPECT_EQ(training, static_cast<double>(variant.expected->training_macs));
}

TEST(ModelFiles, EveryVariantOfEveryFileIsBuiltAndMeetsItsCounts) {
  const auto files = catalogue_models();
  ASSERT_THAT(files, testing::Not(IsEmpty()));
  for (const auto& path : files) {
    const ModelFile file = read_model_file(path);
    for (const Variant& variant : file.variants) {
      SCOPED_TRACE(file.name + " " + variant.name);
      EXPECT_FALSE(variant.source.empty() || variant.description.empty());
      ASSERT_TRUE(variant.expected) << "has no counts to be checked against";
      expect_promised_counts(file, variant);
    }
  }
}

// A framework trains at most one variant of a model, or its default would depend on the file's order.
TEST(ModelFiles, EachFrameworkTrainsOneVariant) {
  for (const auto& path : catalogue_models()) {
    std::vector<std::string> seen;
    for (const Variant& variant : read_model_file(path).variants) {
      for (const std::string& framework : variant.frameworks) {
        EXPECT_THAT(seen, testing::Not(testing::Contains(framework))) << path;
        seen.push_back(framework);
      }
    }
  }
}

TEST(ReadModel, DescribesVariants) {
  const Model model = model_from(model_text("[3, 8, 8]", kRelu, "adam"));
  EXPECT_EQ(model.name, "model");  // the file's stem
  EXPECT_EQ(model.title, "A model");
  EXPECT_EQ(model.sample, "image");
  EXPECT_EQ(model.variant.optimizer.name, "adam");
  EXPECT_FALSE(model.variant.expected);
  ASSERT_EQ(model.training.size(), 1u);
  EXPECT_TRUE(model.training[0].backward && model.training[0].update);
  EXPECT_EQ(model.training[0].repeat, 1);
  EXPECT_EQ(model.graphs.at("main").layers[0].output, (Shape{{0, 1}, {3, 8, 8}}));
}

constexpr const char* kVariants =
    "title: T\nsample: image\n"
    "parameters: {size: 8, width: 2}\n"
    "variants:\n"
    "  wide: {description: d, source: s, optimizer: sgd, parameters: {width: 9}}\n"
    "  large: {description: d, source: s, optimizer: none, frameworks: [mxnet], also_called: [big, huge], "
    "parameters: {size: 16}}\n"
    "graphs:\n  main:\n    inputs: {data: [1, $size, $size]}\n"
    "    layers:\n      - {name: c, type: conv2d, filters: $width, kernel: 1, padding: 0}\n"
    "training:\n  - {graph: main}\n";

TEST(ReadModel, VariantsOverrideParameters) {
  EXPECT_EQ(model_from(kVariants, "wide").graphs.at("main").layers[0].output, (Shape{{0, 1}, {9, 8, 8}}));
  EXPECT_EQ(model_from(kVariants, "large").graphs.at("main").layers[0].output, (Shape{{0, 1}, {2, 16, 16}}));
}

TEST(FindVariant, ByNameAliasFrameworkOrFirst) {
  const test::TempDir directory;
  const ModelFile file = read_model_file(directory.write("m.yaml", kVariants));
  EXPECT_EQ(find_variant(file, "large", "").name, "large");
  EXPECT_EQ(find_variant(file, "huge", "").name, "large");
  EXPECT_EQ(find_variant(file, "", "mxnet").name, "large");
  EXPECT_EQ(find_variant(file, "", "").name, "wide");           // of no framework: the first
  EXPECT_THAT([&] { (void)find_variant(file, "", "cntk"); },    // nobody's own: not silently some other
              ThrowsMessage<UsageError>(HasSubstr("no variant of m is the one 'cntk' trains; expected a --variant, "
                                                  "one of wide, large")));
  EXPECT_EQ(find_variant(file, "wide", "mxnet").name, "wide");  // asked for by name
  EXPECT_THAT([&] { (void)find_variant(file, "lrage", ""); },
              ThrowsMessage<UsageError>(HasSubstr(
                  "unknown variant 'lrage' of m; expected one of wide, large; did you mean 'large'?")));
}

TEST(ReadModel, TrainingProgram) {
  const Model model = model_from(model_text("[3, 8, 8]", kRelu, "sgd",
                                            "[{graph: main, backward: false, update: false, repeat: 5}, "
                                            "{graph: main, update: false}]"));
  ASSERT_EQ(model.training.size(), 2u);
  EXPECT_FALSE(model.training[0].backward || model.training[0].update);
  EXPECT_EQ(model.training[0].repeat, 5);
  EXPECT_TRUE(model.training[1].backward);
  EXPECT_FALSE(model.training[1].update);
}

void expect_error(const std::string& yaml, const std::string& part) {
  EXPECT_THAT([&] { (void)model_from(yaml); }, ThrowsMessage<std::runtime_error>(HasSubstr(part))) << yaml;
}

TEST(ReadModelErrors, TrainingProgram) {
  expect_error(model_text("[3, 8, 8]", kRelu, "sgd", "[{graph: mian}]"),
               "unknown graph 'mian'; did you mean 'main'?");
  expect_error(model_text("[3, 8, 8]", kRelu, "sgd", "[{graph: main, backward: false}]"),
               "updates without a backward pass; expected 'update: false'");
  expect_error(model_text("[3, 8, 8]", kRelu, "sgd", "[]"), "has no pass; expected at least one");
  expect_error(model_text("[3, 8, 8]", kRelu, "sgd", "[{graph: main, repeat: 0}]"), "repeat");
}

TEST(ReadModelErrors, Inputs) {
  expect_error(model_text("[]", kRelu), "has 0 dimensions; expected 1 to 8");
  expect_error(model_text("[3, 0]", kRelu), "0");
  expect_error(model_text("[3, 8, 8]", "      - {name: data, type: relu}\n"),
               "has the name of a graph input");
}

TEST(ReadModelErrors, Variants) {
  expect_error(model_text("[3, 8, 8]", kRelu, "sdg"), "did you mean 'sgd'?");
  std::string text = kVariants;
  text.replace(text.find("width: 9"), 8, "widht: 9");
  expect_error(text, "widht");
}

TEST(ReadModelErrors, NameTheLayerAndItsLine) {
  // The layers start in line 8 of model_text.
  expect_error(model_text("[3, 8, 8]", "      - {name: a, type: softmax_loss}\n"),
               "model.yaml:9:9: layer 'a': input has shape 3x8x8; expected one score for each class");
}

}  // namespace
}  // namespace tbdsim
