// Printed summaries of Keras and torchinfo become models with the parameters that they print.
#include "simulate/import/summary_network.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "tests/hwspecs/message_of.h"
#include "tests/import/files.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using test::import_file;
using testing::HasSubstr;

std::string text_of(const std::string& file) { return read_file(import_file(file), 1'000'000); }

// Parameters and multiply-adds of the model that a summary becomes.
std::pair<std::int64_t, std::int64_t> counts_of(const ImportedFile& file) {
  const test::TempDir dir;
  const std::string path = dir.write("model.yaml", file.text).string();
  const test::CliResult shown = test::run({"show", path, "--format", "json"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  const auto totals = nlohmann::json::parse(shown.out).at("totals").at(0);
  return {totals.at("parameters").get<std::int64_t>(), totals.at("forward_macs").get<std::int64_t>()};
}

std::string refusal(const std::string& text, const GivenValues& given = {}) {
  return test::message_of<SpecError>([&] { (void)keras_network(text, "k.txt", given); });
}

// Pads, a strided and a depthwise convolution, a sum, a concatenation: 3 16 9 + 32 + 16 9 + 32 + 16 16 + 16 +
// 32 10 + 10 trained parameters, 64 moving statistics.
TEST(KerasSummary, LayersAreConnectedAsTheColumnSays) {
  const ImportedFile file = keras_network(text_of("keras_functional.txt"), "keras_functional.txt", {});
  const auto [parameters, macs] = counts_of(file);
  EXPECT_EQ(parameters, 1'242);
  EXPECT_EQ(macs, 256 * (432 + 144 + 256) + 320);
  EXPECT_THAT(file.text, HasSubstr("padding: 1"));
  EXPECT_THAT(file.text, HasSubstr("groups: 16"));
  EXPECT_THAT(file.text, HasSubstr("type: concat"));
}

// 320 + 18,496 + 16,010 parameters; a sequential model does not print its input.
TEST(KerasSummary, AskForTheInputThatIsNotShown) {
  const std::string text = text_of("keras_sequential.txt");
  EXPECT_THAT(refusal(text), HasSubstr("expected --set input=28x28x1"));
  const auto [parameters, macs] = counts_of(keras_network(text, "k.txt", {{"input", "28x28x1"}}));
  EXPECT_EQ(parameters, 34'826);
  EXPECT_EQ(macs, 26 * 26 * 288 + 11 * 11 * 18'432 + 16'000);
  EXPECT_THAT(refusal(text, {{"input", "28x28x3"}}), HasSubstr("320 parameters for 32 channels of 3"));
}

// A summary as Keras 2 printed it, without boxes.
TEST(KerasSummary, OldOnesToo) {
  const std::string text =
      "Model: \"m\"\n_________________________________________________________________\n"
      " Layer (type)                Output Shape              Param #   \n"
      "=================================================================\n"
      " input_1 (InputLayer)        [(None, 8, 8, 3)]         0         \n"
      "                                                                 \n"
      " conv2d (Conv2D)             (None, 8, 8, 4)           112       \n"
      "                                                                 \n"
      " flatten (Flatten)           (None, 256)               0         \n"
      " dense (Dense)               (None, 10)                2570      \n"
      "=================================================================\n"
      "Total params: 2,682\n";
  EXPECT_EQ(counts_of(keras_network(text, "k.txt", {})).first, 2'682);
}

// A narrow terminal cuts types; a model inside of another shows none of its layers.
TEST(KerasSummary, AModelInsideOfAnotherIsNamed) {
  const std::string text =
      "Model: \"model\"\n Layer (type)                Output Shape              Param #   \n"
      "=================================================================\n"
      " input_1 (InputLayer)        [(None, 160, 160, 3)]     0         \n"
      " mobilenetv2_1.00_160 (Func  (None, 5, 5, 1280)        2257984   \n"
      " tional)                                                         \n"
      "Total params: 2,257,984\n";
  EXPECT_THAT(refusal(text),
              testing::AllOf(HasSubstr("k.txt:5:1: 'mobilenetv2_1.00_160': is a model of its own"),
                             HasSubstr("model.get_layer('mobilenetv2_1.00_160')")));
}

TEST(KerasSummary, SaysWhatIsMissing) {
  std::string cut = text_of("keras_functional.txt");
  cut.replace(cut.rfind("re_lu[0][0]"), 11, "b\u2026");
  EXPECT_THAT(refusal(cut), HasSubstr("cut and means several layers above"));
  std::string unknown = text_of("keras_functional.txt");
  unknown.replace(unknown.find("(ReLU)"), 6, "(GRU) ");
  EXPECT_THAT(refusal(unknown), HasSubstr("operators without a layer of tbd-sim: GRU (1)"));
  std::string wrong = text_of("keras_functional.txt");
  wrong.replace(wrong.find(" 432 "), 5, " 433 ");
  EXPECT_THAT(refusal(wrong), testing::AllOf(HasSubstr("k.txt:9:"), HasSubstr("'conv2d_2': 433 parameters")));
}

// torchvision's alexnet: 61,100,840 parameters, 714,188,480 multiply-adds.
TEST(TorchinfoSummary, AlexNetHasItsPublishedCounts) {
  const ImportedFile file = torchinfo_network(text_of("torchinfo_alexnet.txt"), "torchinfo_alexnet.txt");
  EXPECT_EQ(counts_of(file), (std::pair<std::int64_t, std::int64_t>{61'100'840, 714'188'480}));
}

TEST(TorchinfoSummary, SaysWhatIsMissing) {
  const auto wrong = [](const std::string& text) {
    return test::message_of<SpecError>([&] { (void)torchinfo_network(text, "t.txt"); });
  };
  std::string text = text_of("torchinfo_alexnet.txt");
  std::string without = text;
  without.replace(without.find("Input Shape"), 11, "           ");
  EXPECT_THAT(wrong(without), HasSubstr("col_names=("));
  std::string block = text;
  block.replace(block.find("Sequential: 1-1"), 15, "BasicBlock: 1-1");
  EXPECT_THAT(wrong(block), HasSubstr("BasicBlock joins its modules by a function"));
  std::string gap = text;
  gap.replace(gap.find("[1, 64, 27, 27]           [1, 192"), 15, "[1, 64, 20, 20]");
  EXPECT_THAT(wrong(gap), HasSubstr("takes 64 x 20 x 20, and the module before makes 64 x 27 x 27"));
}

}  // namespace
}  // namespace tbdsim
