#include "calibrate/measure/run/options.h"

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"

namespace tbdsim::measure {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;

Options parse(const std::vector<std::string>& arguments) { return parse_options(arguments); }

std::string error_of(const std::vector<std::string>& arguments) {
  try {
    static_cast<void>(parse_options(arguments));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Options, ReadsEachOne) {
  const Options o =
      parse({"-o", "r.csv", "--minutes", "8", "--plan", "p.csv", "--only", "gemm", "--only=conv",
             "--precision", "bf16", "--device", "2", "--seed", "7", "--no-cupti"});
  EXPECT_EQ(o.output, "r.csv");
  EXPECT_EQ(o.minutes, 8);
  EXPECT_EQ(o.plan, "p.csv");
  EXPECT_THAT(o.only, ElementsAre("gemm", "conv"));
  EXPECT_THAT(o.precisions, ElementsAre("bf16"));
  EXPECT_EQ(o.device, 2);
  EXPECT_EQ(o.seed, 7U);
  EXPECT_TRUE(o.no_cupti);
}

TEST(Options, AskForAnOutputOnlyWhenMeasuring) {
  EXPECT_THAT(error_of({}), HasSubstr("expected -o FILE.csv"));
  for (const char* option :
       {"--dry-run", "--list-ops", "--help", "-h", "--version", "--write-plan", "--self-test"}) {
    EXPECT_EQ(error_of({option}), "no error") << option;
  }
}

TEST(Options, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(error_of({"--minuts", "8"}), HasSubstr("unknown option '--minuts'; did you mean '--minutes'?"));
  EXPECT_THAT(error_of({"--only", "gem", "--dry-run"}),
              HasSubstr("--only: unknown name 'gem'; did you mean 'gemm'?"));
  EXPECT_THAT(error_of({"--precision", "fp64"}), HasSubstr("--precision: unknown name 'fp64'"));
  EXPECT_THAT(error_of({"plan.csv"}), HasSubstr("unknown option 'plan.csv'"));
  EXPECT_THAT(error_of({"--dry-run=yes"}), HasSubstr("unknown option"));
}

TEST(Options, RefusesMalformedNumbers) {
  for (const char* minutes : {"0", "-1", "nan", "inf", "8m", ""}) {
    EXPECT_THAT(error_of({"--dry-run", "--minutes", minutes}), HasSubstr("--minutes: ")) << minutes;
  }
  for (const char* device : {"-1", "1.5", "99999999999", "x"}) {
    EXPECT_THAT(error_of({"--dry-run", "--device", device}), HasSubstr("--device: ")) << device;
  }
  EXPECT_THAT(error_of({"--dry-run", "--minutes"}), HasSubstr("its value is missing"));
}

TEST(Options, HelpAndOpListNameEverything) {
  EXPECT_THAT(usage(),
              AllOf(HasSubstr("--minutes"), HasSubstr("--plan"), HasSubstr("--no-cupti"), HasSubstr("77")));
  EXPECT_THAT(ops_text(),
              AllOf(HasSubstr("batched_gemm"), HasSubstr("all_reduce"), HasSubstr("fp32,tf32,fp16,bf16")));
}

}  // namespace
}  // namespace tbdsim::measure
