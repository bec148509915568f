#include "simulate/import/near_format.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>

#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

bool any_line(std::string_view text, bool (*is)(std::string_view line)) {
  const auto lines = lines_of(text);
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return is(line); });
}

// "01:00.0 VGA compatible controller: NVIDIA Corporation GA104 [GeForce RTX 3070]"
bool is_pci_device(std::string_view line) {
  constexpr std::size_t kAddress = 7;
  const bool address = line.size() > kAddress && std::isxdigit(static_cast<unsigned char>(line[0])) != 0 &&
                       line[2] == ':' && line[5] == '.' && line[kAddress] == ' ';
  return address && holds(line, "NVIDIA");
}

// "0, NVIDIA A10G, 23028 MiB"
bool is_row_of_card(std::string_view line) {
  constexpr std::string_view kMakers[] = {"NVIDIA ", "Tesla ", "GeForce ", "Quadro "};
  const auto commas = std::ranges::count(line, ',');
  if (commas < 1 || (commas < 2 && !holds(line, " MiB"))) return false;  // a sentence may have one
  return std::any_of(std::begin(kMakers), std::end(kMakers), [&](std::string_view maker) {
    return line.starts_with(maker) || holds(line, ", " + std::string(maker));
  });
}

// "Time (%);Total Time (ns);Instances;Name"
bool is_parted_by_semicolons(std::string_view line) {
  constexpr std::ptrdiff_t kSome = 2;
  const bool titles = holds(line, "Name") || holds(line, "name");
  return titles && std::ranges::count(line, ';') >= kSome && std::ranges::count(line, ',') == 0;
}

// A header of Keras without the column of parameters, with which rows begin.
bool is_cut_summary(std::string_view line) { return holds(line, "Layer (type)") && !holds(line, "Param"); }

// "Time (%),Total Time (ns),Num Calls,Avg (ns),...", or the columns that are printed without --format csv.
bool is_other_nsys_report(std::string_view line) {
  const bool times = holds(line, "Total Time (") || holds(line, "Proj Time (") || holds(line, "Dur (");
  return times && (holds(line, "Name") || holds(line, "Operation") || holds(line, "Range"));
}

bool is_rate_of_a_solver(std::string_view line) { return line.starts_with("base_lr:"); }

struct Near {
  bool (*is)(std::string_view text);
  std::string_view says;
};
constexpr Near kNear[] = {
    {[](std::string_view text) { return holds(text, "| NVIDIA-SMI"); },
     "the table of nvidia-smi, which cuts names; expected what 'nvidia-smi -q' prints"},
    {[](std::string_view text) { return text.starts_with("GPU 0: ") && holds(text, "(UUID: "); },
     "names of cards or their NVLinks; expected what 'nvidia-smi -q' prints of the cards, or 'nvidia-smi "
     "topo "
     "-m' of the machine"},
    {[](std::string_view text) { return holds(text, "Profiling result:") && holds(text, "=="); },
     "what nvprof prints for people, or metrics without times; expected 'nvprof --csv' with or without "
     "--print-gpu-trace"},
    {[](std::string_view text) { return holds(text, "Section: ") && holds(text, "Metric Value"); },
     "what ncu prints for people; expected 'ncu --csv', also of a report that is there: 'ncu --csv --import "
     "my.ncu-rep'"},
    {[](std::string_view text) { return text.starts_with("version https://git-lfs"); },
     "where Git LFS has the file; expected the file itself, as 'git lfs pull' gets it"},
    {[](std::string_view text) { return any_line(text, is_pci_device); },
     "a list of lspci, which shows no switches; expected what 'lspci -tv' prints"},
    {[](std::string_view text) { return any_line(text, is_row_of_card); },
     "a table without the names of its columns; expected 'nvidia-smi --query-gpu=name,... --format=csv', "
     "without noheader"},
    {[](std::string_view text) { return any_line(text, is_parted_by_semicolons); },
     "a table whose cells are parted by semicolons, as spreadsheets save it; expected commas, and points in "
     "numbers"},
    {[](std::string_view text) { return any_line(text, is_cut_summary); },
     "a summary of Keras that is cut at a terminal's width; expected a wider one: COLUMNS=200 in the "
     "environment, "
     "and model.summary(line_length=160)"},
    {[](std::string_view text) { return any_line(text, is_other_nsys_report); },
     "a report of nsys that names no kernel's time, or not as CSV; expected 'nsys stats -r cuda_gpu_kern_sum "
     "--format csv'"},
    {[](std::string_view text) {
       return holds(text, "op {") && holds(text, "type:") && holds(text, "output:");
     },
     "a network of Caffe2, which keeps the shapes of its weights in another file; expected ONNX, or Caffe's "
     "prototxt"},
    {[](std::string_view text) { return any_line(text, is_rate_of_a_solver); },
     "a solver of Caffe; expected the network that its 'net' names"},
    {[](std::string_view text) { return holds(text, "\"model_type\"") && holds(text, "\"hidden_size\""); },
     "a configuration of transformers; expected a step captured of it: 'python -m tbdsim.hugging_face "
     "config.json -o my.step.json.gz' (docs/capture.md)"},
    {[](std::string_view text) { return text.starts_with("SQLite format 3"); },
     "a database, as Nsight Systems has it; expected 'nsys stats -r cuda_gpu_kern_sum --format csv' of it"},
    {[](std::string_view text) { return text.starts_with("PK\x03\x04"); },
     "an archive, as torch.save and Keras write; expected, of a .keras file, the config.json inside it "
     "('unzip my.keras config.json'), else ONNX (torch.onnx.export), a printed summary, or a captured step "
     "(docs/capture.md)"},
    {[](std::string_view text) { return text.starts_with("\x89HDF"); },
     "a file in HDF5; expected what model.to_json() of Keras returns, or what "
     "model.summary(line_length=160) prints"}};

}  // namespace

std::string_view near_format(std::string_view beginning) {
  const auto* const found =
      std::find_if(std::begin(kNear), std::end(kNear), [&](const Near& near) { return near.is(beginning); });
  return found == std::end(kNear) ? std::string_view{} : found->says;
}

}  // namespace tbdsim
