// Printed summaries of Keras and torchinfo become models with the parameters that they print.
#include "simulate/import/summary_network.h"

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "tests/hwspecs/message_of.h"
#include "tests/import/files.h"
#include "tests/import/network_counts.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using test::counts_of;
using test::import_file;
using testing::HasSubstr;

std::string text_of(const std::string& file) { return read_file(import_file(file), 1'000'000); }

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
  EXPECT_EQ(counts_of(keras_network(text, "k.txt", {})).parameters, 2'682);
}

// A narrow terminal cuts types; a model inside of another shows none of its layers.
// Keras 2 cuts long cells anywhere: "..._re" and "lu (ReLU)" are one name, which a row below reads. 432 +
// 2304 + 16.
TEST(KerasSummary, NamesThatLinesCutAreJoined) {
  constexpr const char* kSummary =
      "Model: \"cut\"\n"
      " Layer (type)                Output Shape                 Param #   Connected to                  \n"
      "==================================================================================================\n"
      " input_1 (InputLayer)        [(None, 8, 8, 3)]            0         []                            \n"
      " a_first_convolution_of_all  (None, 8, 8, 16)             432       ['input_1[0][0]']             \n"
      "  (Conv2D)                                                                                        \n"
      " expanded_conv_depthwise_re  (None, 8, 8, 16)             0         ['a_first_convolution_of_all[0\n"
      " lu (ReLU)                                                          ][0]']                        \n"
      " last (Conv2D)               (None, 8, 8, 16)             2320      ['expanded_conv_depthwise_relu\n"
      "                                                                    [0][0]']                      \n"
      "Total params: 2752\n";
  const ImportedFile file = keras_network(kSummary, "k.txt", {});
  EXPECT_THAT(file.text, HasSubstr("name: \"expanded_conv_depthwise_relu\""));
  EXPECT_EQ(counts_of(file).parameters, 432 + 2304 + 16);
}

// summary(expand_nested=True) of Keras 3: layers of a Sequential follow it, three blanks to the right.
// 3*3*3*8 + 8, 3*3*8 + 8, 8*16 + 16 and 4096*10 + 10.
TEST(KerasSummary, LayersOfASequentialInsideAreRead) {
  constexpr const char* kSummary =
      "┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃\n"
      "│ input_layer_1 (InputLayer)      │ (None, 32, 32, 3)      │             0 │\n"
      "│ backbone (Sequential)           │ (None, 16, 16, 16)     │           448 │\n"
      "│    └ conv2d_1 (Conv2D)          │ (None, 16, 16, 8)      │           224 │\n"
      "│    └ depthwise_conv2d           │ (None, 16, 16, 8)      │            80 │\n"
      "│ (DepthwiseConv2D)               │                        │               │\n"
      "│    └ conv2d_2 (Conv2D)          │ (None, 16, 16, 16)     │           144 │\n"
      "│ flatten (Flatten)               │ (None, 4096)           │             0 │\n"
      "│ dense_1 (Dense)                 │ (None, 10)             │        40,970 │\n";
  const ImportedFile file = keras_network(kSummary, "k.txt", {});
  EXPECT_THAT(file.text, HasSubstr("name: \"depthwise_conv2d\""));
  EXPECT_EQ(counts_of(file).parameters, 224 + 80 + 144 + 40'970);
}

// Where not all is a chain, the column says what reads the model inside and what that reads.
TEST(KerasSummary, ASequentialInsideIsConnectedByItsName) {
  constexpr const char* kSummary =
      "┃ Layer (type)               ┃ Output Shape       ┃   Param # ┃ Connected to                  ┃\n"
      "│ picture (InputLayer)       │ (None, 8, 8, 4)    │         0 │ -                             │\n"
      "│ inner (Sequential)         │ (None, 8, 8, 4)    │        20 │ picture[0][0]                 │\n"
      "│    └ inside (Conv2D)       │ (None, 8, 8, 4)    │        20 │ -                             │\n"
      "│ beside (Conv2D)            │ (None, 8, 8, 4)    │        20 │ picture[0][0]                 │\n"
      "│ sum (Add)                  │ (None, 8, 8, 4)    │         0 │ inner[0][0], beside[0][0]     │\n"
      "│ flatten (Flatten)          │ (None, 256)        │         0 │ sum[0][0]                     │\n";
  const ImportedFile file = keras_network(kSummary, "k.txt", {});
  EXPECT_EQ(counts_of(file).parameters, 40);
  EXPECT_THAT(file.text, HasSubstr("name: \"sum\""));
}

// Models inside of Keras 2 stand in frames, a chain of layers is read: 3*3*3*8 + 8, 8*4 + 4 and 256*10 + 10.
// The first model's input is that of the whole where nothing stands above it.
TEST(KerasSummary, LayersOfAFunctionalInsideAreReadWhereTheyAreAChain) {
  const std::string head =
      " Layer (type)                Output Shape              Param #   \n"
      "=================================================================\n";
  const std::string inside =
      " inner (Functional)          (None, 8, 8, 4)           260       \n"
      "|---------------------------------------------------------------|\n"
      "| input_2 (InputLayer)       [(None, 8, 8, 3)]         0        |\n"
      "|                                                               |\n"
      "| conv2d (Conv2D)            (None, 8, 8, 8)           224      |\n"
      "|| conv2d_1 (Conv2D)         (None, 8, 8, 4)           36      ||\n"
      "-----------------------------------------------------------------\n"
      " flatten (Flatten)           (None, 256)               0         \n"
      " dense (Dense)               (None, 10)                2570      \n";
  const std::string whole =
      head + " input_1 (InputLayer)        [(None, 8, 8, 3)]         0         \n" + inside;
  EXPECT_EQ(counts_of(keras_network(whole, "k.txt", {})).parameters, 224 + 36 + 2'570);
  EXPECT_EQ(counts_of(keras_network(head + inside, "k.txt", {})).parameters, 224 + 36 + 2'570);
  std::string joins = whole;
  joins.replace(joins.find("conv2d_1 (Conv2D)"), 17, "add_1 (Add)      ");
  EXPECT_THAT(refusal(joins), HasSubstr("'add_1': reads several layers of a model inside of another"));
}

// A layer that is called twice is one row that reads two layers.
TEST(KerasSummary, ALayerThatIsUsedTwiceIsRefused) {
  const std::string conv = refusal(
      " Layer (type)       Output Shape      Param #  Connected to\n"
      " i (InputLayer)     [(None, 8, 8, 4)] 0        []\n"
      " c (Conv2D)         (None, 8, 8, 4)   20       ['i[0][0]', 'c[0][0]']\n");
  EXPECT_THAT(conv, HasSubstr("'c': reads 2 layers, as one that is used so often does"));
}

// A file that print_fn writes in a terminal of 80 columns lacks the columns behind.
TEST(KerasSummary, ThatIsCutSaysHowToPrintAWiderOne) {
  const test::TempDir dir;
  const std::string file = dir.write("cut.txt",
                                     "┃ Layer (type)                      ┃ Output Shape           \n"
                                     "│ conv (Conv2D)                     │ (None, 8, 8, 4)        \n")
                               .string();
  EXPECT_THAT(test::run({"import", file}).err, HasSubstr("expected a wider one: COLUMNS=200"));
}

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
  EXPECT_EQ(counts_of(file), (test::Counts{61'100'840, 714'188'480}));
}

// row_settings=("ascii_only", "var_names"): no numbers of depth, which indents tell. 8*3*9 + 8 and 8*4*4*10
// + 10.
TEST(TorchinfoSummary, WithoutDepthsGoesByIndents) {
  constexpr const char* kSummary =
      "Layer (type (var_name))      Input Shape        Output Shape       Param #     Kernel Shape\n"
      "=====\n"
      "Small (Small)                [1, 3, 4, 4]       [1, 10]            --          --\n"
      "+ Sequential (features)      [1, 3, 4, 4]       [1, 8, 4, 4]       --          --\n"
      "|    + Conv2d (0)            [1, 3, 4, 4]       [1, 8, 4, 4]       224         [3, 3]\n"
      "|    + ReLU (1)              [1, 8, 4, 4]       [1, 8, 4, 4]       --          --\n"
      "+ Linear (head)              [1, 128]           [1, 10]            1,290       --\n"
      "=====\n";
  const ImportedFile file = torchinfo_network(kSummary, "t.txt");
  EXPECT_EQ(counts_of(file).parameters, 224 + 1'290);
  EXPECT_THAT(file.text, HasSubstr("name: \"head\""));
}

// col_width=10: cells wider than their columns move those behind them. 8*3*9 + 8 and 8*4*4*10 + 10.
TEST(TorchinfoSummary, WithNarrowColumnsIsRead) {
  constexpr const char* kSummary =
      "Layer (type:depth-idx)                   Input Shape Output Shape Param #    Kernel Shape\n"
      "=====\n"
      "Sequential                               [1, 3, 4, 4] [1, 10]    --         --\n"
      "+ Conv2d: 1-1                            [1, 3, 4, 4] [1, 8, 4, 4] 224        [3, 3]\n"
      "+ ReLU: 1-2                              [1, 8, 4, 4] [1, 8, 4, 4] --         --\n"
      "+ Flatten: 1-3                           [1, 8, 4, 4] [1, 128]   --         --\n"
      "+ Linear: 1-4                            [1, 128]   [1, 10]    1,290      --\n"
      "=====\n";
  EXPECT_EQ(counts_of(torchinfo_network(kSummary, "t.txt")).parameters, 224 + 1'290);
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
  const std::string flat =
      "Layer (type:depth-idx)  Input Shape    Output Shape   Param #  Kernel Shape\n"
      "Net                     [1, 3, 4, 4]   [1, 8, 4, 4]   --       --\n"
      "+ Sequential: 1-1       [1, 3, 4, 4]   [1, 8, 4, 4]   224      --\n";
  EXPECT_THAT(wrong(flat), HasSubstr("expected torchinfo.summary with a larger depth"));
  std::string gap = text;
  gap.replace(gap.find("[1, 64, 27, 27]           [1, 192"), 15, "[1, 64, 20, 20]");
  EXPECT_THAT(wrong(gap), HasSubstr("takes 64 x 20 x 20, and the module before makes 64 x 27 x 27"));
}

}  // namespace
}  // namespace tbdsim
