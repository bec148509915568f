// cnn-benchmarks (jcjohnson/cnn-benchmarks@83d441f85213, MIT; dmikushin/cnn-benchmarks@1a67201a6879, none
// stated): whole networks in Torch7 with cuDNN, mean of some passes by the host's clock. A row becomes two
// records of op `network`; `algorithm` says which pass.
#include <array>

#include "calibrate/importers/importers.h"

namespace tbdsim {
namespace {
constexpr std::array kGpus{TableName{"GeForce GTX 1080", "gtx1080"},
                           TableName{"GeForce GTX 1080 Ti", "gtx1080ti"},
                           TableName{"GeForce GTX TITAN X", "titanx_maxwell"},
                           TableName{"TITAN X Pascal", "titanx_pascal"},
                           TableName{"Tesla K80", "k80"},
                           TableName{"Tesla M60", "m60"},
                           TableName{"Tesla V100-SXM2-16GB", "v100_sxm2_16gb"},
                           TableName{"GRID K520", ""},
                           TableName{"Quadro M4000", ""},
                           TableName{"Quadro P5000", ""},
                           TableName{"Quadro P6000", ""}};
constexpr std::array kPrecisions{TableName{"fp32", "fp32"}};

constexpr std::int64_t kMajor = 1000;  // cuDNN prints 5.1.10 as 5110
}  // namespace

ImportedRow import_torch7_networks(const TableRow& row) {
  Record record;
  record.gpu = renamed(row, "gpu", kGpus);
  if (record.gpu.empty()) return left_out(row.text("gpu") + " is not in the catalogue");
  record.precision = renamed(row, "precision", kPrecisions);
  record.op = "network";
  record.kernel = row.text("model");
  record.generation = generation("cudnn", std::to_string(row.size("cudnn") / kMajor));
  record.cudnn = row.text("cudnn");
  record.shape.batch = row.size("batch");
  record.shape.channels = 3;
  record.shape.height = row.size("img_h");
  record.shape.width = row.size("img_w");
  record.cache = "unknown";
  record.timer = "host";
  record.samples = row.size("n_passes");
  record.source = row.text("source");
  Record backward = record;
  record.phase = "forward";
  record.algorithm = "forward";
  record.time_s = row.seconds("fwd_ms", kMillisecond_s);
  backward.algorithm = "backward";
  backward.time_s = row.seconds("bwd_ms", kMillisecond_s);
  return {.records = {record, backward}, .left_out = ""};
}

}  // namespace tbdsim
