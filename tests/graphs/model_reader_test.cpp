// Model files: every file of the catalogue, and what a reader does with small ones.
#include <filesystem>

#include <gmock/gmock.h>

#include "graphs/model.h"
#include "hwspecs/base/catalog.h"
#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

namespace fs = std::filesystem;
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

// The counts a variant promises under `expected:` are those of its kernels: trained parameters and, where
// they are given, multiply-adds of one sample forward and in training.
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
  EXPECT_EQ(parameters, variant.expected->parameters.value());
  const auto given = [](const std::optional<std::int64_t>& macs, double counted) {
    return macs ? static_cast<double>(*macs) : counted;
  };
  EXPECT_EQ(forward, given(variant.expected->forward_macs, forward));
  EXPECT_EQ(training, given(variant.expected->training_macs, training));
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
  ASSERT_EQ(model.training[0].runs.size(), 1u);
  EXPECT_EQ(model.training[0].runs[0].backward, Backward::weights);
  EXPECT_TRUE(model.training[0].update);
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
    "    outputs: [c]\n"
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
  EXPECT_EQ(find_variant(file, "HUGE", "").name, "large");
  EXPECT_EQ(find_variant(file, "", "mxnet").name, "large");
  EXPECT_EQ(find_variant(file, "", "").name, "wide");  // of no framework: the first
  EXPECT_THAT(
      [&] { (void)find_variant(file, "", "cntk"); },  // nobody's own: not silently some other
      ThrowsMessage<UsageError>(HasSubstr("m is trained by pytorch, mxnet, not by 'cntk'; expected a "
                                          "--framework that trains it, or a --variant, one of wide, large")));
  EXPECT_EQ(find_variant(file, "wide", "mxnet").name, "wide");  // asked for by name
  EXPECT_THAT([&] { (void)find_variant(file, "lrage", ""); },
              ThrowsMessage<UsageError>(HasSubstr(
                  "unknown variant 'lrage' of m; expected one of wide, large; did you mean 'large'?")));
}

TEST(ReadModel, TrainingProgram) {
  const Model model = model_from(model_text("[3, 8, 8]", kRelu, "sgd",
                                            "[{graph: main, backward: none, repeat: 5}, "
                                            "{graph: main, update: false}]"));
  ASSERT_EQ(model.training.size(), 2u);
  EXPECT_EQ(model.training[0].runs[0].backward, Backward::none);
  EXPECT_FALSE(model.training[0].update);
  EXPECT_EQ(model.training[0].repeat, 5);
  EXPECT_EQ(model.training[1].runs[0].backward, Backward::weights);
  EXPECT_FALSE(model.training[1].update);
}

void expect_error(const std::string& yaml, const std::string& part) {
  EXPECT_THAT([&] { (void)model_from(yaml); }, ThrowsMessage<std::runtime_error>(HasSubstr(part))) << yaml;
}

TEST(ReadModelErrors, TrainingProgram) {
  expect_error(model_text("[3, 8, 8]", kRelu, "sgd", "[{graph: mian}]"),
               "unknown graph 'mian'; did you mean 'main'?");
  expect_error(model_text("[3, 8, 8]", kRelu, "sgd", "[{graph: main, backward: none, update: true}]"),
               "updates without gradients of weights; expected 'update: false'");
  expect_error(model_text("[3, 8, 8]", kRelu, "sgd", "[]"), "has no pass; expected at least one");
  expect_error(model_text("[3, 8, 8]", kRelu, "sgd", "[{graph: main, repeat: 0}]"), "repeat");
}

// "[item, item, ...]"
std::string list_of(int count, const std::string& item) {
  std::string list = "[";
  for (int i = 0; i < count; ++i) list += (i > 0 ? ", " : "") + item;
  return list + "]";
}

TEST(ReadModelErrors, TooManyRuns) {
  expect_error(model_text("[3, 8, 8]", kRelu, "sgd", list_of(1001, "{graph: main}")),
               "model.yaml:11:11: training: has more than 1000 passes");
  expect_error(model_text("[3, 8, 8]", kRelu, "sgd", "[{runs: " + list_of(1001, "{graph: main}") + "}]"),
               "model.yaml:11:19: training[0].runs: has more than 1000 runs");
  EXPECT_EQ(model_from(model_text("[3, 8, 8]", kRelu, "sgd", list_of(1000, "{graph: main}"))).training.size(),
            1000u);
}

TEST(ReadModelErrors, TooManyNames) {
  const std::string sum = "      - {name: a, type: concat, from: ";
  expect_error(model_text("[3, 8, 8]", sum + list_of(1001, "data") + "}\n"),
               "from: names more than 1000 layers");
  EXPECT_NO_THROW((void)model_from(model_text("[3, 8, 8]", sum + list_of(1000, "data") + "}\n")));
  std::string text = model_text("[3, 8, 8]", kRelu);
  text.replace(text.find("outputs: [a]"), 12, "outputs: " + list_of(1001, "a"));
  expect_error(text, "graphs.main.outputs: names more than 1000 layers");
  std::string inputs;
  for (int i = 0; i < 1000; ++i) inputs += ", x" + std::to_string(i) + ": [3]";
  expect_error(model_text("[3, 8, 8]" + inputs, kRelu), "graphs.main.inputs: names more than 1000 inputs");
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
               "model.yaml:10:9: layer 'a': input has shape 3x8x8; expected one score for each class");
}

constexpr const char* kSized =
    "title: T\nsample: pair\nthroughput: {unit: tokens, per_length: 2}\nlargest_batch: 4\n"
    "parameters: {width: 2}\nsizes: {sequence_length: 8}\n"
    "variants:\n"
    "  v: {description: d, source: s, optimizer: sgd, dataset: books, buckets: [4, 8], parameters: {width: "
    "3}}\n"
    "graphs:\n  main:\n    inputs: {data: [$sequence_length, $width]}\n    outputs: [c]\n"
    "    layers:\n      - {name: c, type: fully_connected, outputs: $width, per_position: true}\n"
    "training:\n  - {graph: main}\n";

TEST(ReadModel, SizesAreSeenByInputs) {
  const test::TempDir directory;
  const ModelFile file = read_model_file(directory.write("m.yaml", kSized));
  const Variant& variant = file.variants[0];
  EXPECT_EQ(file.throughput.unit, "tokens");
  EXPECT_EQ(file.throughput.per_length, 2);
  EXPECT_EQ(file.throughput.per_sample, 0);
  EXPECT_EQ(file.largest_batch, 4);
  EXPECT_EQ(variant.dataset, "books");
  EXPECT_THAT(variant.buckets, testing::ElementsAre(4, 8));
  const Model model = build_model(file, variant);
  EXPECT_EQ(model.graphs.at("main").layers[0].output, (Shape{{0, 1}, {8, 3}}));
  const Model longer = build_model(file, variant, {{"sequence_length", 20}, {"width", 5}});
  EXPECT_EQ(longer.graphs.at("main").layers[0].output, (Shape{{0, 1}, {20, 5}}));
  const Model shorter = resized(longer, {{"sequence_length", 6}});  // keeps the width
  EXPECT_EQ(shorter.graphs.at("main").layers[0].output, (Shape{{0, 1}, {6, 5}}));
  EXPECT_THAT(
      [&] {
        (void)build_model(file, variant, {{"image_size", 20}});
      },
      ThrowsMessage<UsageError>(testing::StrEq("m has no image_size; it has sequence_length, width")));
}

TEST(ReadModelErrors, Sizes) {
  const auto with = [](std::string from, const std::string& to) {
    std::string text = kSized;
    return text.replace(text.find(from), from.size(), to);
  };
  expect_error(with("outputs: $width", "outputs: $sequence_length"), "unknown parameter '$sequence_length'");
  expect_error(with("{width: 2}", "{sequence_length: 2}"), "which is a parameter already");
  expect_error(with("[4, 8]", "[8, 4]"), "is not above the one before it; expected ascending lengths");
  expect_error(with("[4, 8]", "[]"), "names no length");
  expect_error(with("outputs: [c]", "outputs: [d]"), "names 'd', which is no layer of the graph");
}

TEST(ReadModel, BasedOnAnother) {
  const test::TempDir directory;
  (void)directory.write("base.yaml", kSized);
  const ModelFile file =
      read_model_file(directory.write("wide.yaml",
                                      "based_on: base\ntitle: Wide\nparameters: {width: 7}\n"
                                      "variants:\n  w: {description: d, source: s, optimizer: adam}\n"));
  EXPECT_EQ(file.name, "wide");
  EXPECT_EQ(file.title, "Wide");
  EXPECT_EQ(file.sample, "pair");
  ASSERT_EQ(file.variants.size(), 1u);
  EXPECT_EQ(build_model(file, file.variants[0]).graphs.at("main").layers[0].output, (Shape{{0, 1}, {8, 7}}));
}

// A file of one's own may be based on the catalogue's models, also under the name of one.
TEST(ReadModel, BasedOnTheCatalogue) {
  const test::TempDir directory;
  const fs::path catalogue = TBDSIM_SOURCE_DIR "/graphs/models";
  const std::string deeper = "based_on: resnet50\ntitle: Deeper\nparameters: {stage3_units: 9}\n";
  for (const char* name : {"deeper.yaml", "resnet50.yaml"}) {
    const ModelFile file = read_model_file(directory.write(name, deeper), {}, catalogue);
    require_whole(file);
    EXPECT_EQ(file.title, "Deeper");
    EXPECT_EQ(build_model(file, find_variant(file, "v1.5", "")).graphs.at("main").layers.size(),
              build_model(read_model_file(catalogue / "resnet50.yaml"), find_variant(file, "v1.5", ""))
                      .graphs.at("main")
                      .layers.size() +
                  3 * 10);  // a unit: three convolutions with norms, three activations and the sum
  }
}

// Keys that the file adds to that model must be used: else they are misspelt.
TEST(ReadModelErrors, WhatIsAddedToTheCatalogueIsUsed) {
  const test::TempDir directory;
  const auto read = [&](const std::string& text) {
    require_whole(read_model_file(directory.write("a.yaml", "based_on: resnet50\ntitle: A\n" + text), {},
                                  TBDSIM_SOURCE_DIR "/graphs/models"));
  };
  EXPECT_THAT(
      [&] { read("parameters: {stage3_unit: 9}\n"); },
      ThrowsMessage<SpecError>(HasSubstr("a.yaml:3:27: parameters.stage3_unit: nothing in the model uses "
                                         "'$stage3_unit'; did you mean 'stage3_units'?")));
  EXPECT_THAT(
      [&] { read("blocks:\n  post_jon:\n    layers: [{name: a, type: relu}]\n"); },
      ThrowsMessage<SpecError>(HasSubstr("a.yaml:4:3: blocks.post_jon: no variant of the model uses this "
                                         "block; did you mean 'post_join'?")));
}

// A block that would be used with another number of repeats is one that the model uses.
TEST(ReadModel, BlocksRepeatedNoTimesAreUsed) {
  const test::TempDir directory;
  require_whole(read_model_file(
      directory.write("a.yaml",
                      "based_on: resnet50\ntitle: A\nparameters: {stage1_units: 1, stage2_units: 1, "
                      "stage3_units: 1, stage4_units: 1}\nblocks:\n"
                      "  post_identity_unit:\n    parameters: [width, channels]\n    layers:\n"
                      "      - {name: $name, type: conv2d, filters: $channels, kernel: 1}\n"
                      "      - {name: \"${name}_n\", type: conv2d, filters: $width, kernel: 1}\n"),
      {}, TBDSIM_SOURCE_DIR "/graphs/models"));
}

TEST(ReadModel, TheCatalogueHasNothingUnused) {
  for (const auto& entry : fs::directory_iterator(TBDSIM_SOURCE_DIR "/graphs/models"))
    EXPECT_NO_THROW(require_whole(read_model_file(entry.path()))) << entry.path();
}

TEST(ReadModel, VariantsWithoutFrameworksArePyTorchs) {
  const test::TempDir directory;
  const ModelFile file = read_model_file(directory.write("m.yaml", kVariants));
  EXPECT_EQ(file.variants[0].frameworks, std::vector<std::string>{"pytorch"});
  EXPECT_EQ(find_variant(file, "", "pytorch").name, "wide");
  std::string text = kVariants;
  text.replace(text.find("parameters: {width: 9}"), 0, "frameworks: [], ");
  EXPECT_TRUE(read_model_file(directory.write("m.yaml", text)).variants[0].frameworks.empty());
}

// Any of the expected counts may be left out.
TEST(ReadModel, ExpectedCountsMayBeSome) {
  const test::TempDir directory;
  std::string text = kVariants;
  text.replace(text.find("parameters: {width: 9}"), 0, "expected: {parameters: 18}, ");
  const Variant variant = read_model_file(directory.write("m.yaml", text)).variants[0];
  EXPECT_EQ(variant.expected->parameters, 18);
  EXPECT_EQ(variant.expected->forward_macs, std::nullopt);
  EXPECT_EQ(variant.expected->source, "s");
}

TEST(ReadModelErrors, BasedOn) {
  const test::TempDir directory;
  const auto read = [&](const std::string& text) { (void)read_model_file(directory.write("a.yaml", text)); };
  (void)directory.write("b.yaml", "based_on: a\n");
  EXPECT_THAT([&] { read("based_on: b\n"); },
              ThrowsMessage<SpecError>(HasSubstr("is based on a model that is based")));
  EXPECT_THAT(
      [&] { read("based_on: bb\n"); },
      ThrowsMessage<SpecError>(HasSubstr("a.yaml:1:11: based_on: there is no model 'bb' in the catalogue "
                                         "or the same folder; did you mean 'b'?")));
  EXPECT_THAT([&] { read("based_on: ../a\n"); },
              ThrowsMessage<SpecError>(HasSubstr("is a path; expected the name")));
}

TEST(ReadModelErrors, GraphsInNoPass) {
  std::string text = model_text("[3, 8, 8]", kRelu);
  text.replace(text.find("graphs:\n"), 8,
               "graphs:\n  idle: {inputs: {data: [4]}, layers: [{name: loss, type: softmax_loss}]}\n");
  expect_error(text, "graph 'idle' is in no pass of the training");
}

}  // namespace
}  // namespace tbdsim
