// Matrix products: skinny ones as recurrent and fully connected layers make them, odd ones, large square
// ones, and the strided batches of attention.
#include <array>

#include "calibrate/measure/plan/builtin_plan.h"

namespace tbdsim::measure {
namespace {
const std::array<const char*, 4> kPrecisions{"fp32", "tf32", "bf16", "fp16"};
const std::array<const char*, 3> kLayouts{"NN", "NT", "TN"};

void add(std::vector<PlanPoint>& points, const char* precision, const char* layout, const char* cache,
         double value, const RecordShape& shape) {
  points.push_back({.op = shape.batch > 0 ? "batched_gemm" : "gemm",
                    .precision = precision,
                    .layout = layout,
                    .cache = cache,
                    .shape = shape,
                    .value = value * precision_value(precision)});
}

void add_square(std::vector<PlanPoint>& points, const char* precision) {
  for (const std::int64_t size : {512, 1024, 2048, 4096, 8192}) {
    const bool anchor = size == 4096;
    add(points, precision, "NN", "both", anchor ? 64 : 16, {.m = size, .n = size, .k = size});
    for (const char* layout : {"NT", "TN"})
      add(points, precision, layout, "cold", 4, {.m = size, .n = size, .k = size});
  }
}

void add_skinny(std::vector<PlanPoint>& points, const char* precision) {
  struct Weights {
    std::int64_t m, k;
  };
  // DeepBench's recurrent layers (1760, 2048, 2560), LSTM-512 gates, Transformer base, ResNet-50's
  // classifier.
  const std::array<Weights, 6> weights{
      {{1760, 1760}, {2048, 2048}, {2560, 2560}, {2048, 512}, {512, 2048}, {1000, 2048}}};
  for (const Weights& w : weights) {
    for (const std::int64_t n : {8, 16, 32, 64, 128}) {
      for (const char* layout : kLayouts) {
        const bool forward = std::string_view(layout) != "NT";
        add(points, precision, layout, w.m == 2048 && w.k == 512 ? "both" : "cold", forward ? 4 : 1,
            {.m = w.m, .n = n, .k = w.k});
      }
    }
  }
}

void add_odd(std::vector<PlanPoint>& points, const char* precision) {
  // From DeepBench's training list: sizes that are no multiple of a tile, long reductions, one narrow side.
  const std::array<RecordShape, 8> shapes{{{.m = 5124, .n = 700, .k = 2048},
                                           {.m = 35, .n = 700, .k = 2048},
                                           {.m = 35, .n = 8457, .k = 1760},
                                           {.m = 7680, .n = 5481, .k = 2560},
                                           {.m = 1024, .n = 700, .k = 512},
                                           {.m = 3072, .n = 128, .k = 1024},
                                           {.m = 512, .n = 24000, .k = 1536},
                                           {.m = 1760, .n = 7133, .k = 1760}}};
  for (const RecordShape& shape : shapes) {
    for (const char* layout : kLayouts) add(points, precision, layout, "cold", 2, shape);
  }
}

void add_transformer(std::vector<PlanPoint>& points, const char* precision) {
  // Transformer base (512 wide, 2048 inner, 8 heads of 64, 37,000 word pieces) on 4, 16 and 64 sentences
  // of 32.
  for (const std::int64_t tokens : {128, 512, 2048}) {
    for (const char* layout : {"TN", "NN"}) {
      add(points, precision, layout, "cold", 4, {.m = 512, .n = tokens, .k = 512});
      add(points, precision, layout, "cold", 4, {.m = 2048, .n = tokens, .k = 512});
      add(points, precision, layout, "cold", 2, {.m = 37000, .n = tokens, .k = 512});
    }
    add(points, precision, "NT", "cold", 4, {.m = 512, .n = 2048, .k = tokens});
    const std::int64_t batch = tokens / 32 * 8;
    add(points, precision, "TN", "both", 8, {.batch = batch, .m = 32, .n = 32, .k = 64});
    add(points, precision, "NN", "cold", 8, {.batch = batch, .m = 64, .n = 32, .k = 32});
    add(points, precision, "NT", "cold", 4, {.batch = batch, .m = 64, .n = 32, .k = 32});
  }
  for (const std::int64_t length : {128, 512}) {
    add(points, precision, "TN", "cold", 2, {.batch = 64, .m = length, .n = length, .k = 64});
    add(points, precision, "NN", "cold", 2, {.batch = 64, .m = 64, .n = length, .k = length});
  }
}
}  // namespace

void add_gemms(std::vector<PlanPoint>& points) {
  for (const char* precision : kPrecisions) {
    add_square(points, precision);
    add_skinny(points, precision);
    add_odd(points, precision);
    add_transformer(points, precision);
  }
}

}  // namespace tbdsim::measure
