// The README is short, and the files it and docs/ show work together.
#include <algorithm>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "hwspecs/base/file.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = TBDSIM_SOURCE_DIR;

std::string readme() { return read_file(kSource / "README.md", 1'000'000); }

TEST(Readme, HasAtMostTwoHundredLines) {
  const std::string text = readme();
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 200);
}

// The text between ```yaml and ``` in the README, where there is one such block.
std::string yaml_block() {
  const std::string text = readme();
  const std::string fence = "```yaml\n";
  const std::size_t from = text.find(fence) + fence.size();
  EXPECT_EQ(text.find(fence, from), std::string::npos) << "which of the blocks?";
  return text.substr(from, text.find("```", from) - from);
}

std::string predict_with(const std::string& framework) {
  const test::CliResult result =
      test::run({"--gpu", (kSource / "docs/examples/my_gpu.yaml").string(), "--batch", "64", "--model",
                 (kSource / "docs/examples/my_model.yaml").string(), "--framework", framework});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

TEST(Readme, ItsFrameworkWorks) {
  const test::TempDir directory;
  const std::string framework = directory.write("my_framework.yaml", yaml_block()).string();
  EXPECT_THAT(predict_with(framework), testing::HasSubstr("my_model  my_framework"));
}

TEST(Examples, GpuModelAndFrameworkWorkTogether) {
  const std::string framework = (kSource / "docs/examples/my_framework.yaml").string();
  EXPECT_THAT(predict_with("pytorch"), testing::HasSubstr("my_model  pytorch"));
  EXPECT_THAT(predict_with(framework), testing::HasSubstr("my_model  my_framework"));
}

}  // namespace
}  // namespace tbdsim
