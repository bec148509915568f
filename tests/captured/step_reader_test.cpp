// Step files are read strictly: every error names the place, the value and what was expected.
#include "graphs/captured/step_reader.h"

#include <fstream>

#include <gmock/gmock.h>

#include "graphs/captured/gzip.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "tests/support/hostile_text.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// y = relu(x) of one module, on images of 3 numbers.
constexpr std::string_view kSmall = R"({
  "format": "tbdsim step", "version": 1, "name": "small", "title": "Small", "sample": "image", "length": 0,
  "captured_with": {"torch": "2.9.0", "batches": [2, 3]}, "precision": "fp32", "channels_last": false,
  "modules": [["", "Net"], ["act", "ReLU"]],
  "storages": [["input", [0, 12], -1, 0, ""], ["activation", [8, 12], 0, -1, ""]],
  "tensors": [[0, "f32", [[0, 1], 3], [3, 1], 0], [1, "f32", [[0, 1], 3], [3, 1], 2]],
  "operators": [["aten.relu.default", "forward", 1, [{"t": 0}, {"n": [1, 2]}, 0.5, [true, null, "cpu"],
                 {"dtype": "f16"}], [1, -1]]],
  "warnings": ["one"]
})";

class StepReader : public testing::Test {
 protected:
  CapturedStep read(const std::string& text) { return read_step_file(dir_.write("x.step.json", text)); }

  // The error for kSmall with one text replaced by another.
  std::string error_with(const std::string& text, const std::string& by) {
    std::string changed(kSmall);
    const std::size_t at = changed.find(text);
    EXPECT_NE(at, std::string::npos) << text;
    return error_of(changed.replace(at, text.size(), by));
  }
  std::string error_of(const std::string& text) {
    try {
      (void)read(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "read without an error";
  }

  test::TempDir dir_;
};

TEST_F(StepReader, ReadsEveryField) {
  const CapturedStep step = read(std::string(kSmall));
  EXPECT_EQ(step.name, "small");
  EXPECT_EQ(step.title, "Small");
  EXPECT_EQ(step.sample, "image");
  EXPECT_EQ(step.torch, "2.9.0");
  EXPECT_EQ(step.precision, CapturedPrecision::fp32);
  ASSERT_EQ(step.modules.size(), 2u);
  EXPECT_EQ(step.modules[1].path, "act");
  EXPECT_EQ(step.modules[1].type, "ReLU");
  ASSERT_EQ(step.storages.size(), 2u);
  EXPECT_EQ(step.storages[0].role, StorageRole::input);
  EXPECT_EQ(step.storages[1].bytes, (Size{8, 12}));
  EXPECT_EQ(step.storages[0].freed, 0);
  ASSERT_EQ(step.tensors.size(), 2u);
  EXPECT_EQ(step.tensors[1].elements, (Size{0, 3}));
  EXPECT_EQ(step.tensors[1].offset, fixed_size(2));
  ASSERT_EQ(step.operators.size(), 1u);
  const CapturedOperator& op = step.operators[0];
  EXPECT_EQ(op.name, "aten.relu.default");
  EXPECT_EQ(op.module, 1);
  EXPECT_EQ(op.outputs, (std::vector<int>{1, -1}));
  ASSERT_EQ(op.arguments.size(), 5u);
  EXPECT_EQ(std::get<TensorRef>(op.arguments[0].value).index, 0);
  EXPECT_EQ(std::get<Size>(op.arguments[1].value), (Size{1, 2}));
  EXPECT_EQ(std::get<double>(op.arguments[2].value), 0.5);
  EXPECT_EQ(std::get<std::vector<Argument>>(op.arguments[3].value).size(), 3u);
  EXPECT_EQ(std::get<Dtype>(op.arguments[4].value), Dtype::f16);
  EXPECT_EQ(step.warnings, std::vector<std::string>{"one"});
}

TEST_F(StepReader, CountsBroadcastDimensionsOnce) {
  std::string text(kSmall);
  text.replace(text.find("[3, 1], 2"), 9, "[3, 0], 2");
  const CapturedStep step = read(text);
  EXPECT_EQ(step.tensors[1].elements, (Size{0, 3}));
  EXPECT_EQ(step.tensors[1].stored, (Size{0, 1}));
}

TEST_F(StepReader, NamesThePlaceOfWhatIsWrong) {
  EXPECT_THAT(error_with("\"t\": 0", "\"t\": 7"),
              HasSubstr("operators[0].arguments[0].t: 7; expected a whole number, 0 to 1"));
  EXPECT_THAT(error_with("\"forward\"", "\"foward\""),
              AllOf(HasSubstr("operators[0].phase: \"foward\""), HasSubstr("did you mean 'forward'?")));
  EXPECT_THAT(error_with("[0, 12], -1, 0", "[0, 12], -1, 5"),
              HasSubstr("storages[0].freed_after: 5; expected"));
  EXPECT_THAT(error_with("\"f32\", [[0, 1], 3], [3, 1], 0", "\"f32\", [[0, 1], 3], [3], 0"),
              HasSubstr("tensors[0].strides: a list of 1; expected as many strides as sizes, 2"));
  EXPECT_THAT(error_with("\"dtype\": \"f16\"", "\"dtype\": \"half\""), HasSubstr("arguments[4].dtype"));
  EXPECT_THAT(error_with("{\"n\": [1, 2]}", "{\"n\": [1, 0]}"), HasSubstr("expected a number other than 0"));
  EXPECT_THAT(error_with("[[0, 1], 3], [3, 1], 0", "[[0, 1], [0, 2]], [3, 1], 0"),
              HasSubstr("expected at most one size that grows with the batch"));
  EXPECT_THAT(error_with("[[0, 1], 3], [3, 1], 0", "[[-4, 1], 3], [3, 1], 0"),
              HasSubstr("expected a size of 0 or more at every batch"));
  EXPECT_THAT(error_with("\"act\", \"ReLU\"", "\"act\""),
              HasSubstr("modules[1]: a list of 1; expected [path, class]"));
}

TEST_F(StepReader, RefusesUnknownAndMissingKeys) {
  EXPECT_THAT(error_with("\"sample\": \"image\",", ""), HasSubstr("a key 'sample'"));
  EXPECT_THAT(error_with("\"sample\"", "\"samples\""),
              AllOf(HasSubstr("samples"), HasSubstr("did you mean 'sample'?")));
  EXPECT_THAT(error_with("\"torch\": \"2.9.0\"", "\"torch\": \"2.9.0\", \"cuda\": 12"),
              HasSubstr("captured_with.cuda"));
  EXPECT_THAT(error_with("\"warnings\": [\"one\"]", "\"warnings\": [], \"warnings\": []"),
              HasSubstr("twice"));
}

TEST_F(StepReader, RefusesOtherFilesAndVersions) {
  EXPECT_THAT(error_of("{}"), HasSubstr("expected a step file"));
  EXPECT_THAT(error_of("[1, 2]"), HasSubstr("expected a step file"));
  EXPECT_THAT(error_of("{\n \"format\": not json}"), HasSubstr(":2:13: no JSON from here on"));
  EXPECT_THAT(error_of(""), HasSubstr("no JSON"));
  EXPECT_THAT(error_with("\"version\": 1", "\"version\": 2"),
              AllOf(HasSubstr("version: 2"), HasSubstr("capture the step again")));
  EXPECT_THAT(error_of(std::string(100'000, '[')), HasSubstr("nests deeper"));
  EXPECT_THAT(error_with("[3, 1], 2", "[3, 1], 99999999999999999999"), HasSubstr("expected"));
}

TEST_F(StepReader, RefusesSizesBeyond64Bits) {
  EXPECT_THAT(error_with("[[0, 1], 3], [3, 1], 0", "[1000000000000, 1000000000000], [1, 1], 0"),
              HasSubstr("tensors[0].shape"));
}

TEST_F(StepReader, ReadsGzipAndRefusesPartsOfIt) {
  const std::string file = TBDSIM_SOURCE_DIR "/tests/captured/steps/resnet50_fp32.step.json.gz";
  EXPECT_EQ(read_step_file(file).name, "resnet50");
  const std::string bytes = read_file(file, 1'000'000);
  EXPECT_THAT(error_of(bytes.substr(0, bytes.size() / 2)), HasSubstr("is no whole gzip file"));
  EXPECT_THAT(error_of(bytes.substr(0, 2)), HasSubstr("is no whole gzip file"));
}

// bgzip, pigz -i and `cat a.gz b.gz` make files of several members.
TEST_F(StepReader, ReadsAllMembersOfGzip) {
  const std::string text =
      decompressed(read_file(TBDSIM_SOURCE_DIR "/tests/captured/steps/resnet50_fp32.step.json.gz", 1'000'000),
                   100'000'000);
  const std::string first = test::gzipped(text.substr(0, 1'000), "", 0);
  const std::string second = test::gzipped(text.substr(1'000), "", 0);
  EXPECT_EQ(decompressed(first + second, 100'000'000), text);
  EXPECT_EQ(decompressed(first + second + std::string(512, '\0'), 100'000'000), text);
  EXPECT_THAT(error_of(first + second.substr(0, second.size() - 1)), HasSubstr("is no whole gzip file"));
  EXPECT_THAT(error_of(first + second + "more"), HasSubstr("holds bytes behind its end"));
  EXPECT_THROW((void)decompressed(first + second, text.size() - 1), std::runtime_error);
}

TEST(StepFileNames, EndInJson) {
  EXPECT_TRUE(is_step_file("a.step.json.gz"));
  EXPECT_TRUE(is_step_file("a.json"));
  EXPECT_FALSE(is_step_file("a.yaml"));
}

}  // namespace
}  // namespace tbdsim
