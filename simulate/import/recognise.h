// Recognises which of the formats that people have a file is in.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tbdsim {

enum class FileFormat : std::uint8_t {
  device_query,
  smi_text,
  smi_xml,
  smi_csv,
  topology_matrix,
  lspci_tree,
  hwloc_xml,
  chrome_trace,
  nsys_kernels,
  nsys_trace,
  nvprof_summary,
  nvprof_trace,
  ncu_csv,
  onnx,
  paleo,
  prototxt,
  keras_json,
  keras_summary,
  torchinfo_summary,
  execution_trace
};

// The result of an import: the description of a GPU, a machine or a model, kernels measured in a run, or, of
// two files, a captured step.
enum class ImportKind : std::uint8_t { gpu, machine, kernels, model, step };

struct FormatInfo {
  FileFormat format;
  ImportKind kind;
  std::string_view title;
};
inline constexpr std::array<FormatInfo, 20> kFileFormats = {{
    {FileFormat::device_query, ImportKind::gpu, "deviceQuery of CUDA's samples"},
    {FileFormat::smi_text, ImportKind::gpu, "nvidia-smi -q"},
    {FileFormat::smi_xml, ImportKind::gpu, "nvidia-smi -q -x"},
    {FileFormat::smi_csv, ImportKind::gpu, "nvidia-smi --query-gpu=... --format=csv"},
    {FileFormat::topology_matrix, ImportKind::machine, "nvidia-smi topo -m"},
    {FileFormat::lspci_tree, ImportKind::machine, "lspci -tv"},
    {FileFormat::hwloc_xml, ImportKind::machine, "lstopo --of xml (hwloc)"},
    {FileFormat::chrome_trace, ImportKind::kernels, "Chrome trace of the PyTorch profiler"},
    {FileFormat::nsys_kernels, ImportKind::kernels, "nsys stats -r cuda_gpu_kern_sum --format csv"},
    {FileFormat::nsys_trace, ImportKind::kernels, "nsys stats -r cuda_gpu_trace --format csv"},
    {FileFormat::nvprof_summary, ImportKind::kernels, "nvprof --csv"},
    {FileFormat::nvprof_trace, ImportKind::kernels, "nvprof --print-gpu-trace --csv"},
    {FileFormat::ncu_csv, ImportKind::kernels, "ncu --csv (Nsight Compute)"},
    {FileFormat::onnx, ImportKind::model, "ONNX"},
    {FileFormat::paleo, ImportKind::model, "network of Paleo (JSON)"},
    {FileFormat::prototxt, ImportKind::model, "network of Caffe (prototxt)"},
    {FileFormat::keras_json, ImportKind::model, "network of Keras (JSON)"},
    {FileFormat::keras_summary, ImportKind::model, "model.summary() of Keras"},
    {FileFormat::torchinfo_summary, ImportKind::model, "summary of torchinfo"},
    {FileFormat::execution_trace, ImportKind::step, "execution trace of PyTorch"},
}};
[[nodiscard]] constexpr const FormatInfo& info_of(FileFormat format) {
  return kFileFormats[static_cast<std::size_t>(format)];
}

// The format of a text by its beginning, and of a file by that and its name; none for another. Throw
// UsageError for a file that cannot be read.
[[nodiscard]] std::optional<FileFormat> recognise_text(std::string_view beginning);
[[nodiscard]] std::optional<FileFormat> recognise(const std::filesystem::path& file);

// The same; throws UsageError that names the formats where there is none.
[[nodiscard]] FileFormat require_format(const std::filesystem::path& file);

}  // namespace tbdsim
