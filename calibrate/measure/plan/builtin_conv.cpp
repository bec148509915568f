// Convolutions of ResNet-50, Inception-v3, Faster R-CNN (ResNet-101), Deep Speech 2, WGAN-GP and A3C: each
// distinct shape once, in all three phases.
#include <array>
#include <span>

#include "calibrate/measure/plan/builtin_plan.h"

namespace tbdsim::measure {
namespace {
struct Filter {
  std::int64_t channels, height, width, filters, filter_h, filter_w, stride_h, stride_w, pad_h, pad_w;
};

constexpr Filter square(std::int64_t channels, std::int64_t size, std::int64_t filters, std::int64_t filter,
                        std::int64_t stride, std::int64_t pad) {
  return {channels, size, size, filters, filter, filter, stride, stride, pad, pad};
}

// clang-format off
constexpr std::array kResNet50{
    square(3, 224, 64, 7, 2, 3),    square(64, 56, 64, 1, 1, 0),     square(64, 56, 64, 3, 1, 1),
    square(64, 56, 256, 1, 1, 0),   square(256, 56, 64, 1, 1, 0),    square(256, 56, 128, 1, 1, 0),
    square(128, 56, 128, 3, 2, 1),  square(256, 56, 512, 1, 2, 0),   square(128, 28, 512, 1, 1, 0),
    square(512, 28, 128, 1, 1, 0),  square(128, 28, 128, 3, 1, 1),   square(512, 28, 256, 1, 1, 0),
    square(256, 28, 256, 3, 2, 1),  square(512, 28, 1024, 1, 2, 0),  square(256, 14, 1024, 1, 1, 0),
    square(1024, 14, 256, 1, 1, 0), square(256, 14, 256, 3, 1, 1),   square(1024, 14, 512, 1, 1, 0),
    square(512, 14, 512, 3, 2, 1),  square(1024, 14, 2048, 1, 2, 0), square(512, 7, 2048, 1, 1, 0),
    square(2048, 7, 512, 1, 1, 0),  square(512, 7, 512, 3, 1, 1)};

constexpr std::array kInception3{
    square(3, 299, 32, 3, 2, 0), square(32, 149, 32, 3, 1, 0), square(32, 147, 64, 3, 1, 1),
    square(64, 73, 80, 1, 1, 0), square(80, 73, 192, 3, 1, 0), square(192, 35, 64, 1, 1, 0),
    square(192, 35, 48, 1, 1, 0), square(48, 35, 64, 5, 1, 2), square(64, 35, 96, 3, 1, 1),
    square(96, 35, 96, 3, 1, 1), square(256, 35, 64, 1, 1, 0), square(288, 35, 64, 1, 1, 0),
    square(288, 35, 48, 1, 1, 0), square(288, 35, 384, 3, 2, 0), square(96, 35, 96, 3, 2, 0),
    square(768, 17, 192, 1, 1, 0), square(768, 17, 128, 1, 1, 0), square(768, 17, 160, 1, 1, 0),
    Filter{128, 17, 17, 128, 1, 7, 1, 1, 0, 3}, Filter{128, 17, 17, 192, 7, 1, 1, 1, 3, 0},
    Filter{160, 17, 17, 160, 1, 7, 1, 1, 0, 3}, Filter{160, 17, 17, 192, 7, 1, 1, 1, 3, 0},
    Filter{192, 17, 17, 192, 1, 7, 1, 1, 0, 3}, Filter{192, 17, 17, 192, 7, 1, 1, 1, 3, 0},
    square(192, 17, 320, 3, 2, 0), square(192, 17, 192, 3, 2, 0), square(1280, 8, 320, 1, 1, 0),
    square(1280, 8, 384, 1, 1, 0), Filter{384, 8, 8, 384, 1, 3, 1, 1, 0, 1},
    Filter{384, 8, 8, 384, 3, 1, 1, 1, 1, 0}, square(1280, 8, 448, 1, 1, 0), square(448, 8, 384, 3, 1, 1),
    square(2048, 8, 320, 1, 1, 0), square(2048, 8, 384, 1, 1, 0), square(2048, 8, 448, 1, 1, 0),
    square(2048, 8, 192, 1, 1, 0)};

// One image of 600 x 1000 (the usual VOC resizing); the region head sees 7 x 7 crops.
constexpr std::array kFasterRcnn{
    Filter{3, 600, 1000, 64, 7, 7, 2, 2, 3, 3},  Filter{64, 150, 250, 64, 3, 3, 1, 1, 1, 1},
    Filter{64, 150, 250, 256, 1, 1, 1, 1, 0, 0}, Filter{256, 150, 250, 64, 1, 1, 1, 1, 0, 0},
    Filter{128, 75, 125, 128, 3, 3, 1, 1, 1, 1}, Filter{512, 75, 125, 128, 1, 1, 1, 1, 0, 0},
    Filter{128, 75, 125, 512, 1, 1, 1, 1, 0, 0}, Filter{256, 38, 63, 256, 3, 3, 1, 1, 1, 1},
    Filter{256, 38, 63, 1024, 1, 1, 1, 1, 0, 0}, Filter{1024, 38, 63, 256, 1, 1, 1, 1, 0, 0},
    Filter{1024, 38, 63, 512, 3, 3, 1, 1, 1, 1}, Filter{512, 38, 63, 36, 1, 1, 1, 1, 0, 0}};
constexpr std::array kRegionHead{square(1024, 7, 512, 1, 1, 0), square(512, 7, 512, 3, 1, 1),
                                 square(512, 7, 2048, 1, 1, 0), square(2048, 7, 512, 1, 1, 0)};

// Spectrogram of 161 bins over 8 s (800 frames), filters as in the paper's two-dimensional front end.
constexpr std::array kDeepSpeech2{Filter{1, 161, 800, 32, 41, 11, 2, 2, 20, 5},
                                  Filter{32, 81, 400, 32, 21, 11, 2, 1, 10, 5}};

constexpr std::array kWgan{
    square(3, 64, 64, 3, 1, 1),    square(64, 64, 64, 3, 1, 1),   square(64, 64, 128, 3, 1, 1),
    square(128, 32, 128, 3, 1, 1), square(128, 32, 256, 3, 1, 1), square(256, 16, 256, 3, 1, 1),
    square(256, 16, 512, 3, 1, 1), square(512, 8, 512, 3, 1, 1),  square(512, 8, 256, 3, 1, 1),
    square(256, 16, 128, 3, 1, 1), square(128, 32, 64, 3, 1, 1),  square(64, 64, 3, 3, 1, 1)};

constexpr std::array kA3c{square(4, 84, 16, 8, 4, 0), square(16, 20, 32, 4, 2, 0)};

// clang-format on

struct Series {
  const char* precision;
  const char* layout;
  double value;
};
// Tensor cores need NHWC; NCHW in bf16 is what a framework without channels-last does.
constexpr std::array kSeries{Series{"fp32", "NCHW", 1}, Series{"tf32", "NCHW", 1}, Series{"bf16", "NHWC", 1},
                             Series{"bf16", "NCHW", 0.5}, Series{"fp16", "NHWC", 1}};

void add(std::vector<PlanPoint>& points, std::span<const Filter> filters, std::int64_t batch, double value) {
  for (const Series& series : kSeries) {
    for (const Filter& f : filters) {
      for (const char* phase : {"forward", "backward_data", "backward_weights"}) {
        // The gradient of the input image is not needed (but for WGAN's penalty).
        if (f.channels <= 4 && std::string_view(phase) == "backward_data" && f.height != 64) continue;
        const RecordShape shape{.batch = batch,
                                .channels = f.channels,
                                .height = f.height,
                                .width = f.width,
                                .filters = f.filters,
                                .filter_h = f.filter_h,
                                .filter_w = f.filter_w,
                                .stride_h = f.stride_h,
                                .stride_w = f.stride_w,
                                .pad_h = f.pad_h,
                                .pad_w = f.pad_w};
        points.push_back({.op = "conv",
                          .precision = series.precision,
                          .phase = phase,
                          .layout = series.layout,
                          .shape = shape,
                          .value = value * series.value * precision_value(series.precision)});
      }
    }
  }
}
}  // namespace

void add_convolutions(std::vector<PlanPoint>& points) {
  for (const std::int64_t batch : {4, 16, 64}) {
    const double common = batch == 16 ? 2 : 1;
    add(points, kResNet50, batch, 4 * common);
    add(points, kInception3, batch, 2 * common);
    add(points, kWgan, batch, 2 * common);
    add(points, kA3c, batch, 2 * common);
    add(points, kDeepSpeech2, batch, 2);
  }
  for (const std::int64_t images : {1, 2}) add(points, kFasterRcnn, images, images == 1 ? 4 : 1);
  add(points, kRegionHead, 128, 4);
}

}  // namespace tbdsim::measure
