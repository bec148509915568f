// Printed summaries of networks. A file that is written is plain YAML.
#include <string>

#include "hwspecs/base/spec_parser.h"
#include "simulate/import/summary_network.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tbdsim;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto check = [](const ImportedFile& file) { (void)parse_spec(file.text, "imported"); };
  (void)fuzz::run([&] { check(torchinfo_network(text, "fuzz")); });
  return fuzz::run([&] { check(keras_network(text, "fuzz", {{"input", "28x28x1"}})); });
}
