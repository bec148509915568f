#include "simulate/import/read_network.h"

#include <cstdint>

#include "simulate/import/keras_network.h"
#include "simulate/import/network_files.h"
#include "simulate/import/summary_network.h"
#include "simulate/import/unpacked_file.h"

namespace tbdsim {
namespace {

constexpr std::uintmax_t kLargestText = std::uintmax_t{1} << 26U;  // 64 MiB

}  // namespace

ImportedFile read_network(FileFormat format, const std::filesystem::path& file, const GivenValues& given) {
  switch (format) {
    case FileFormat::onnx:
      return onnx_network(read_onnx(file), given);
    case FileFormat::paleo:
      return paleo_network(unpacked_text(file, kLargestText), file.string());
    case FileFormat::keras_json:
      return keras_json_network(unpacked_text(file, kLargestText), file.string(), given);
    case FileFormat::keras_summary:
      return keras_network(unpacked_text(file, kLargestText), file.string(), given);
    case FileFormat::torchinfo_summary:
      return torchinfo_network(unpacked_text(file, kLargestText), file.string());
    default:
      return prototxt_network(unpacked_text(file, kLargestText), file.string());
  }
}

}  // namespace tbdsim
