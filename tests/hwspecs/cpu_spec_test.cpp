#include "hwspecs/cpu_spec.h"

#include <string>

#include <gtest/gtest.h>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/error.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

// Table IV of the TBD paper: 28 cores, of which a socket has 14, 2900 MHz, DDR4 at 76.8 GB/s, 35 MB of
// last-level cache.
TEST(CpuSpec, XeonIsThatOfTableIV) {
  const CpuSpec cpu = read_cpu(Catalog::from(TBDSIM_SOURCE_DIR).find(Kind::cpu, "xeon_e5_2680"));
  EXPECT_EQ(cpu.name, "xeon_e5_2680");
  EXPECT_EQ(cpu.core_count, 14);
  EXPECT_EQ(cpu.max_clock, Hertz(2900e6));
  EXPECT_EQ(cpu.memory_type, "DDR4");
  EXPECT_DOUBLE_EQ(cpu.memory_bandwidth.si(), 76.8e9);
  EXPECT_EQ(cpu.llc_size, Bytes(35 * kMiB));
  EXPECT_EQ(cpu.sources.size(), 5U);  // four numbers and the memory's type
}

TEST(CpuSpec, EveryFileOfTheCatalogueLoads) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  for (const std::string& name : catalog.names(Kind::cpu)) {
    SCOPED_TRACE(name);
    EXPECT_EQ(read_cpu(catalog.find(Kind::cpu, name)).name, name);
  }
}

class CpuFile : public testing::Test {
 protected:
  std::string refusal(const std::string& core_count, const std::string& sources) {
    const auto file =
        directory_.write("cpu.yaml", "title: Test\ncore_count: " + core_count +
                                         "\nmax_clock: 2 GHz\nmemory_bandwidth: 10 GB/s\nmemory_type: DDR4\n"
                                         "llc_size: 1 MiB\nsources: {" +
                                         sources + "}\n");
    const std::string message = test::message_of<SpecError>([&] { (void)read_cpu(file); });
    return message.starts_with(file.string()) ? message.substr(file.string().size()) : message;
  }
  const std::string sources_ = "core_count: x, max_clock: x, memory_bandwidth: x, llc_size: x";

 private:
  test::TempDir directory_;
};

TEST_F(CpuFile, RefusesBadValues) {
  EXPECT_EQ(refusal("28", sources_), "(nothing thrown)");
  EXPECT_EQ(refusal("0", sources_),
            ":2:13: core_count: '0' is out of range; expected a whole number, 1 to 100000");
  EXPECT_EQ(refusal("028", sources_),
            ":2:13: core_count: '028' is not a whole number; expected a whole number, 1 to 100000");
  EXPECT_EQ(refusal("28\nsockets: 2", sources_),
            ":3:1: unknown key 'sockets'; expected one of title, core_count, max_clock, "
            "memory_bandwidth, memory_type, llc_size, sources");
  EXPECT_EQ(refusal("28", "core_count: x, max_clock: x, memory_bandwidth: x"),
            ":7:10: sources: no source for 'llc_size'; expected where its value comes from");
}

}  // namespace
}  // namespace tbdsim
