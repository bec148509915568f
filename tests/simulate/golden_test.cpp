// Whole outputs, byte for byte, as they stand in tests/golden/. A change of output is a change of these
// files:
//
//   TBDSIM_REGENERATE_GOLDEN=1 build/release/tests/simulate/golden_test
//
// writes them anew (into the source tree); read the difference before committing it.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/support/cli.h"

namespace tbdsim {
namespace {

struct Golden {
  const char* file;
  std::vector<std::string> arguments;
};
void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.file; }

class GoldenOutput : public testing::TestWithParam<Golden> {};

TEST_P(GoldenOutput, IsAsItStands) {
  const std::string path = std::string(TBDSIM_SOURCE_DIR "/tests/golden/") + GetParam().file;
  const test::CliResult result = test::run(GetParam().arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  if (const char* regenerate = std::getenv("TBDSIM_REGENERATE_GOLDEN");
      regenerate != nullptr && *regenerate == '1') {
    std::ofstream(path, std::ios::binary) << result.out;
  }
  std::ifstream in(path, std::ios::binary);
  ASSERT_TRUE(in) << path << " is missing; regenerate it";
  std::stringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(result.out, expected.str()) << "if that is meant: TBDSIM_REGENERATE_GOLDEN=1 golden_test";
}

const Golden kGoldens[] = {
    {"titanxp_64.txt", {"--gpu", "titanxp", "--batch", "64"}},
    {"titanxp_64_mxnet.json",
     {"--gpu", "titanxp", "--batch", "64", "--model", "resnet50", "--framework", "mxnet", "--profile",
      "uncalibrated", "--format", "json"}},
    {"list_metrics.txt", {"list", "metrics"}},
    {"show_resnet50_v1.5.txt", {"show", "resnet50", "--variant", "v1.5"}},
};

INSTANTIATE_TEST_SUITE_P(Outputs, GoldenOutput, testing::ValuesIn(kGoldens));

}  // namespace
}  // namespace tbdsim
