// The sliding window of convolutions and poolings: kernel, stride and padding in two directions.
#pragma once

#include <cstdint>
#include <string_view>

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

struct WindowAxis {
  enum class Padding { number, same, valid };
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  Padding padding = Padding::number;
  std::int64_t pad = 0;  // on both sides, for Padding::number
  std::int64_t dilation = 1;

  // Pixels from the first to the last of the window.
  [[nodiscard]] std::int64_t span() const { return dilation * (kernel - 1) + 1; }
  // Number of window positions over `input` pixels, up to kLargestDimension:
  //   number: floor((input + 2 * pad - span) / stride) + 1 (cuDNN, MXNet, PyTorch)
  //   same:   ceil(input / stride) (TensorFlow, CNTK)
  //   valid:  floor((input - span) / stride) + 1
  // Throws ShapeMismatch when the window does not fit.
  [[nodiscard]] std::int64_t positions(std::int64_t input, std::string_view axis) const;
  // Pixels added before the first one.
  [[nodiscard]] std::int64_t pad_before(std::int64_t input) const;
};

struct Window {
  WindowAxis height;
  WindowAxis width;
};

// Reads kernel, stride and padding; each a number for both directions or [height, width]. Padding also takes
// same and valid. Stride is 1 when left out; kernel and padding are required.
[[nodiscard]] Window read_window(SpecMap& keys);

// Reads dilation, the distance between the window's pixels: 1 where it is left out.
void read_dilation(SpecMap& keys, Window& window);

}  // namespace tbdsim
