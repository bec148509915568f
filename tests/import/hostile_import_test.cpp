// Damaged, cut and absurd files of each format: an error that names the file, no crash, no hang.
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "simulate/import/gpu_facts.h"
#include "simulate/import/machine_facts.h"
#include "simulate/import/measured_run.h"
#include "simulate/import/network_files.h"
#include "simulate/import/recognise.h"
#include "tests/import/files.h"
#include "tests/support/cli.h"
#include "tests/support/hostile_text.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using test::absurd;
using test::damaged;
using test::import_file;

constexpr const char* kFiles[] = {"devicequery_v100.txt",
                                  "smi_q_quadro_rtx5000.txt",
                                  "smi_q_mig.txt",
                                  "smi_q_t4.xml",
                                  "smi_query.csv",
                                  "topo_dgx1.txt",
                                  "topo_h100.txt",
                                  "topo_1080ti.txt",
                                  "lspci_4x1080ti.txt",
                                  "hwloc_2xp100.xml",
                                  "trace.json",
                                  "trace_old.json.gz",
                                  "nsys_kern_sum.csv",
                                  "nsys_gpu_sum.csv",
                                  "nsys_kern_exec_sum.csv",
                                  "nsys_gpu_trace.csv",
                                  "nvprof_summary.csv",
                                  "nvprof_summary_old.csv",
                                  "nvprof_trace.csv",
                                  "ncu.csv",
                                  "ncu_raw.csv",
                                  "small_opset9.onnx",
                                  "small_opset13.onnx",
                                  "small_opset21.onnx",
                                  "alexnet_paleo.json",
                                  "alexnet.prototxt",
                                  "keras2_nested.json",
                                  "keras3_nested.json",
                                  "keras3_sequence.json",
                                  "keras_functional.txt",
                                  "keras_sequential.txt",
                                  "torchinfo_alexnet.txt"};

class DamagedFile : public testing::TestWithParam<const char*> {};

TEST_P(DamagedFile, IsReadOrRefused) {
  const std::string whole = read_file(import_file(GetParam()), 1'000'000);
  const test::TempDir dir;
  int refused = 0;
  for (int number = 0; number <= 100; ++number) {
    const auto file = dir.write(GetParam(), damaged(whole, number));
    const test::CliResult result = test::run({"import", file.string()});
    EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 2) << number;
    if (result.exit_code != 2) continue;
    ++refused;
    EXPECT_THAT(result.err, testing::StartsWith("tbd-sim: ")) << number;
  }
  EXPECT_GT(refused, 5);
}

INSTANTIATE_TEST_SUITE_P(All, DamagedFile, testing::ValuesIn(kFiles));

// Whether tbd-sim reads the format as text of numbers and words.
bool is_text(const std::string& name) { return !name.ends_with(".gz") && !name.ends_with(".onnx"); }

TEST_P(DamagedFile, WithAbsurdNumbersIsReadOrRefused) {
  const std::string name = GetParam();
  if (!is_text(name)) return;
  const std::string whole = read_file(import_file(name), 1'000'000);
  const test::TempDir dir;
  for (int number = 0; number < 100; ++number) {
    const auto file = dir.write(name, absurd(whole, number));
    std::vector<std::string> arguments = {"import", file.string()};
    if (name == "keras_sequential.txt") arguments.insert(arguments.end(), {"--set", "input=28x28x1"});
    const test::CliResult result = test::run(arguments);
    EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 2) << number;
    if (result.exit_code != 2) continue;
    EXPECT_THAT(result.err, testing::StartsWith("tbd-sim: ")) << number;
    EXPECT_THAT(result.err, testing::HasSubstr("expected")) << number;
  }
}

// The first of two execution traces is damaged.
TEST(DamagedFiles, TracesAreReadOrRefused) {
  const std::string whole = read_file(import_file("execution_trace_4.json"), 1'000'000);
  const test::TempDir dir;
  int refused = 0;
  for (int number = 0; number <= 100; ++number) {
    const auto file = dir.write("trace.json", damaged(whole, number));
    const test::CliResult result =
        test::run({"import", file.string(), import_file("execution_trace_8.json.gz")});
    EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 2) << number;
    refused += result.exit_code == 2 ? 1 : 0;
  }
  EXPECT_GT(refused, 50);
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// Files made to exhaust a reader: nesting without end, numbers that cannot be, names of megabytes.
TEST(HostileFiles, AreRefused) {
  const std::string event = R"({"ph":"X","cat":"kernel","name":"k","ts":0,"dur":1,"args":{}})";
  const std::pair<const char*, std::string> files[] = {
      {"deep.json", "{\"traceEvents\":" + repeated("[", 100'000)},
      {"deep_args.json", "{\"traceEvents\":[{\"ph\":\"X\",\"args\":" + repeated("{\"a\":", 1'000) + "1"},
      {"no_kernels.json", "{\"traceEvents\":[]}"},
      {"cut.json", "{\"traceEvents\":[" + event},
      {"text.json", "{\"traceEvents\":[\"" + std::string(1'000'000, 'x')},
      {"bomb.xml",
       "<?xml version=\"1.0\"?><!DOCTYPE nvidia_smi_log [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b "
       "\"&a;&a;&a;&a;\">]>"
       "<nvidia_smi_log><gpu><product_name>&b;</product_name></gpu></nvidia_smi_log>"},
      {"deep.xml", "<nvidia_smi_log>" + repeated("<gpu>", 1'000)},
      {"external.xml",
       "<!DOCTYPE topology [<!ENTITY x SYSTEM "
       "\"file:///etc/passwd\">]><topology><object>&x;</object></topology>"},
      {"huge.txt", "Device 0: \"T\"\n  CUDA Capability Major/Minor version number: 1e999\n"},
      {"negative.txt",
       "Device 0: \"T\"\n  CUDA Capability Major/Minor version number: 7.0\n  L2 Cache Size: -1 bytes\n"},
      {"nan.txt", "Device 0: \"T\"\n  CUDA Capability Major/Minor version number: nan\n"},
      {"wide.txt", "\t" + repeated("GPU0\t", 5'000) + "CPU Affinity\nGPU0\t X \t0\n"},
      {"twice.txt",
       "\tGPU0\tGPU1\tCPU Affinity\tGPU0\tGPU1\tGPU2\nGPU0\tX\tPIX\t0\nGPU1\tSYS\tX\t0\nGPU2\tX\tX\t0\n"},
      {"links.txt", "\tGPU0\tGPU1\nGPU0\tX\tNV99999999999\nGPU1\tNV99999999999\tX\n"},
      {"deep_tree.txt", "-+-[0000:00]-" + repeated("00.0-[01]-", 1'000) + "-00.0  NVIDIA Corporation X\n"},
      {"deep.prototxt", "layer { type: \"x\" " + repeated("a {", 100'000)},
      {"open.prototxt", "layer { name: \"x type: 1\n"},
      {"huge.prototxt", "input_dim: 1\ninput_dim: 99999999999999999999\nlayer { type: \"ReLU\" }\n"},
      {"wide.prototxt",
       "input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8\nlayer { name: \"c\" type: \"Convolution\" "
       "bottom: \"\" convolution_param { num_output: -4 kernel_size: 3 } }\n"},
      {"loop.json",
       R"({"layers": {"a": {"parents": ["b"], "type": "Pooling"}, "b": {"parents": ["a"], "type": "Pooling"}}})"},
      {"deep_net.json", "{\"layers\": {\"parents\": " + repeated("[", 100'000)},
      {"huge_net.json", R"({"layers": {"a": {"parents": [], "type": "Input", "tensor": [1, 1e300, 8, 3]}}})"},
      {"deep_trace.json", R"({"schema": "1.0.1", "op_schema": "", "nodes": )" + repeated("[", 100'000)},
      {"empty_trace.json", R"({"schema": "1.0.1", "op_schema": "", "nodes": []})"},
      {"loop_trace.json",
       R"({"schema": "1.0.1", "nodes": [{"id": 1, "name": "a", "ctrl_deps": 2}, {"id": 2, "name": "b", "ctrl_deps": 1}]})"},
      {"huge_keras.txt",
       " Layer (type)   Output Shape   Param #\n a (Conv2D)   (None, 9, 9, 99999999999)   9\n"},
      {"no_rows.txt", "Layer (type:depth-idx)   Input Shape   Output Shape   Param #   Kernel Shape\n"},
      {"empty.onnx", ""},
      {"text.onnx", "not a model"},
      {"deep.onnx", std::string(100'000, '\x3a')},
      {"long.onnx", "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"},
      {"units.csv",
       "\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Min\",\"Max\",\"Name\"\n%,fortnights,,us,us,us,\n"},
      {"negative.csv", "Time (%),Total Time (ns),Instances,Name\n1,-5,1,k\n"},
      {"infinite.csv", "Time (%),Total Time (ns),Instances,Name\n1,1e999,1,k\n"},
      {"quote.csv", "Time (%),Total Time (ns),Instances,Name\n1,5,1,\"k\n"},
      {"nul.csv", std::string("name, memory.total [MiB]\nT\0T, 5 MiB\n", 36)},
      {"half.json.gz", std::string("\x1f\x8b\x08\x00{\"traceEvents\"", 18)},
  };
  const test::TempDir dir;
  for (const auto& [name, content] : files) {
    const test::CliResult result = test::run({"import", dir.write(name, content).string()});
    EXPECT_EQ(result.exit_code, 2) << name << ": " << result.out;
    EXPECT_THAT(result.err, testing::HasSubstr(name)) << result.err;
  }
}

// ONNX files that once crashed the program or filled the memory; one has a transposed tensor and is read.
TEST(HostileFiles, SeedsOfOnnxAreReadOrRefused) {
  int refused = 0, read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TBDSIM_SOURCE_DIR "/tests/fuzz/seeds")) {
    if (entry.path().extension() != ".onnx") continue;
    const test::CliResult result = test::run({"import", entry.path().string()});
    refused += result.exit_code == 2 ? 1 : 0;
    read += result.exit_code == 0 ? 1 : 0;
    const bool is_read = result.exit_code == 0;
    EXPECT_THAT(is_read ? result.out : result.err,
                testing::HasSubstr(is_read ? "type: transpose" : "operators without a layer"));
  }
  EXPECT_EQ(refused, 6);
  EXPECT_EQ(read, 1);
}

TEST(HostileFiles, ThatAreNoFilesAreRefused) {
  const test::TempDir dir;
  for (const std::string& path :
       {dir.path().string(), std::string("/dev/zero"), (dir.path() / "missing.json").string()}) {
    EXPECT_EQ(test::run({"import", path}).exit_code, 2) << path;
    EXPECT_EQ(test::run({"compare", path, "--model", "resnet50", "--batch", "1"}).exit_code, 2) << path;
  }
}

}  // namespace
}  // namespace tbdsim
