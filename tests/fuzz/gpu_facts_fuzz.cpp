// Texts in which drivers describe GPUs: deviceQuery, nvidia-smi -q (text and XML), --query-gpu.
#include <cmath>

#include "simulate/import/gpu_facts.h"
#include "tests/fuzz/memory_file.h"

namespace {
using namespace tbdsim;

void check(const std::vector<GpuFacts>& all) {
  fuzz::require(!all.empty());
  for (const GpuFacts& facts : all) {
    for (const auto& bytes : {facts.usable_memory, facts.l2_size})
      fuzz::require(!bytes || (std::isfinite(bytes->si()) && *bytes > Bytes(0)));
    fuzz::require(!facts.sm_count || *facts.sm_count > 0);
    fuzz::require(!facts.clock || *facts.clock > Hertz(0));
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto read : {read_device_query, read_smi_text, read_smi_xml, read_smi_csv})
    (void)fuzz::run([&] { check(read(text, "fuzz")); });
  return 0;
}
