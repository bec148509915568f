// Everything that streams memory: five sizes per class, from a few kilobytes to far beyond any L2 cache.
#include <array>

#include "calibrate/measure/plan/builtin_plan.h"

namespace tbdsim::measure {
namespace {
const std::array<const char*, 3> kPrecisions{"fp32", "bf16", "fp16"};
constexpr double kMiB = 1024.0 * 1024.0;

void add(std::vector<PlanPoint>& points, const char* op, const char* phase, const char* precision,
         double value, const RecordShape& shape) {
  points.push_back({.op = op,
                    .precision = precision,
                    .phase = phase,
                    .shape = shape,
                    .value = value * precision_value(precision)});
}

void add_elementwise(std::vector<PlanPoint>& points) {
  for (const char* precision : kPrecisions) {
    for (const std::int64_t elements : {1 << 14, 1 << 18, 1 << 21, 1 << 24, 1 << 27}) {
      add(points, "add", "forward", precision, 8, {.elements = elements});
      for (const char* phase : {"forward", "backward_data"}) {
        add(points, "relu", phase, precision, 8, {.elements = elements});
        add(points, "dropout", phase, precision, 4, {.elements = elements});
      }
    }
  }
  for (const std::int64_t elements : {1 << 12, 1 << 16, 1 << 20, 1 << 23, 1 << 26}) {
    for (const char* op : {"sgd_momentum", "adam"})
      add(points, op, "update", "fp32", 8, {.elements = elements});
  }
}

void add_rows(std::vector<PlanPoint>& points) {
  // Classifier, attention of 32 and 512 words, vocabulary; Transformer's normalisation on 128 to 32768
  // tokens.
  const std::array<RecordShape, 5> softmax{{{.rows = 64, .cols = 1000},
                                            {.rows = 16384, .cols = 32},
                                            {.rows = 32768, .cols = 512},
                                            {.rows = 512, .cols = 37000},
                                            {.rows = 8192, .cols = 1000}}};
  const std::array<RecordShape, 5> norm{{{.rows = 128, .cols = 512},
                                         {.rows = 2048, .cols = 512},
                                         {.rows = 8192, .cols = 1024},
                                         {.rows = 32768, .cols = 512},
                                         {.rows = 32768, .cols = 2048}}};
  for (const char* precision : kPrecisions) {
    for (const RecordShape& shape : softmax) {
      for (const char* phase : {"forward", "backward_data"})
        add(points, "softmax", phase, precision, 8, shape);
    }
    for (const RecordShape& shape : norm) {
      for (const char* phase : {"forward", "backward_data", "backward_weights"}) {
        add(points, "layer_norm", phase, precision, 8, shape);
      }
      for (const char* phase : {"forward", "backward_weights"})
        add(points, "bias", phase, precision, 4, shape);
    }
  }
}
}  // namespace

void add_streams(std::vector<PlanPoint>& points) {
  add(points, "launch", "", "fp32", 1 << 20, {});  // first: before CUPTI is on, which slows launches
  add(points, "l2_flush", "", "fp32", 64, {});
  add_elementwise(points);
  add_rows(points);
  for (const double size : {4.0 / 1024, 0.25, 4.0, 64.0, 512.0}) {
    const auto bytes = static_cast<std::int64_t>(size * kMiB);
    for (const char* op : {"copy_h2d", "copy_d2h", "copy_d2d"})
      add(points, op, "", "fp32", 16, {.bytes = bytes});
    for (const std::int64_t ranks : {2, 4, 8})
      add(points, "all_reduce", "", "fp32", 8, {.bytes = bytes, .ranks = ranks});
  }
}

}  // namespace tbdsim::measure
