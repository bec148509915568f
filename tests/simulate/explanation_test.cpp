// `tbd-sim --explain`: every step of the toy world, whose numbers toy_world.h works out by hand.
#include "simulate/report/explanation.h"

#include <gmock/gmock.h>

#include "simulate/analysis/whatif.h"
#include "simulate/prediction/predict.h"
#include "tests/simulate/toy_world.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + ' ';
  return text;
}

TEST(Explanation, OfTheToyWorld) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const Prediction p = predict(world.slow_scenario(10), specs);
  const std::string text = joined_lines(explanation(p));
  EXPECT_THAT(
      text,
      StartsWith("1. Work. Toy model (variant v1) trains on 10 images in an iteration. Its 3 layers become "
                 "7 kernels on Slow framework: 768 flop (a multiply-add is 2) and 1.93 KiB to and from"));
  EXPECT_THAT(
      text,
      HasSubstr("The one with the most time is matmul forward of fc, 1 times: arithmetic 480 ns (240 flop at "
                "66 % of 500 "
                "Mflop/s), memory 328 ns (328 B at 45 % of 1 GB/s), overhead 250 ns: 730 ns each, limited "
                "by compute."));
  EXPECT_THAT(text, HasSubstr("4.09 us active and 8.15 us idle make 12.24 us for the iteration."));
  EXPECT_THAT(text, HasSubstr("10 images in 12.24 us are 816993 images/s."));
  EXPECT_THAT(text, HasSubstr("GPU: 4.09 us active of 12.24 us are 33.4 %"));
}

// A board of half the power has products on tensor cores that take longer; arithmetic in fp32 does not.
TEST(Explanation, SaysWhatThePowerTakes) {
  const auto text_of = [](const char* precision, const char* tdp) {
    SpecCache specs = test::source_specs();
    const Scenario scenario{
        .model = "bert_base", .framework = "pytorch", .gpu = "h100_sxm", .batch = 32, .precision = precision};
    return joined_lines(explanation(predict_changed(scenario, {parse_change(tdp)}, specs)));
  };
  EXPECT_THAT(text_of("bf16", "gpu.tdp=350 W"),
              HasSubstr("The board's 350 W hold its tensor cores back: products take"));
  EXPECT_THAT(text_of("bf16", "gpu.tdp=7 kW"), testing::Not(HasSubstr("hold its tensor cores back")));
  EXPECT_THAT(text_of("fp32", "gpu.tdp=350 W"), testing::Not(HasSubstr("hold its tensor cores back")));
}

TEST(Explanation, IsOfOnePredictionInWords) {
  const test::CliResult one = test::run(
      {"--gpu", "titanxp", "--batch", "64", "--model", "seq2seq", "--framework", "mxnet", "--explain"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("lengths of the data set"));
  EXPECT_THAT(test::run({"--gpu", "titanxp", "--batch", "64", "--model", "resnet50", "--explain"}).err,
              StartsWith("tbd-sim: --explain is of one iteration, resnet50 is trained by"));
  EXPECT_EQ(test::run({"--gpu", "titanxp", "--batch", "64", "--model", "resnet50", "--framework", "mxnet",
                       "--explain", "--format", "json"})
                .exit_code,
            2);
}

}  // namespace
}  // namespace tbdsim
