// Bad input is refused with one exact message, exit code 2 and nothing on standard output: every file of
// tests/bad_specs (its message, less the directory, stands in messages.txt there), files made here because
// they are huge, empty or no files at all, and command lines.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hwspecs/machine_spec.h"
#include "tests/calibrate/run_calibrate.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {
namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

const fs::path kBadSpecs = fs::path(TBDSIM_SOURCE_DIR) / "tests/bad_specs";
const std::string kWithoutCommand[] = {"link", "machine"};
const std::string kValidRuns = kBadSpecs / "valid_runs.csv";

bool is_of_kind(const fs::path& file, const std::string& kind) {
  const std::string name = file.filename();
  return name.starts_with(kind + "_") || name == "valid_" + kind + ".yaml";
}

// Reads a link or machine, which no command takes as a path; "" when it is accepted.
std::string refusal_of_reader(const fs::path& file) {
  try {
    if (is_of_kind(file, "link")) (void)read_link(file);
    if (is_of_kind(file, "machine")) (void)read_machine(file, Catalog::from(TBDSIM_SOURCE_DIR));
  } catch (const Error& refused) {
    return refused.what();
  }
  return "";
}

bool has_a_command(const fs::path& file) {
  return std::none_of(std::begin(kWithoutCommand), std::end(kWithoutCommand),
                      [&](const std::string& kind) { return is_of_kind(file, kind); });
}

// The command that reads a file, by the kind in its name.
Arguments command_reading(const fs::path& file) {
  const std::string name = file.filename();
  const auto is = [&](const char* kind) { return name.find(kind) != std::string::npos; };
  if (is("gpu_") || is("_gpu")) return {"--gpu", file, "--batch", "64", "--model", "resnet50"};
  if (is("model_") || is("_model")) return {"show", file};
  if (is("framework"))
    return {"--gpu",    "titanxp",   "--batch", "64",          "--model",
            "resnet50", "--variant", "v1.5",    "--framework", file};
  if (is("profile")) return {"--gpu", "titanxp", "--batch", "64", "--model", "resnet50", "--profile", file};
  if (is("dataset")) return {"--gpu", "titanxp", "--batch", "64", "--model", "resnet50", "--dataset", file};
  if (is("records")) return {"fit", file, "-o", "/dev/null"};
  return {"predict", "--scenarios", file};
}

bool is_calibrate(const Arguments& arguments) {
  return arguments.front() == "fit" || arguments.front() == "crossval";
}

test::CliResult run(const Arguments& arguments) {
  return is_calibrate(arguments) ? test::calibrate(arguments) : test::run(arguments);
}

void expect_refused(const Arguments& arguments, const std::string& message) {
  const test::CliResult result = run(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, (is_calibrate(arguments) ? "tbd-calibrate: " : "tbd-sim: ") + message + "\n");
  if (arguments.front() != "predict") {  // which writes a table's rows up to the wrong one
    EXPECT_EQ(result.out, "");
  }
}

void expect_file_refused(const fs::path& file, const std::string& message) {
  if (has_a_command(file)) {
    expect_refused(command_reading(file), message);
  } else {
    EXPECT_EQ(refusal_of_reader(file), message);
  }
}

// File name -> its line "gpu_octal.yaml:4:11: sm_count: ...".
std::map<std::string, std::string> messages() {
  std::ifstream in(kBadSpecs / "messages.txt");
  std::map<std::string, std::string> lines;
  for (std::string line; std::getline(in, line);) lines.emplace(line.substr(0, line.find(':')), line);
  return lines;
}

std::vector<std::string> bad_files() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kBadSpecs)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("valid_") && name != "messages.txt") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string stem_of(const testing::TestParamInfo<std::string>& file) { return fs::path(file.param).stem(); }

class BadFile : public testing::TestWithParam<std::string> {};

TEST_P(BadFile, IsRefused) {
  const fs::path file = kBadSpecs / GetParam();
  ASSERT_TRUE(messages().contains(GetParam())) << "expected its message in messages.txt";
  expect_file_refused(file, (kBadSpecs / messages().at(GetParam())).string());
}

INSTANTIATE_TEST_SUITE_P(, BadFile, testing::ValuesIn(bad_files()), stem_of);

TEST(BadFiles, NoMessageWithoutItsFile) {
  for (const auto& [name, message] : messages()) EXPECT_TRUE(fs::exists(kBadSpecs / name)) << message;
  EXPECT_EQ(messages().size(), bad_files().size());
}

// The bad files are these with one thing wrong, so these must pass.
TEST(BadFiles, TheValidOnesPass) {
  for (const char* name : {"valid_gpu.yaml", "valid_model.yaml", "valid_framework.yaml", "valid_profile.yaml",
                           "valid_profile_fitted.yaml", "valid_records.csv", "valid_runs.csv"}) {
    const test::CliResult result = run(command_reading(kBadSpecs / name));
    EXPECT_EQ(result.exit_code, 0) << name;
    EXPECT_EQ(result.err, "") << name;
    EXPECT_NE(result.out, "") << name;
  }
  for (const std::string& kind : kWithoutCommand) {
    EXPECT_EQ(refusal_of_reader(kBadSpecs / ("valid_" + kind + ".yaml")), "");
  }
}

// One file of each kind that has a reader.
class BadPath : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] bool is_table() const { return GetParam().ends_with(".csv"); }
  void expect(const fs::path& file, const std::string& yaml_message, const std::string& table_message) const {
    expect_file_refused(file, file.string() + ": " + (is_table() ? table_message : yaml_message));
  }
  [[nodiscard]] fs::path file() const { return directory_.path() / GetParam(); }
  void write(std::string_view content) const { directory_.write(GetParam(), content); }

 private:
  test::TempDir directory_;
};

INSTANTIATE_TEST_SUITE_P(, BadPath,
                         testing::Values("gpu_x.yaml", "link_x.yaml", "machine_x.yaml", "model_x.yaml",
                                         "dataset_x.yaml", "framework_x.yaml", "profile_x.yaml",
                                         "records_x.csv", "runs_x.csv"),
                         stem_of);

TEST_P(BadPath, Missing) {
  expect(file(), "cannot be read: No such file or directory", "cannot be read: No such file or directory");
}

TEST_P(BadPath, Directory) {
  fs::create_directory(file());
  expect(file(), "is a directory; expected a file", "is a directory; expected a file");
}

// A link to itself cannot be opened even by root, for whom no permission is missing.
TEST_P(BadPath, Unreadable) {
  fs::create_symlink(file(), file());
  expect(file(), "cannot be read: Too many levels of symbolic links",
         "cannot be read: Too many levels of symbolic links");
}

TEST_P(BadPath, Empty) {
  write("");
  expect(file(), "the file holds no YAML; expected a map of keys",
         "the file is empty; expected a header row with column names");
}

TEST_P(BadPath, HundredMegabytes) {
  write("");
  fs::resize_file(file(), 100'000'000);  // sparse, all NUL
  if (is_table()) {
    expect_refused(command_reading(file()), file().string() + ":1:1: a NUL byte; expected text");
  } else {
    expect(file(), "is larger than 1048576 bytes; expected a file written by hand", "");
  }
}

// 64 lists may be open at once; the 65th bracket stands in column 7 + 64.
TEST(BadFiles, NestedAThousandDeep) {
  const test::TempDir directory;
  for (const char* name : {"gpu_x.yaml", "link_x.yaml", "machine_x.yaml", "model_x.yaml", "dataset_x.yaml",
                           "framework_x.yaml", "profile_x.yaml"}) {
    const fs::path file =
        directory.write(name, "title: " + std::string(1000, '[') + std::string(1000, ']') + "\n");
    expect_file_refused(file, file.string() + ":1:71: nested more than 64 levels deep");
  }
}

struct BadCommand {
  Arguments arguments;
  std::string message;
};

const std::string kBatchRange = "expected a whole number, 1 to 1000000000";
const std::string kSeeList = " names them; a path to a YAML file works too)";

const std::vector<BadCommand> kBadCommands = {
    {{"--gpu", "titanxp", "--batch", "0"}, "--batch: '0' is out of range; " + kBatchRange},
    {{"--gpu", "titanxp", "--batch", "-1"}, "--batch: '-1' is out of range; " + kBatchRange},
    {{"--gpu", "titanxp", "--batch", "1000000001"}, "--batch: '1000000001' is out of range; " + kBatchRange},
    {{"--gpu", "titanxp", "--batch", "1.5"}, "--batch: '1.5' is not a whole number; " + kBatchRange},
    {{"--gpu", "titanxp", "--batch", "010"}, "--batch: '010' is not a whole number; " + kBatchRange},
    {{"--gpu", "titanxp", "--batch", "abc"}, "--batch: 'abc' is not a whole number; " + kBatchRange},
    {{"--gpu", "titanxp", "--batch", "1e3"}, "--batch: '1e3' is not a whole number; " + kBatchRange},
    {{"--gpu", "titanxp", "--batch", "nan"}, "--batch: 'nan' is not a whole number; " + kBatchRange},
    {{"--gpu", "titanxp", "--batch", "+5"}, "--batch: '+5' is not a whole number; " + kBatchRange},
    {{"--gpu", "titanxp"}, "--batch is missing; " + kBatchRange},
    {{"--batch", "64"}, "--gpu is missing; expected a name ('tbd-sim list gpus') or a YAML file"},
    {{"kernels", "resnet50"}, "--gpu is missing; expected a name ('tbd-sim list gpus') or a YAML file"},
    {{"--gpuu", "titanxp", "--batch", "64"},
     "unknown argument '--gpuu'; did you mean '--gpu'? (see 'tbd-sim --help')"},
    {{"lst", "gpus"}, "unknown argument 'lst'; did you mean 'list'? (see 'tbd-sim --help')"},
    {{"--gpu", "titanxp", "--batch", "64", "again"}, "unknown argument 'again' (see 'tbd-sim --help')"},
    {{"--gpu", "titanxpp", "--batch", "64"},
     "unknown GPU 'titanxpp'; did you mean 'titanxp'? ('tbd-sim list gpus'" + kSeeList},
    {{"--gpu", "abacus", "--batch", "64"}, "unknown GPU 'abacus' ('tbd-sim list gpus'" + kSeeList},
    {{"--gpu", "titan\nxp", "--batch", "64"},
     "unknown GPU 'titan?xp'; did you mean 'titanxp'? ('tbd-sim list gpus'" + kSeeList},
    {{"--gpu", "./titanxp", "--batch", "64"}, "./titanxp: cannot be read: No such file or directory"},
    {{"show", "resnet5"},
     "the catalogue has no 'resnet5'; did you mean 'resnet50'? ('tbd-sim list' names what it has; a path to "
     "a "
     "model's YAML file works too)"},
    {{"--gpu", "titanxp", "--batch", "64", "--framework", "tensorflw"},
     "unknown framework 'tensorflw'; did you mean 'tensorflow'? ('tbd-sim list frameworks'" + kSeeList},
    {{"--gpu", "titanxp", "--batch", "64", "--profile", "uncalibratd"},
     "unknown profile 'uncalibratd'; did you mean 'uncalibrated'? ('tbd-sim list profiles'" + kSeeList},
    {{"show", "resnet50", "--variant", "slim_v22"},
     "unknown variant 'slim_v22' of resnet50; expected one of slim_v2, mxnet_v2, v1.5, v1, forward_backward; "
     "did you mean "
     "'slim_v2'?"},
    {{"--gpu", "titanxp", "--batch", "64", "--precision", "fp23"},
     "unknown precision 'fp23'; expected one of fp32, tf32, tf32_convolutions, fp16, bf16, amp, bf16_pure, "
     "bf16_master, fp16_master, fp8, fp8_tensorwise, fp8_rowwise, mxfp8, nvfp4, default; did you mean "
     "'fp32'?"},
    {{"--gpu", "titanxp", "--batch", "64", "--precision", "tf32"},
     "NVIDIA TITAN Xp has no tf32 arithmetic; expected one of its own: fp32, fp16 (computed in fp32)"},
    {{"--gpu", "titanxp", "--batch", "64", "--format", "jsn"},
     "--format: 'jsn' is unknown; expected one of table, json, csv; did you mean 'json'?"},
    {{"list", "gpuss"},
     "list: 'gpuss' is unknown; expected one of gpus, cpus, links, machines, models, suites, datasets, "
     "frameworks, changes, "
     "profiles, targets, metrics, precisions, layers, optimizers; did you mean 'gpus'?"},
    {{"validate", "--runs", kValidRuns, "--by", "gpuu"},
     "--by: 'gpuu' is unknown; expected one of group, set, gpu, model, framework; did you mean 'gpu'?"},
    {{"validate", "--runs", kValidRuns, "--by", "set"}, kValidRuns + ":1:1: column 'set' is missing"},
    {{"validate", "--runs", kBadSpecs / "runs_missing_column.csv"},
     (kBadSpecs / "runs_missing_column.csv").string() + ":1:1: column 'batch_per_gpu' is missing"},
    {{"predict"}, "--scenarios is required (see 'tbd-sim --help')"},
    {{"predict", "--scenarios"}, "--scenarios: has no value; expected one behind it"},
    // A file that opens but gives no bytes.
    {{"predict", "--scenarios", "/proc/self/mem"}, "/proc/self/mem: cannot be read: Input/output error"},
    {{"--gpu", "/proc/self/mem", "--batch", "64"}, "/proc/self/mem: cannot be read: Input/output error"},
    {{"--gpu", "--batch", "64"}, "--gpu: has no value; expected one behind it"},
    {{"--gpu", "titanxp", "--batch", "64", "--framework", ""},
     "--framework: has no value; expected one behind it"},
    {{"--gpu", "titanxp", "--batch", "64", "--gpu", "p4000"}, "--gpu: is given twice; expected it once"},
    {{"--gpu", "TITANYP", "--batch", "64"},
     "unknown GPU 'TITANYP'; did you mean 'titanxp'? ('tbd-sim list gpus'" + kSeeList},
    {{"--gpu", "v100", "--batch", "64"},
     "unknown GPU 'v100'; expected one of v100_dgxs_32gb, v100_pcie_16gb, v100_pcie_32gb, v100_sxm2_16gb, "
     "v100_sxm2_32gb, v100_sxm3_32gb, v100_sxm3_32gb_450w, v100s_pcie_32gb ('tbd-sim list gpus'" +
         kSeeList},
    {{"--gpu", "t4", "--batch", "8", "--model", "bert_base", "--framework", "tensorflow"},
     "bert_base is trained by pytorch, not by 'tensorflow'; expected a --framework that trains it, or a "
     "--variant, one of squad, pretraining_128, pretraining_512"},
    {{"--gpu", "t4", "--batch", "8", "--model", "transformer", "--framework", "pytorch", "--input", "real"},
     "transformer: input is real, and its samples are of no data set; expected an input_time, as 4 ms, or "
     "synthetic input"},
    {{"--gpu", "t4", "--batch", "8", "--model", "a3c", "--input", "real"},
     "a3c: input is real, and the time to decode a sample of atari_pong is unknown; expected an input_time, "
     "as 4 ms, or "
     "synthetic input"},
    {{"tta", "resnet50", "--gpu", "TITANYP"},
     "unknown GPU 'TITANYP'; did you mean 'titanxp'? ('tbd-sim list gpus'" + kSeeList},
    {{"sweep", "--model", "\"a,b.yaml", "--framework", "pytorch", "--gpu", "t4", "--batch", "8"},
     "'\"a,b.yaml': a part in double quotes does not end with them; expected as \"my,model.yaml\",resnet50"},
    {{"show", "resnet50", "--batch", "64"}, "--batch means nothing to 'show' (see 'tbd-sim --help')"},
    {{"sweep", "--model", "llama3_8b", "--framework", "pytorch", "--gpu", "l40s", "--batch", "1", "--lora",
      "16"},
     "--lora means nothing to 'sweep'; expected --lora-rank with --global-batch, or --set lora=VALUES (see "
     "'tbd-sim --help')"},
    {{"sweep", "--model", "resnet50", "--framework", "pytorch", "--gpu", "t4", "--batch", "1", "--freeze",
      "conv0"},
     "--freeze means nothing to 'sweep'; expected --set freeze=VALUES (see 'tbd-sim --help')"},
    {{"plan", "llama3_8b", "--gpu", "l40s", "--lora", "16"},
     "--lora means nothing to 'plan'; expected --lora-rank (see 'tbd-sim --help')"},
    {{"plan", "llama3_8b", "--gpu", "l40s", "--batch", "16"},
     "--batch means nothing to 'plan'; expected --global-batch or --micro-batch (see 'tbd-sim --help')"},
    {{"--gpu", "titanxp", "list", "gpus"}, "--gpu means nothing to 'list' (see 'tbd-sim --help')"},
    {{"--gpu", "titanxp", "memory", "resnet50"}, "--gpu stands before 'memory'; expected behind it"},
    {{"list", "gpus", "show", "resnet50"}, "a second command 'show'; expected one (see 'tbd-sim --help')"},
    {{"list"},
     "list: says not of what; expected one of gpus, cpus, links, machines, models, suites, datasets, "
     "frameworks, changes, "
     "profiles, targets, metrics, precisions, layers, optimizers"},
    {{"predict", "--scenarios", kValidRuns, "-o", "/no/such/folder/out.csv"},
     "/no/such/folder/out.csv: cannot be written: No such file or directory"},
    {{"predict", "--scenarios", kValidRuns, "-o", "/dev/full"},
     "/dev/full: cannot be written: No space left on device"},
    {{"--data-dir", "/no/such/folder", "list", "gpus"},
     "/no/such/folder: no data directory of tbd-sim; expected a folder hwspecs/gpus in it"},
};

TEST(BadCommandLine, IsRefused) {
  for (const BadCommand& command : kBadCommands) {
    SCOPED_TRACE(testing::PrintToString(command.arguments));
    expect_refused(command.arguments, command.message);
  }
}

// A table that breaks off leaves no output behind, not even the rows before the wrong one.
TEST(BadTable, LeavesNoOutputFile) {
  const test::TempDir directory;
  const fs::path ragged = kBadSpecs / "runs_ragged_row.csv";
  expect_refused({"predict", "--scenarios", ragged, "-o", directory.path() / "out.csv"},
                 ragged.string() + ":3:1: the row has 13 fields; expected 14 as in the header");
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

}  // namespace
}  // namespace tbdsim
