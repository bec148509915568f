// Batch normalisation and pooling on the feature maps of ResNet-50 and Inception-v3.
#include <array>

#include "calibrate/measure/plan/builtin_plan.h"

namespace tbdsim::measure {
namespace {
struct Image {
  std::int64_t batch, channels, size;
};
struct Series {
  const char* precision;
  const char* layout;
  const char* phase;
  double value;
};

// fp32 in the layout of the paper's frameworks, half types in the layout that tensor cores need; other
// layouts come later in the plan.
std::vector<Series> all_series() {
  std::vector<Series> series;
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    for (const char* layout : {"NCHW", "NHWC"}) {
      const bool usual = (std::string_view(layout) == "NCHW") == (std::string_view(precision) == "fp32");
      for (const char* phase : {"forward", "backward_data"}) {
        series.push_back({precision, layout, phase, (usual ? 8 : 2) * precision_value(precision)});
      }
    }
  }
  return series;
}

void add(std::vector<PlanPoint>& points, const char* op, const Series& series, const RecordShape& shape) {
  points.push_back({.op = op,
                    .precision = series.precision,
                    .phase = series.phase,
                    .layout = series.layout,
                    .shape = shape,
                    .value = series.value});
}

void add_pool(std::vector<PlanPoint>& points, const char* op, const Series& series, const Image& image,
              std::int64_t filter, std::int64_t stride, std::int64_t pad) {
  RecordShape shape{
      .batch = image.batch, .channels = image.channels, .height = image.size, .width = image.size};
  shape.filter_h = shape.filter_w = filter;
  shape.stride_h = shape.stride_w = stride;
  shape.pad_h = shape.pad_w = pad;
  add(points, op, series, shape);
}
}  // namespace

void add_images(std::vector<PlanPoint>& points) {
  // ResNet-50's five stages at batch 64, then smaller batches of the early and the last one.
  constexpr std::array kNorms{Image{64, 64, 112}, Image{64, 256, 56}, Image{64, 512, 28}, Image{64, 1024, 14},
                              Image{64, 2048, 7}, Image{4, 64, 56},   Image{16, 256, 56}, Image{4, 512, 7}};
  for (const Series& series : all_series()) {
    for (const Image& i : kNorms) {
      add(points, "batch_norm", series,
          {.batch = i.batch, .channels = i.channels, .height = i.size, .width = i.size});
    }
    for (const std::int64_t batch : {4, 16, 64}) {
      add_pool(points, "max_pool", series, {batch, 64, 112}, 3, 2, 1);  // ResNet-50's stem
      add_pool(points, "max_pool", series, {batch, 192, 71}, 3, 2, 0);  // Inception-v3's second
      add_pool(points, "avg_pool", series, {batch, 2048, 7}, 7, 1, 0);  // ResNet-50's last
      add_pool(points, "avg_pool", series, {batch, 288, 35}, 3, 1, 1);  // Inception-v3's branch
    }
    add_pool(points, "max_pool", series, {4, 512, 36}, 2, 2, 0);  // VGG's, under Faster R-CNN
  }
}

}  // namespace tbdsim::measure
