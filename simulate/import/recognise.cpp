#include "simulate/import/recognise.h"

#include <algorithm>
#include <istream>
#include <set>
#include <string>
#include <vector>

#include "hwspecs/base/error.h"
#include "simulate/import/near_format.h"
#include "simulate/import/summary_table.h"
#include "simulate/import/text_lines.h"
#include "simulate/import/unpacked_file.h"

namespace tbdsim {
namespace {

constexpr std::size_t kBeginning = 1U
                                   << 16U;  // bytes; the CUDA version before a matrix, options before a table

// The cells of a line of CSV, without blanks and quotes around them. Titles of columns hold no commas.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    std::string_view cell = trimmed(line.substr(at, end - at));
    if (cell.size() > 1 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
    cells.emplace_back(cell);
    at = end + 1;
  }
  return cells;
}

std::optional<FileFormat> format_of_table(const std::vector<std::string>& columns) {
  const std::set<std::string> has(columns.begin(), columns.end());
  const auto begins = [&](const char* text) {
    return std::any_of(columns.begin(), columns.end(),
                       [&](const std::string& c) { return c.starts_with(text); });
  };
  if (has.contains("Kernel Name") && (has.contains("Metric Value") || begins("gpu__time_duration")))
    return FileFormat::ncu_csv;
  // Tables of nvtx ranges, which have instances too, name ranges.
  const bool named = has.contains("Name") || has.contains("Operation");
  if (has.contains("Instances") && begins("Total Time") && named) return FileFormat::nsys_kernels;
  if (has.contains("Kernel Name") && begins("KAvg (")) return FileFormat::nsys_kernels;
  if (begins("Start (") || begins("Start(")) return FileFormat::nsys_trace;
  if (has.contains("Time(%)") && has.contains("Calls")) return FileFormat::nvprof_summary;
  if (has.contains("Start") && has.contains("Duration") && has.contains("Name"))
    return FileFormat::nvprof_trace;
  const bool query =
      begins("memory.") || begins("compute_cap") || begins("power.") || begins("clocks.") || begins("pcie.");
  if ((has.contains("name") || has.contains("gpu_name")) && query) return FileFormat::smi_csv;
  return std::nullopt;
}

std::optional<FileFormat> format_of_json(std::string_view text) {
  if (holds(text, "\"schema\"") && holds(text, "\"nodes\"") &&
      (holds(text, "\"ctrl_deps\"") || holds(text, "\"op_schema\"")))
    return FileFormat::execution_trace;
  if (holds(text, "\"traceEvents\"") || holds(text, "\"ph\"")) return FileFormat::chrome_trace;
  const bool class_of_keras = holds(text, "class_name") && holds(text, "config");
  const bool config_of_keras = holds(text, "\"input_layers\"") || holds(text, "\"inbound_nodes\"");
  if (class_of_keras || config_of_keras || holds(text, "\"modelTopology\"")) return FileFormat::keras_json;
  if (holds(text, "\"layers\"") && holds(text, "\"parents\"")) return FileFormat::paleo;
  return std::nullopt;
}

bool is_matrix(const std::vector<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    const std::vector<std::string> words = words_of(line);
    return words.size() > 1 && words[0] == "GPU0" &&
           (words[1] == "X" || words[1] == "GPU1" || words[1] == "CPU" || words[1].starts_with("NIC") ||
            words[1].starts_with("mlx"));
  });
}

}  // namespace

std::optional<FileFormat> recognise_text(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  const std::string_view begins = trimmed(text);
  if (begins.starts_with('<')) {
    if (holds(text, "nvidia_smi_log")) return FileFormat::smi_xml;
    if (holds(text, "<topology")) return FileFormat::hwloc_xml;
    return std::nullopt;
  }
  if (begins.starts_with('{') || begins.starts_with("\"{\\\"") ||
      (begins.starts_with('[') && holds(begins.substr(0, 200), "{")))
    return format_of_json(text);
  if (holds(text, "CUDA Capability Major/Minor")) return FileFormat::device_query;
  if (holds(text, "Product Name") && holds(text, "FB Memory Usage")) return FileFormat::smi_text;
  if (holds(text, "NVSMI LOG")) return FileFormat::smi_text;
  if (holds(text, "-[0000:") || begins.starts_with("-[")) return FileFormat::lspci_tree;
  const std::vector<std::string> lines = lines_of(text);
  if (is_matrix(lines)) return FileFormat::topology_matrix;
  for (const std::string& line : lines) {
    if (is_torchinfo_header(line)) return FileFormat::torchinfo_summary;
    if (is_keras_header(line)) return FileFormat::keras_summary;
  }
  for (const std::string& line : lines) {
    if (trimmed(line).empty() || line.starts_with("==")) continue;
    if (const auto table = format_of_table(cells_of(line))) return table;
  }
  const bool layers =
      holds(text, "layer {") || holds(text, "layers {") || holds(text, "layer{") || holds(text, "layers{");
  if (layers && holds(text, "type:")) return FileFormat::prototxt;
  return std::nullopt;
}

namespace {

std::string beginning_of(const std::filesystem::path& file) {
  UnpackedFile unpacked(file, kBeginning);
  std::string beginning(kBeginning, '\0');
  std::istream in(&unpacked);
  in.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(in.gcount()));
  return beginning;
}

}  // namespace

std::optional<FileFormat> recognise(const std::filesystem::path& file) {
  const std::string beginning = beginning_of(file);
  const bool elsewhere = beginning.starts_with("version https://git-lfs");  // near_format.cpp says what it is
  if (file.extension() == ".onnx" && !elsewhere) return FileFormat::onnx;
  return recognise_text(beginning);
}

FileFormat require_format(const std::filesystem::path& file) {
  if (const auto format = recognise(file)) return *format;
  const std::string_view instead = near_format(beginning_of(file));
  if (!instead.empty()) throw UsageError(file.string() + ": " + std::string(instead));
  std::string known;
  for (const FormatInfo& info : kFileFormats) known += (known.empty() ? "" : ", ") + std::string(info.title);
  throw UsageError(file.string() + ": no format that is known; expected one of " + known);
}

}  // namespace tbdsim
