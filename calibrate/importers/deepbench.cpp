// DeepBench (baidu-research/DeepBench@da81ba782073, Apache-2.0): cuBLAS, cuDNN convolutions and recurrent
// layers of training on nine GPUs, the mean of 400 calls back to back by the host's clock, no L2 flush.
//
// * Times are cut to whole microseconds: half of one is added, and `spread` is at least the standard
//   deviation of that rounding, 0.29 us over the time.
// * fp16 stored and computed in fp32 (P100) is left out: the record has no precision for it, and "fp16" would
//   be held against a peak that was never used. So are inference and int8 rows.
// * Recurrent layers ran with CUDNN_SKIP_INPUT: no product with the input; `input_size` is 0.
// * Matrix products used beta = 1: C is read too, which a record cannot say; fitted bandwidths hold it.
// * One word of the algorithms lost its head in the sheets ("LICIT_PRECOMP_GEMM"); it is kept as it is.
#include <array>

#include "calibrate/importers/importers.h"

namespace tbdsim {
namespace {
constexpr std::array kGpus{
    TableName{"NV_TitanX", "titanx_maxwell"},
    TableName{"NV_M40", "m40"},
    TableName{"NV_TitanX_Pascal", "titanx_pascal"},
    TableName{"NV_TitanXp", "titanxp"},
    TableName{"NV_1080Ti", "gtx1080ti"},
    TableName{"NV_P100", "p100_pcie"},
    TableName{"NV_V100", "v100_sxm2_16gb"},  // the DGX-1's, says its sheet
    TableName{"NV_T4", "t4"},
};
constexpr std::array kPrecisions{
    TableName{"fp32", "fp32"},
    TableName{"fp16_tensorcore_fp32_acc", "fp16"},
    TableName{"fp16_storage_fp32_math", ""},
    TableName{"int8", ""},
};
constexpr std::array kPasses{
    TableName{"fwd", "forward"},
    TableName{"bwd_data", "backward_data"},
    TableName{"bwd_filter", "backward_weights"},
    TableName{"bwd_total", ""},
};
constexpr std::array kCells{TableName{"vanilla", "rnn"}, TableName{"lstm", "lstm"}, TableName{"gru", "gru"}};
constexpr std::array kModes{TableName{"train", "train"}, TableName{"inference", ""}};
constexpr std::array kTransposes{TableName{"N", "N"}, TableName{"T", "T"}};

constexpr double kTruncation_s = 1e-6;
constexpr double kRoundingDeviation = 0.28867513459481287;  // of a uniform distribution: 1 / sqrt(12)

// Why a row is left out, or nothing.
std::string unusable(const TableRow& row) {
  if (renamed(row, "mode", kModes).empty()) return "inference, not training";
  if (renamed(row, "precision", kPrecisions).empty())
    return row.text("precision") + ": no precision of the record";
  return "";
}

Record common(const TableRow& row) {
  Record record;
  record.gpu = renamed(row, "gpu", kGpus);
  record.precision = renamed(row, "precision", kPrecisions);
  record.time_s = row.seconds("time_ms", kMillisecond_s) + kTruncation_s / 2;
  record.spread = kRoundingDeviation * kTruncation_s / record.time_s;
  record.samples = 1;  // one mean is printed
  record.timer = "host";
  record.cache = "hot";
  record.source = row.text("source");
  return record;
}
}  // namespace

ImportedRow import_deepbench_gemm(const TableRow& row) {
  if (std::string why = unusable(row); !why.empty()) return left_out(std::move(why));
  // A TITAN X's: a quarter of its products take 1.9 to 8 times as long as a GTX 1080 Ti's of the same chip
  // with 8.0.88, the median 1.1.
  if (row.text("cuda") == "8")
    return left_out("CUDA 8 without an update: kernels that no later version runs");
  Record record = common(row);
  record.op = "gemm";
  record.generation = generation("cublas", row.text("cuda"));
  record.cuda = row.text("cuda");
  record.shape.m = row.size("M");
  record.shape.n = row.size("N");
  record.shape.k = row.size("K");
  record.layout = renamed(row, "transA", kTransposes) + renamed(row, "transB", kTransposes);
  return {.records = {record}, .left_out = ""};
}

ImportedRow import_deepbench_conv(const TableRow& row) {
  if (std::string why = unusable(row); !why.empty()) return left_out(std::move(why));
  Record record = common(row);
  record.op = "conv";
  record.phase = renamed(row, "pass", kPasses);
  record.generation = generation("cudnn", row.text("cudnn"));
  record.cudnn = row.text("cudnn");
  record.layout = "NCHW";
  record.algorithm = row.text("fwd_algo");
  record.shape = {.batch = row.size("N"),
                  .channels = row.size("C"),
                  .height = row.size("H"),
                  .width = row.size("W"),
                  .filters = row.size("K"),
                  .filter_h = row.size("filter_h"),
                  .filter_w = row.size("filter_w"),
                  .stride_h = row.size("stride_h"),
                  .stride_w = row.size("stride_w"),
                  .pad_h = row.count("pad_h"),
                  .pad_w = row.count("pad_w"),
                  .dilation_h = 1,
                  .dilation_w = 1,
                  .groups = 1};
  // Some sheets swap the columns of non-square filters and print outputs that are not floored.
  if (output_height(record.shape) != row.size("out_h") || output_width(record.shape) != row.size("out_w")) {
    row.fail("out_h x out_w is " + row.text("out_h") + " x " + row.text("out_w") + "; expected " +
             std::to_string(output_height(record.shape)) + " x " +
             std::to_string(output_width(record.shape)) +
             " from the other columns: is the filter height x width?");
  }
  return {.records = {record}, .left_out = ""};
}

ImportedRow import_deepbench_rnn(const TableRow& row) {
  if (std::string why = unusable(row); !why.empty()) return left_out(std::move(why));
  Record record = common(row);
  record.op = renamed(row, "cell", kCells);
  record.phase = renamed(row, "pass", kPasses);
  if (record.phase.empty()) return left_out("the backward passes are not apart");
  record.generation = generation("cudnn", row.text("cudnn"));
  record.cudnn = row.text("cudnn");
  record.algorithm = "skip_input";
  record.shape.steps = row.size("timesteps");
  record.shape.batch = row.size("batch");
  record.shape.hidden = row.size("hidden");
  record.shape.layers = 1;
  record.shape.directions = 1;
  return {.records = {record}, .left_out = ""};
}

}  // namespace tbdsim
