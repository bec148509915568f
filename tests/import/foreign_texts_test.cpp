// Texts as other systems, shells and versions of the tools write them.
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "simulate/import/machine_facts.h"
#include "simulate/import/measured_run.h"
#include "simulate/import/unpacked_file.h"
#include "simulate/import/utf16.h"
#include "tests/hwspecs/message_of.h"
#include "tests/import/files.h"
#include "tests/support/cli.h"
#include "tests/support/hostile_text.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;

std::string decoded(std::initializer_list<std::string_view> pieces, bool big_end_first) {
  Utf16Decoder decoder(big_end_first);
  std::string text;
  for (const std::string_view piece : pieces) decoder.append(piece, text);
  return text;
}

// U+03BC is 03 BC in UTF-16 and CE BC in UTF-8; U+20AC E2 82 AC; U+1F600 the pair D83D DE00 and F0 9F 98 80.
TEST(Utf16, IsDecoded) {
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(decoded({"a\0\xbc\x03\xac\x20"sv}, false), "a\xce\xbc\xe2\x82\xac");
  EXPECT_EQ(decoded({"\0a\x03\xbc\x20\xac"sv}, true), "a\xce\xbc\xe2\x82\xac");
  EXPECT_EQ(decoded({"\xd8\x3d"sv, "\xde\x00"sv}, true), "\xf0\x9f\x98\x80");
  const std::string none = "\xef\xbf\xbd";
  EXPECT_EQ(decoded({"\xd8\x3d\0a"sv}, true), none + "a");  // half a pair
  EXPECT_EQ(decoded({"\xde\x00\0a"sv}, true), none + "a");
  EXPECT_EQ(decoded({"\0a\0"sv}, true), "a" + none);
}

// Text that PowerShell writes for "tool > file", packed or not, imports as that of other shells.
TEST(ForeignTexts, InUtf16AreRead) {
  const test::TempDir dir;
  for (const char* name : {"devicequery_v100.txt", "smi_q_mig.txt", "nsys_kern_sum.csv", "nvprof_trace.csv",
                           "trace.json", "alexnet.prototxt", "alexnet_paleo.json"}) {
    const std::string text = read_file(test::import_file(name), 1'000'000);
    const auto imported = [&](const std::string& bytes) {
      const std::string file = dir.write(name, bytes).string();
      const test::CliResult result = test::run({"import", file});
      EXPECT_EQ(result.exit_code, 0) << name << ": " << result.err;
      return result.out;
    };
    const std::string as_it_is = imported(text);
    for (const auto& [what, bytes] : test::rewritten(text)) {
      if (!what.starts_with("UTF-16")) continue;
      EXPECT_EQ(imported(bytes), as_it_is) << name << ", " << what;
      EXPECT_EQ(imported(test::gzipped(bytes, "", 0)), as_it_is) << name << ", " << what;
    }
  }
}

// Members of gzip that stand one behind another are one text; half of the second is none.
TEST(ForeignTexts, InSeveralMembersOfGzipAreReadWhole) {
  const test::TempDir dir;
  const std::string first = test::gzipped("begin ", "", 0), second = test::gzipped("end", "", 0);
  EXPECT_EQ(unpacked_text(dir.write("whole.gz", first + second), 100), "begin end");
  const std::string cut = dir.write("cut.gz", first + second.substr(0, second.size() - 9)).string();
  EXPECT_THAT(test::message_of<SpecError>([&] { (void)unpacked_text(cut, 100); }),
              testing::HasSubstr("is no whole gzip file"));
}

// Nine bytes of a byte-order mark, three characters and half of one are 3 + 3 bytes of UTF-8; such a text is
// refused, not cut, where the file has more bytes than it may.
TEST(ForeignTexts, InUtf16ThatAreTooLongAreNotCut) {
  const test::TempDir dir;
  const std::string file = dir.write("short.txt", std::string("\xff\xfe"
                                                              "a\0b\0c\0d",
                                                              9))
                               .string();
  EXPECT_EQ(unpacked_text(file, 9), "abc\xef\xbf\xbd");
  EXPECT_THAT(test::message_of<UsageError>([&] { (void)unpacked_text(file, 8); }),
              HasSubstr("short.txt: holds more than 0 MiB"));
}

// 'nsys stats --format csv' without -r prints its reports one behind another. 1 x 5 us + 2 x 2 us.
TEST(ForeignTexts, OfSeveralNsysReportsHaveTheKernelsOfOne) {
  constexpr const char* kReports =
      "Processing [r.sqlite] with [reports/cuda_api_sum.py]... \n\n"
      "Time (%),Total Time (ns),Num Calls,Avg (ns),Name\n100.0,50000,5,10000.0,cudaLaunchKernel\n\n"
      "Processing [r.sqlite] with [reports/cuda_gpu_kern_sum.py]... \n\n"
      "Time (%),Total Time (ns),Instances,Avg (ns),Name\n55.6,5000,1,5000.0,volta_sgemm_128x64_nn\n"
      "44.4,4000,2,2000.0,vectorized_elementwise_kernel\n\n"
      "Processing [r.sqlite] with [reports/cuda_gpu_mem_time_sum.py]... \n\n"
      "Time (%),Total Time (ns),Count,Avg (ns),Operation\n100.0,20000,2,10000.0,[CUDA memcpy HtoD]\n";
  const test::TempDir dir;
  const MeasuredRun run = read_measured_run(dir.write("all.csv", kReports));
  ASSERT_EQ(run.kernels.size(), 2u);
  EXPECT_DOUBLE_EQ(run.kernel_time.si(), 9e-6);
  EXPECT_EQ(run.kernels[1].count, 2);
}

TEST(ForeignTexts, OfOtherReportsSayWhatIsExpected) {
  const test::TempDir dir;
  const auto error = [&](const std::string& text) {
    const test::CliResult result = test::run({"import", dir.write("table.csv", text).string()});
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  };
  const char* expected = "expected 'nsys stats -r cuda_gpu_kern_sum --format csv'";
  EXPECT_THAT(
      error("Time (%),Total Time (ns),Num Calls,Avg (ns),Name\n100.0,50000,5,1000.0,cudaLaunchKernel\n"),
      HasSubstr(expected));
  EXPECT_THAT(
      error(" ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n"
            " Time (%)  Total Time (ns)  Instances  Name\n -------  -----  ----  ----\n 75.0  3  3  k\n"),
      HasSubstr(expected));
  EXPECT_THAT(error("Time (%);Total Time (ns);Instances;Name\n75,0;300000;3;k\n"),
              HasSubstr("parted by semicolons"));
}

// Reports of nsys of 2020 stand below words of their own; the second is no part of the first.
TEST(ForeignTexts, OfNsysBefore2022AreRead) {
  const test::TempDir dir;
  const auto file = dir.write("n.csv",
                              "Generating CUDA Kernel Statistics...\nCUDA Kernel Statistics (nanoseconds)\n\n"
                              "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name\n"
                              "100.0,300,3,100.0,90,110,volta_sgemm_128x64_nn\n\n"
                              "Generating CUDA Memory Operation Statistics...\n"
                              "Time(%),Total Time (ns),Operations,Average,Minimum,Maximum,Name\n"
                              "100.0,50,1,50.0,50,50,[CUDA memcpy HtoD]\n");
  const MeasuredRun run = read_measured_run(file);
  ASSERT_EQ(run.kernels.size(), 1u);
  EXPECT_DOUBLE_EQ(run.kernel_time.si(), 300e-9);
}

// Rows of metrics end before the columns of rules, which Nsight Compute has from 2022 on; 2 + 3 us.
TEST(ForeignTexts, OfNsightComputeWithRulesAreRead) {
  const test::TempDir dir;
  const auto file = dir.write(
      "n.csv",
      "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule Name\",\"Rule Type\"\n"
      "\"0\",\"a, b\",\"Duration\",\"us\",\"2.0\"\n\"0\",\"a, b\",\"\",\"\",\"\",\"Bottleneck\",\"OPT\"\n"
      "\"1\",\"a, b\",\"Duration\",\"ns\",\"3,000\"\n");
  const MeasuredRun run = read_measured_run(file);
  EXPECT_NEAR(run.kernel_time.si(), 5e-6, 1e-12);
  EXPECT_THAT(run.kernels.at(0).name, HasSubstr("a, b"));
}

// Errors about outputs for people, and about stand-ins for a file, name the file that is expected.
TEST(ForeignTexts, ForPeopleSayWhatIsExpected) {
  const test::TempDir dir;
  const auto error = [&](const std::string& name, const std::string& text) {
    return test::run({"import", dir.write(name, text).string()}).err;
  };
  EXPECT_THAT(error("a.txt", "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c)\n"), HasSubstr("'nvidia-smi -q'"));
  EXPECT_THAT(error("a.txt", "==7== Profiling result:\n  Type  Time(%)  Time  Calls  Name\n"),
              HasSubstr("expected 'nvprof --csv'"));
  EXPECT_THAT(error("a.txt",
                    "[42] python3@127.0.0.1\n  k (10, 1, 1)x(256, 1, 1)\n    Section: GPU Speed Of Light "
                    "Throughput\n    Metric Name Metric Unit Metric Value\n"),
              HasSubstr("expected 'ncu --csv'"));
  EXPECT_THAT(error("a.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 10\n"),
              HasSubstr("git lfs pull"));
}

// Numbers of a locale with decimal commas would be ten or a thousand times too large without them.
TEST(ForeignTexts, RefusesDecimalCommas) {
  const test::TempDir dir;
  const auto run = [&](const std::string& time) {
    const std::string table =
        "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
        "\"0\",\"k\",\"Duration\",\"us\",\"" +
        time + "\"\n";
    return test::run({"import", dir.write("t.csv", table).string()});
  };
  for (const char* wrong : {"12,34", "1.234,50", "1,2345", "1,23.4"})
    EXPECT_THAT(run(wrong).err, HasSubstr("has a comma that parts no thousands")) << wrong;
  for (const char* right : {"12.34", "1,234.5", "1,234,567", "1234"})
    EXPECT_EQ(run(right).exit_code, 0) << right;
}

// Kineto writes the result of a division by 0 as it is.
TEST(ForeignTexts, NameNumbersThatJsonHasNot) {
  const test::TempDir dir;
  for (const char* number : {"nan", "-nan", "inf", "-inf", "NaN"}) {
    const std::string trace =
        std::string(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "args": {"blocks per SM": )") + number +
        "}}]}";
    EXPECT_THAT(test::run({"import", dir.write("t.json", trace).string()}).err,
                HasSubstr("nan or inf at byte"))
        << number;
  }
  const std::string cut = R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "Memset (Devi)";
  EXPECT_THAT(test::run({"import", dir.write("t.json", cut).string()}).err, HasSubstr("no JSON at byte"));
}

// Files of other programs that have a way to become ours: configurations.
TEST(ForeignTexts, OfConfigurationsSayWhatIsExpected) {
  const test::TempDir dir;
  const auto error = [&](const std::string& text) {
    return test::run({"import", dir.write("c.json", text).string()}).err;
  };
  EXPECT_THAT(error(R"({"model_type": "llama", "hidden_size": 4096})"),
              HasSubstr("python -m tbdsim.hugging_face"));
}

// hwloc before 1.11 calls packages sockets, and has a device's name in an attribute.
TEST(ForeignTexts, OfHwloc1HaveSocketsAndNames) {
  constexpr const char* kTopology = R"(<topology><object type="Machine">
    <object type="NUMANode" local_memory="1073741824"><object type="Socket">
      <info name="CPUModel" value="Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz"/></object>
      <object type="Bridge"><object type="Bridge"><object type="Bridge">
        <object type="PCIDev" name="NVIDIA Corporation GK210GL [Tesla K80]" pci_type="0302 [10de:102d] [10de:106c] a1"/>
        <object type="PCIDev" name="NVIDIA Corporation GK210GL [Tesla K80]" pci_type="0302 [10de:102d] [10de:106c] a1"/>
      </object></object></object></object>
    <object type="NUMANode" local_memory="1073741824"><object type="Socket"/></object>
  </object></topology>)";
  const MachineFacts facts = read_hwloc_xml(kTopology, "topology.xml");
  EXPECT_EQ(facts.sockets, 2);
  ASSERT_EQ(facts.slots.size(), 2u);
  EXPECT_EQ(facts.slots[0].gpu, "Tesla K80");
  EXPECT_EQ(facts.slots[1].port, facts.slots[0].port);
}

// Only Grace has the link that joins a GB200's GPUs to their processor.
TEST(ForeignTexts, OfAGb200HaveItsProcessor) {
  const test::TempDir dir;
  const std::string file =
      dir.write("topo.txt",
                "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV18\t0-71\t0\t2\n"
                "GPU1\tNV18\t X \t0-71\t0\t10\n")
          .string();
  EXPECT_THAT(test::run({"import", file, "--gpu", "gb200"}).out, HasSubstr("\ncpu: grace\n"));
  EXPECT_THAT(test::run({"import", file, "--gpu", "h100_sxm"}).out, HasSubstr("\ncpu: xeon_gold_6230\n"));
}

}  // namespace
}  // namespace tbdsim
