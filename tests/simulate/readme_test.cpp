// The README's examples are true: its files load, its table is what the program prints.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hwspecs/base/file.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

std::string readme() { return read_file(std::filesystem::path(TBDSIM_SOURCE_DIR) / "README.md", 1'000'000); }

// The contents of ```yaml blocks, in order.
std::vector<std::string> yaml_blocks() {
  const std::string text = readme();
  const std::string fence = "```yaml\n";
  std::vector<std::string> blocks;
  for (std::size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
    at += fence.size();
    blocks.push_back(text.substr(at, text.find("```", at) - at));
  }
  return blocks;
}

TEST(Readme, ItsGpuItsModelAndItsFrameworkWork) {
  const auto blocks = yaml_blocks();
  ASSERT_EQ(blocks.size(), 3u);
  const test::TempDir directory;
  const std::string gpu = directory.write("my_gpu.yaml", blocks[0]).string();
  const std::string model = directory.write("my_model.yaml", blocks[1]).string();
  const test::CliResult result = test::run({"--gpu", gpu, "--batch", "64", "--model", model});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr("my_model  pytorch"));
  std::filesystem::copy_file(TBDSIM_SOURCE_DIR "/simulate/frameworks/pytorch.yaml",
                             directory.path() / "pytorch.yaml");
  const std::string framework = directory.write("my_framework.yaml", blocks[2]).string();
  const test::CliResult mine =
      test::run({"--gpu", gpu, "--batch", "64", "--model", model, "--framework", framework});
  EXPECT_EQ(mine.exit_code, 0) << mine.err;
  EXPECT_THAT(mine.out, testing::HasSubstr("my_model  my_framework"));
}

TEST(Readme, ItsTableIsWhatTheProgramPrints) {
  const std::string out = test::run({"--gpu", "titanxp", "--batch", "64"}).out;
  const std::string table = out.substr(0, out.find("\n\n80 %"));
  EXPECT_THAT(readme(), testing::HasSubstr(table));
}

TEST(Readme, ItsErrorIsWhatTheProgramSays) {
  EXPECT_THAT(readme(), testing::HasSubstr(test::run({"--gpu", "titanpx", "--batch", "64"}).err));
}

}  // namespace
}  // namespace tbdsim
