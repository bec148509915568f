// Fused recurrent layers: Seq2Seq (two LSTM-512), Deep Speech 2 (bidirectional GRU-1760), and DeepBench's
// sizes, which tie the records to the published tables.
#include <array>

#include "calibrate/measure/plan/builtin_plan.h"

namespace tbdsim::measure {
namespace {
const std::array<const char*, 3> kPhases{"forward", "backward_data", "backward_weights"};
const std::array<const char*, 4> kPrecisions{"fp32", "tf32", "bf16", "fp16"};

void add(std::vector<PlanPoint>& points, const char* op, double value, const RecordShape& shape) {
  for (const char* precision : kPrecisions) {
    for (const char* phase : kPhases) {
      points.push_back({.op = op,
                        .precision = precision,
                        .phase = phase,
                        .shape = shape,
                        .value = value * precision_value(precision)});
    }
  }
}
}  // namespace

void add_recurrences(std::vector<PlanPoint>& points) {
  for (const std::int64_t batch : {4, 16, 32, 64, 128}) {
    add(points, "lstm", batch == 16 || batch == 64 ? 8 : 2,
        {.batch = batch, .input_size = 512, .hidden = 512, .layers = 2, .directions = 1, .steps = 25});
  }
  for (const std::int64_t batch : {4, 16}) {
    add(points, "gru", 4,
        {.batch = batch, .input_size = 1760, .hidden = 1760, .layers = 1, .directions = 2, .steps = 100});
  }
  for (const std::int64_t batch : {16, 32, 64, 128}) {
    add(points, "lstm", 2,
        {.batch = batch, .input_size = 1024, .hidden = 1024, .layers = 1, .directions = 1, .steps = 25});
  }
  for (const std::int64_t batch : {32, 64}) {
    add(points, "gru", 2,
        {.batch = batch, .input_size = 2816, .hidden = 2816, .layers = 1, .directions = 1, .steps = 50});
    add(points, "lstm", 1,
        {.batch = batch, .input_size = 2048, .hidden = 2048, .layers = 1, .directions = 1, .steps = 50});
  }
}

}  // namespace tbdsim::measure
