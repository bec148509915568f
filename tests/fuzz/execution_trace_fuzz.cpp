// Execution traces of PyTorch, each beside a good one. A step that is written can be read.
#include <string>

#include "graphs/captured/step_reader.h"
#include "simulate/import/execution_trace.h"
#include "simulate/import/traced_step.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tbdsim;
  static const ExecutionTrace good =
      read_execution_trace(TBDSIM_SOURCE_DIR "/tests/import/files/execution_trace_8.json.gz");
  const fuzz::MemoryFile file(data, size);
  return fuzz::run([&] {
    const std::string step = traced_step(read_execution_trace(file.path()), good).text;
    const fuzz::MemoryFile written(reinterpret_cast<const std::uint8_t*>(step.data()), step.size());
    fuzz::require(!read_step_file(written.path()).operators.empty());
  });
}
