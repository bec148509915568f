// Networks of other tools: ONNX, Keras, Paleo, prototxt. A file that is written is plain YAML.
#include "hwspecs/base/spec_parser.h"
#include "simulate/import/keras_network.h"
#include "simulate/import/network_files.h"
#include "simulate/import/recognise.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tbdsim;
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)recognise_text(text);
  const auto check = [](const ImportedFile& file) { (void)parse_spec(file.text, "imported"); };
  (void)fuzz::run([&] { check(onnx_network(parse_onnx(text, "fuzz"), {})); });
  (void)fuzz::run([&] { check(keras_json_network(text, "fuzz", {{"input", "28x28x1"}})); });
  (void)fuzz::run([&] { check(paleo_network(text, "fuzz")); });
  return fuzz::run([&] { check(prototxt_network(text, "fuzz")); });
}
