// Text of a driver becomes a GPU file that loads and predicts.
#include <filesystem>

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/gpu_spec.h"
#include "simulate/import/gpu_facts.h"
#include "simulate/import/gpu_file.h"
#include "simulate/import/recognise.h"
#include "simulate/import/virtual_gpu.h"
#include "tests/hwspecs/message_of.h"
#include "tests/import/files.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using test::import_file;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string text_of(const std::string& name) { return read_file(import_file(name), 1'000'000); }

TEST(DeviceQuery, SaysWhatARooflineNeeds) {
  const auto all = read_device_query(text_of("devicequery_v100.txt"), "x");
  ASSERT_EQ(all.size(), 1u);
  const GpuFacts& v100 = all[0];
  EXPECT_EQ(v100.name, "Tesla V100-SXM2-32GB");
  EXPECT_EQ(v100.capability, "7.0");
  EXPECT_EQ(v100.sm_count, 80);
  EXPECT_EQ(v100.fp32_lanes_per_sm, 64);
  EXPECT_DOUBLE_EQ(v100.clock->si(), 1530e6);
  EXPECT_TRUE(v100.clock_is_boost);
  EXPECT_DOUBLE_EQ(v100.memory_bandwidth->si(), 2 * 877e6 * 4096 / 8);  // 898 GB/s
  EXPECT_DOUBLE_EQ(v100.usable_memory->si(), 34072559616.0);
  EXPECT_DOUBLE_EQ(v100.l2_size->si(), 6291456.0);
  EXPECT_EQ(v100.ecc, true);
}

TEST(Smi, TextXmlAndTablesSayTheSame) {
  const GpuFacts text = read_smi_text(text_of("smi_q_quadro_rtx5000.txt"), "x").at(0);
  EXPECT_EQ(text.name, "Quadro RTX 5000");
  EXPECT_DOUBLE_EQ(text.usable_memory->si(), 16125.0 * 1048576);
  EXPECT_DOUBLE_EQ(text.power_limit->si(), 230);
  EXPECT_DOUBLE_EQ(text.clock->si(), 2100e6);
  EXPECT_FALSE(text.clock_is_boost);
  EXPECT_EQ(text.pcie_generation, 3);
  EXPECT_EQ(text.ecc, std::nullopt);  // "N/A"

  const GpuFacts xml = read_smi_xml(text_of("smi_q_t4.xml"), "x").at(0);
  EXPECT_EQ(xml.name, "Tesla T4");
  EXPECT_DOUBLE_EQ(xml.usable_memory->si(), (15360.0 - 432) * 1048576);  // less what the driver keeps
  EXPECT_EQ(xml.ecc, true);
  EXPECT_DOUBLE_EQ(xml.power_limit->si(), 70);

  const auto table = read_smi_csv(text_of("smi_query.csv"), "x");
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[1].name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(table[1].capability, "8.0");
  EXPECT_DOUBLE_EQ(table[1].power_limit->si(), 400);
}

// A MIG device below the card, whose memory of 40,192 MiB is not the card's: 81,920 less 617.
TEST(Smi, ASliceIsNotTheCard) {
  const GpuFacts card = read_smi_text(text_of("smi_q_mig.txt"), "x").at(0);
  EXPECT_DOUBLE_EQ(card.usable_memory->si(), (81920.0 - 617) * 1048576);
}

TEST(Smi, SaysWhetherMigDividesACard) {
  const auto divided = [](const std::string& mode) {
    const std::string table =
        "name, memory.total [MiB], mig.mode.current\nNVIDIA A100-SXM4-80GB, 81920 MiB, " + mode + "\n";
    return read_smi_csv(table, "x").at(0).divided;
  };
  EXPECT_TRUE(divided("Enabled"));
  EXPECT_FALSE(divided("Disabled"));
  EXPECT_FALSE(divided("[N/A]"));
  const auto said = [](const char* file) {
    const test::TempDir dir;
    return test::run({"import", import_file(file), "-o", dir.path().string()}).out;
  };
  EXPECT_THAT(said("smi_q_mig.txt"), HasSubstr("MIG is on, and this is the whole card"));
  EXPECT_THAT(said("smi_q_quadro_rtx5000.txt"), Not(HasSubstr("MIG is on")));
}

TEST(Smi, WhatADriverDoesNotSayIsUnknown) {
  const auto table = read_smi_csv(
      "name, memory.total [MiB], power.default_limit [W], ecc.mode.current\n"
      "Tesla K80, 11441 MiB, [Insufficient Permissions], Requested functionality has been deprecated\n",
      "x");
  EXPECT_EQ(table.at(0).power_limit, std::nullopt);
  EXPECT_EQ(table.at(0).ecc, std::nullopt);
}

TEST(GpuImport, RecognisesACardOfTheCatalogue) {
  const test::TempDir dir;
  const test::CliResult result =
      test::run({"import", import_file("devicequery_v100.txt"), "-o", dir.path().string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("deviceQuery of CUDA's samples"),
                                HasSubstr("v100_sxm2_32gb of the catalogue, and nothing differs")));
  const GpuSpec gpu = read_gpu(dir.path() / "v100_sxm2_32gb.yaml", test::source_specs().catalog());
  EXPECT_EQ(gpu.usable_memory.si(), 34072559616.0);
  EXPECT_NEAR(gpu.memory_bandwidth.si(), 898.048e9, 1e6);
  EXPECT_NEAR(rate_of(gpu, MathType::fp32).peak.si(), 15.67e12, 0.01e12);
  EXPECT_EQ(gpu.sources.at("sm_count"), "deviceQuery, devicequery_v100.txt");
}

TEST(GpuImport, NamesWhatDiffers) {
  const test::TempDir dir;
  std::string text = text_of("devicequery_v100.txt");
  text.replace(text.find("1530 MHz (1.53"), 4, "1380");
  const auto file = dir.write("slow.txt", text);
  const test::CliResult result = test::run({"import", file.string(), "-o", dir.path().string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("what differs: boost_clock 1380 MHz (1530 MHz there)"));
  const GpuSpec gpu = read_gpu(dir.path() / "v100_sxm2_32gb.yaml", test::source_specs().catalog());
  EXPECT_NEAR(rate_of(gpu, MathType::fp32).peak.si(), 80 * 128 * 1380e6, 1e9);
}

TEST(GpuImport, AsksByNameForWhatIsMissing) {
  const test::CliResult result = test::run({"import", import_file("devicequery_quadro_rtx5000.txt")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("'Quadro RTX 5000' is no card of the catalogue"),
                                HasSubstr("its tdp;"), HasSubstr("--set tdp="), Not(HasSubstr("l2_size"))));
  const test::CliResult smi = test::run({"import", import_file("smi_q_quadro_rtx5000.txt")});
  EXPECT_THAT(smi.err, HasSubstr("compute_capability, sm_count, memory_bandwidth, l2_size"));
}

// Two files of one card, or a value on the command line, say what the first does not; the file predicts at
// once.
TEST(GpuImport, PredictsACardThatTheCatalogueHasNot) {
  const test::TempDir dir;
  const std::string query = import_file("devicequery_quadro_rtx5000.txt");
  const test::CliResult result =
      test::run({"import", query, import_file("smi_q_quadro_rtx5000.txt"), "-o", dir.path().string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string path = (dir.path() / "quadro_rtx_5000.yaml").string();
  const GpuSpec gpu = read_gpu(path, test::source_specs().catalog());
  EXPECT_EQ(gpu.architecture, "turing");
  EXPECT_EQ(gpu.product_line, ProductLine::workstation);
  EXPECT_EQ(gpu.tdp.si(), 230);
  EXPECT_EQ(in_unit(gpu.memory_size, "GiB"), 16);
  EXPECT_DOUBLE_EQ(gpu.boost_clock.si(), 1815e6);  // not the driver's 2100 MHz
  EXPECT_NEAR(rate_of(gpu, MathType::fp16).peak.si(), 48 * 1024 * 1815e6, 1e9);
  const test::CliResult predicted =
      test::run({"--model", "resnet50", "--framework", "pytorch", "--gpu", path, "--batch", "16"});
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.out, HasSubstr("Quadro RTX 5000"));

  const test::TempDir other;
  EXPECT_EQ(test::run({"import", query, "--set", "tdp=230W", "-o", other.path().string()}).exit_code, 0);
  EXPECT_EQ(read_gpu(other.path() / "quadro_rtx_5000.yaml", test::source_specs().catalog()).tdp.si(), 230);
}

TEST(GpuImport, RefusesOddValues) {
  const std::string query = import_file("devicequery_quadro_rtx5000.txt");
  EXPECT_THAT(test::run({"import", query, "--set", "tpd=230W"}).err, HasSubstr("did you mean 'tdp'?"));
  EXPECT_THAT(test::run({"import", query, "--set", "tdp=230"}).err, HasSubstr("--set tdp: "));
  EXPECT_THAT(test::run({"import", query, "--set", "tdp"}).err, HasSubstr("expected KEY=VALUE"));
  EXPECT_THAT(test::message_of<SpecError>([] {
                (void)read_device_query("Device 0: \"T\"\n  CUDA Capability Major/Minor version number: x\n",
                                        "f.txt");
              }),
              HasSubstr("f.txt:2:1: 'x'; expected a compute capability as 7.0"));
}

TEST(Recognise, KnowsEachFormatByItsBeginning) {
  const std::pair<const char*, FileFormat> files[] = {{"devicequery_v100.txt", FileFormat::device_query},
                                                      {"smi_q_quadro_rtx5000.txt", FileFormat::smi_text},
                                                      {"smi_q_t4.xml", FileFormat::smi_xml},
                                                      {"smi_query.csv", FileFormat::smi_csv},
                                                      {"topo_1080ti.txt", FileFormat::topology_matrix},
                                                      {"topo_4090.txt", FileFormat::topology_matrix},
                                                      {"topo_h100.txt", FileFormat::topology_matrix},
                                                      {"lspci_4x1080ti.txt", FileFormat::lspci_tree},
                                                      {"hwloc_2xp100.xml", FileFormat::hwloc_xml},
                                                      {"trace.json", FileFormat::chrome_trace},
                                                      {"trace_old.json.gz", FileFormat::chrome_trace},
                                                      {"nsys_kern_sum.csv", FileFormat::nsys_kernels},
                                                      {"nsys_gpu_trace.csv", FileFormat::nsys_trace},
                                                      {"nvprof_summary.csv", FileFormat::nvprof_summary},
                                                      {"nvprof_summary_old.csv", FileFormat::nvprof_summary},
                                                      {"nvprof_trace.csv", FileFormat::nvprof_trace},
                                                      {"ncu.csv", FileFormat::ncu_csv},
                                                      {"ncu_raw.csv", FileFormat::ncu_csv}};
  for (const auto& [name, format] : files) EXPECT_EQ(recognise(import_file(name)), format) << name;
  EXPECT_EQ(recognise(import_file("README.md")), std::nullopt);
  EXPECT_THAT(test::run({"import", import_file("README.md")}).err,
              HasSubstr("no format that is known; expected one of"));
}

// What deviceQuery says of a card, as far as a file of it needs.
std::string device_query(const std::string& name, const std::string& capability, const std::string& lanes) {
  return "Device 0: \"" + name + "\"\n  CUDA Capability Major/Minor version number:    " + capability +
         "\n  Total amount of global memory:                 5912 MBytes (6199377920 bytes)\n  (024) "
         "Multiprocessors, (" +
         lanes +
         ") CUDA Cores/MP:    1536 CUDA Cores\n"
         "  GPU Max Clock rate:                            1770 MHz (1.77 GHz)\n"
         "  Memory Clock rate:                             6001 Mhz\n  Memory Bus Width:   192-bit\n"
         "  L2 Cache Size:                                 1572864 bytes\n";
}

// 24 SMs of 64 lanes at 1770 MHz: 2 * 64 * 24 * 1.77e9 = 5.43744 TFLOP/s, twice as many of fp16. An RTX card
// of that capability has tensor cores, 512 fp16 operations of an SM.
TEST(GpuImport, CardsOfCapability75WithoutRtxHaveNoTensorCores) {
  const test::TempDir dir;
  const auto imported = [&](const std::string& name) {
    const auto file = dir.write("d.txt", device_query(name, "7.5", "064"));
    return test::run({"import", file.string(), "--set", "tdp=120W"}).out;
  };
  const std::string gtx = imported("NVIDIA GeForce GTX 1660 Ti");
  EXPECT_THAT(gtx,
              AllOf(HasSubstr("fp32:\n    flops_per_clock_per_sm: 128\n    quoted_peak: 5.43744 TFLOP/s"),
                    HasSubstr("fp16:\n    flops_per_clock_per_sm: 256\n    quoted_peak: 10.8749 TFLOP/s"),
                    HasSubstr("without tensor cores")));
  EXPECT_THAT(imported("Quadro T1000"), HasSubstr("flops_per_clock_per_sm: 256\n"));
  EXPECT_THAT(imported("NVIDIA GeForce RTX 2060 Ti"), HasSubstr("fp16:\n    flops_per_clock_per_sm: 512\n"));
}

// A slice has its own SMs and memory, and what the tool does not say from the card.
TEST(GpuImport, ASliceOfACardHasThePowerOfTheCard) {
  const test::TempDir dir;
  const auto file = dir.write("d.txt", device_query("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "8.0", "064"));
  const test::CliResult result = test::run({"import", file.string()});
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("is a slice of a100_sxm_40gb"), HasSubstr("sm_count: 24\n"),
                    HasSubstr("tdp: 400 W\n"), HasSubstr("tdp: \"of the whole card, a100_sxm_40gb\"")));
}

// The tensor cores of an H100 have their own clock, 1830 MHz, which those of a slice of it have, too:
// 2 * 2048 * 24 * 1.83e9 = 179.896 TFLOP/s of fp16. An unknown card has none of another's clocks.
TEST(GpuImport, ASliceOfACardHasTheClockOfItsTensorCores) {
  const test::TempDir dir;
  const auto imported = [&](const std::string& name) {
    const auto file = dir.write("d.txt", device_query(name, "9.0", "128"));
    return test::run({"import", file.string(), "--set", "tdp=700W"}).out;
  };
  const std::string slice = imported("NVIDIA H100 80GB HBM3 MIG 1g.10gb");
  EXPECT_THAT(slice, HasSubstr("is a slice of h100_sxm"));
  EXPECT_THAT(slice, AllOf(HasSubstr("clock: 1830 MHz\n"), HasSubstr("quoted_peak: 179.896 TFLOP/s")));
  EXPECT_THAT(imported("NVIDIA H111 80GB"), Not(HasSubstr("\n    clock:")));
}

// A virtual GPU has its own memory and, while it is alone, the SMs of its card: 8 GiB of a T4; without what
// the driver says, as much as its name.
TEST(GpuImport, AVirtualGpuIsAShareOfItsCard) {
  const test::TempDir dir;
  const auto imported = [&](const std::string& row) {
    const auto file = dir.write("q.csv", "name, memory.total [MiB], compute_cap\n" + row + "\n");
    const test::CliResult result = test::run({"import", file.string()});
    return result.out + result.err;
  };
  const std::string t4 = imported("GRID T4-8Q, 8128 MiB, 7.5");
  EXPECT_THAT(t4, AllOf(HasSubstr("GRID T4-8Q is t4 of the catalogue"),
                        HasSubstr("as long as no other virtual GPU"), HasSubstr("sm_count: 40\n"),
                        HasSubstr("memory_size: 8589934592 B"), HasSubstr("usable_memory: 8522825728 B")));
  EXPECT_THAT(imported("NVIDIA A40-48Q, [N/A], 8.6"),
              AllOf(HasSubstr("is a40 of the catalogue"), HasSubstr("usable_memory: 51539607552 B")));
  EXPECT_THAT(imported("GRID A100-3-20C, 20475 MiB, 8.0"),
              HasSubstr("does not say its sm_count"));  // a MIG slice
  EXPECT_THAT(
      imported("NVIDIA A10-25Q, 8128 MiB, 8.6"),
      HasSubstr("'NVIDIA A10-25Q' says 26843545600 B of memory; expected at most the 25769803776 B of a10"));
  EXPECT_THAT(imported("GRID Z9-8Q, 8128 MiB, 7.5"), HasSubstr("'GRID Z9-8Q' is no card of the catalogue"));
}

// The letters behind a card's number tell its memory and how it is built in.
TEST(VirtualGpus, AreOfCardsByTheirCodes) {
  const auto card = [](std::string_view name) {
    const auto gpu = virtual_gpu(name);
    return gpu ? gpu->card : std::string();
  };
  EXPECT_EQ(card("GRID V100DX-32C"), "v100_sxm2_32gb");
  EXPECT_EQ(card("GRID A100D-80C"), "a100_pcie_80gb");
  EXPECT_EQ(card("NVIDIA A100DX-1-10CME"), "a100_sxm_80gb");
  EXPECT_EQ(card("NVIDIA RTX6000-Ada-48Q"), "rtx6000_ada");
  EXPECT_EQ(virtual_gpu("NVIDIA A100DX-1-10CME")->slices, 1);
  EXPECT_EQ(virtual_gpu("GRID M60-0B")->memory, Bytes(512.0 * 1'048'576));
  for (const char* other : {"Tesla V100-SXM2-32GB", "NVIDIA A100-PCIE-40GB", "GRID K520", "-8Q", "8Q", "",
                            "T4-Q", "T4-9999Q", "GRID A100-0-20C", "NVIDIA H100 NVL"})
    EXPECT_EQ(virtual_gpu(other), std::nullopt) << other;
}

// Every card that a code means is there.
TEST(VirtualGpus, HaveCardsOfTheCatalogue) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  for (const std::string& code : virtual_gpu_codes()) {
    const auto gpu = virtual_gpu("NVIDIA " + code + "-4Q");
    ASSERT_TRUE(gpu) << code;
    EXPECT_TRUE(catalog.contains(Kind::gpu, gpu->card)) << gpu->card;
  }
}

// A card of one's own catalogue that does not say its power: what is missing is asked for by its name.
TEST(GpuImport, ASliceOfACardThatLacksAValueAsksForIt) {
  const test::TempDir dir;
  for (const KindInfo& info : kKinds) std::filesystem::create_directories(dir.path() / info.folder);
  dir.write("hwspecs/gpus/mine.yaml", "title: My Card\nmemory_type: HBM3\nbus: pcie5\n");
  const GpuFacts slice = read_device_query(device_query("My Card MIG 1g.10gb", "9.0", "128"), "f").at(0);
  EXPECT_THAT(
      test::message_of<UsageError>([&] { (void)gpu_file(slice, "f", {}, Catalog::from(dir.path())); }),
      AllOf(HasSubstr("does not say its tdp;"), HasSubstr("--set tdp=")));
}

TEST(Recognise, SaysWhatIsExpectedInPlaceOfANearFormat) {
  const test::TempDir dir;
  const auto error_of = [&](const std::string& text) {
    return test::run({"import", dir.write("f", text).string()}).err;
  };
  EXPECT_THAT(error_of("| NVIDIA-SMI 470.103.01   Driver Version: 470.103.01 |\n"),
              HasSubstr("the table of nvidia-smi, which cuts names; expected what 'nvidia-smi -q' prints"));
  EXPECT_THAT(
      error_of("01:00.0 VGA compatible controller: NVIDIA Corporation GA104 [GeForce RTX 3070] (rev a1)\n"),
      HasSubstr("expected what 'lspci -tv' prints"));
  EXPECT_THAT(error_of("0, NVIDIA A10G, 23028 MiB\n"), HasSubstr("without noheader"));
  EXPECT_THAT(error_of("Tesla T4, 15109 MiB\n"), HasSubstr("without noheader"));
  EXPECT_THAT(error_of("SQLite format 3"), HasSubstr("nsys stats"));
  EXPECT_THAT(error_of("PK\x03\x04"), HasSubstr("torch.onnx.export"));
  EXPECT_THAT(error_of("\x89HDF"), HasSubstr("model.summary(line_length=160)"));
  EXPECT_THAT(error_of("NVIDIA A10G, 23028, 150.00\n"), HasSubstr("without noheader"));
  EXPECT_THAT(error_of("op {\n  output: \"conv1\"\n  type: \"Conv\"\n}\n"), HasSubstr("a network of Caffe2"));
  EXPECT_THAT(error_of("net: \"a.prototxt\"\nbase_lr: 0.01\n"), HasSubstr("a solver of Caffe"));
  EXPECT_THAT(error_of("NVIDIA makes cards\n"), HasSubstr("no format that is known"));
  EXPECT_THAT(error_of("Measured on two cards, NVIDIA A100 and T4.\n"), HasSubstr("no format that is known"));
}

}  // namespace
}  // namespace tbdsim
