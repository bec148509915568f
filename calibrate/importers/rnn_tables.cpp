// Tables of recurrent networks in old frameworks (glample/rnn-benchmarks, MaximumEntropy/
// cudnn_rnn_theano_benchmarks, stefbraun/rnn_benchmarks; no licence stated): whole batches, by the host's
// clock. The forward pass of a cuDNN network is one library call; everything else (a framework's own loop
// over the steps, training with loss and update) is more than one kernel: op `network`.
#include <array>

#include "calibrate/importers/importers.h"

namespace tbdsim {
namespace {
constexpr std::array kGpus{TableName{"GTX TITAN X (Maxwell)", "titanx_maxwell"},
                           TableName{"GTX 1080 FE", "gtx1080"}, TableName{"GTX 1070", ""},
                           TableName{"GTX 980 Ti (from file name)", ""}};
constexpr std::array kCells{TableName{"LSTM", "lstm"}, TableName{"GRU", "gru"}, TableName{"RNN", "rnn"}};

constexpr std::string_view kCudnn = "cuDNN ";

// "CUDA 8.0 cuDNN 5.1.05", "PyTorch 0.4.0": the version behind a word of the column.
std::string version_behind(const TableRow& row, std::string_view word) {
  const std::string& text = row.text("framework");
  const std::size_t at = text.find(word);
  if (at == std::string::npos) row.fail("framework", "'" + std::string(word) + "' and a version");
  return text.substr(at + word.size());
}

std::string generation_of(const TableRow& row) {
  const std::string& library = row.text("library");
  if (library.starts_with(kCudnn)) return generation("cudnn", version_behind(row, kCudnn));
  if (library.starts_with("pytorch")) return generation("torch", version_behind(row, "PyTorch "));
  std::string name = library.substr(0, library.find(' '));
  for (char& c : name) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  return name;  // theano, tensorflow, torch: their versions are not stated
}
}  // namespace

ImportedRow import_rnn_tables(const TableRow& row) {
  Record record;
  record.gpu = renamed(row, "gpu", kGpus);
  if (record.gpu.empty()) return left_out(row.text("gpu") + " is not in the catalogue");
  if (row.text("seq_len").find("..") != std::string::npos) return left_out("sequences of several lengths");
  const bool forward = row.text("mode") == "forward";
  const bool one_call = forward && row.text("library").starts_with(kCudnn);
  const std::string cell = renamed(row, "cell", kCells);
  record.op = one_call ? cell : "network";
  record.phase = forward ? "forward" : "";
  record.kernel = one_call ? "" : cell + ", " + row.text("library") + ", " + row.text("mode");
  record.generation = generation_of(row);
  record.precision = "fp32";
  record.cache = "unknown";
  record.timer = "host";
  record.shape.steps = row.size("seq_len");
  record.shape.batch = row.size("batch");
  record.shape.input_size = row.size("input");
  record.shape.hidden = row.size("hidden");
  record.shape.layers = row.size("layers");
  record.shape.directions = row.count("bidirectional") + 1;
  record.time_s = row.seconds("ms_per_batch", kMillisecond_s);
  if (!row.text("std_ms").empty()) record.spread = row.number("std_ms") * kMillisecond_s / record.time_s;
  if (!row.text("n").empty()) record.samples = row.count("n");
  record.source = row.text("source");
  return {.records = {record}, .left_out = ""};
}

}  // namespace tbdsim
