// Files dropped on the page of `tbd-sim serve`: which become models and GPUs, what is refused, and that none
// stays.
#include "simulate/serve/dropped_files.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

std::string source_file(const std::string& name) {
  return read_file(std::string(TBDSIM_SOURCE_DIR "/") + name, 1'000'000);
}

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing)";
}

TEST(DroppedFiles, AModelIsKeptAsItIs) {
  DroppedFiles files(Catalog::from(TBDSIM_SOURCE_DIR));
  const std::string yaml = source_file("graphs/models/alexnet.yaml");
  const DroppedFile kept = files.keep("C:\\my files\\net\"<1>.yaml", yaml);
  EXPECT_THAT(kept.name, MatchesRegex("dropped/[0-9a-f]+/net__1_.yaml"));
  EXPECT_EQ(read_file(kept.path, 1'000'000), yaml);
  EXPECT_EQ(files.keep("net__1_.yaml", yaml).name, kept.name) << "the same file again";
  EXPECT_EQ(files.paths().size(), 1U);
  EXPECT_EQ(files.find(kept.name).path, kept.path);
  EXPECT_EQ(files.with_names(kept.path.string() + ":3:1: wrong"), "net__1_.yaml:3:1: wrong");
}

TEST(DroppedFiles, OnnxBecomesAModel) {
  DroppedFiles files(Catalog::from(TBDSIM_SOURCE_DIR));
  const DroppedFile kept = files.keep("small.onnx", source_file("tests/import/files/small_opset13.onnx"));
  EXPECT_THAT(kept.name, EndsWith("/small.onnx"));
  EXPECT_THAT(kept.path.string(), EndsWith("/small.yaml"));
  EXPECT_FALSE(fs::exists(kept.path.parent_path() / "small.onnx"));
  EXPECT_THAT(kept.notes, Not(testing::IsEmpty()));
  SpecCache specs(Catalog::from(TBDSIM_SOURCE_DIR).with_files_only(files.paths()));
  EXPECT_EQ(specs.model(kept.path.string())->title, "small");
}

TEST(DroppedFiles, WhatToolsSayOfAGpuBecomesOne) {
  DroppedFiles files(Catalog::from(TBDSIM_SOURCE_DIR));
  const DroppedFile printed = files.keep("card.txt", source_file("tests/import/files/devicequery_v100.txt"));
  const DroppedFile yaml = files.keep("mine.yaml", source_file("hwspecs/gpus/t4.yaml"));
  SpecCache specs(Catalog::from(TBDSIM_SOURCE_DIR).with_files_only(files.paths()));
  for (const DroppedFile& file : {printed, yaml}) EXPECT_EQ(file.kind, Kind::gpu);
  EXPECT_EQ(specs.gpu(printed.path.string())->sm_count, 80);
  EXPECT_EQ(specs.gpu(yaml.path.string())->sm_count, 40);
  EXPECT_THAT(printed.notes, Not(testing::IsEmpty()));
}

TEST(DroppedFiles, WhatIsNeitherIsRefusedInWords) {
  DroppedFiles files(Catalog::from(TBDSIM_SOURCE_DIR));
  const auto refusal = [&](const std::string& name, const std::string& text) {
    return files.with_names(error_of([&] { (void)files.keep(name, text); }));
  };
  EXPECT_THAT(refusal("box.txt", source_file("tests/import/files/topo_dgx1.txt")),
              HasSubstr("box.txt: nvidia-smi topo -m, which is no model and no GPU; expected a model"));
  EXPECT_THAT(refusal("bad.yaml", "title: [1"), HasSubstr("bad.yaml:"));
  EXPECT_THAT(refusal("letter.txt", "Dear all"), HasSubstr("letter.txt: no format that is known"));
  EXPECT_THAT(refusal("cut.onnx", source_file("tests/import/files/small_opset13.onnx").substr(0, 100)),
              HasSubstr("cut.onnx: "));
  for (const char* name : {"", "/", "..", "../..", "a/.bashrc"})
    EXPECT_THAT(refusal(name, "x"), HasSubstr("a file called")) << name;
  EXPECT_TRUE(files.paths().empty());
}

TEST(DroppedFiles, TheOldestGoesFirstAndNoneStays) {
  fs::path folder;
  {
    DroppedFiles files(Catalog::from(TBDSIM_SOURCE_DIR));
    const DroppedFile first = files.keep("a.yaml", "title: first");
    folder = first.path.parent_path().parent_path();
    EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
    for (std::size_t i = 0; i < DroppedFiles::kMostFiles; ++i)
      (void)files.keep("a.yaml", "title: " + std::to_string(i));
    EXPECT_EQ(files.paths().size(), DroppedFiles::kMostFiles);
    EXPECT_FALSE(fs::exists(first.path));
    EXPECT_THAT(error_of([&] { (void)files.find(first.name); }), HasSubstr("dropped once more"));
    const DroppedFile last = files.keep("b.yaml", "title: last");
    files.forget(last);
    EXPECT_FALSE(fs::exists(last.path));
  }
  EXPECT_FALSE(fs::exists(folder));
}

}  // namespace
}  // namespace tbdsim
