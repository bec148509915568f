#include "calibrate/records/record_shape.h"

#include <algorithm>
#include <array>

namespace tbdsim {
namespace {
constexpr std::array kColumns{
    ShapeColumn{"batch", &RecordShape::batch},
    ShapeColumn{"m", &RecordShape::m},
    ShapeColumn{"n", &RecordShape::n},
    ShapeColumn{"k", &RecordShape::k},
    ShapeColumn{"channels", &RecordShape::channels},
    ShapeColumn{"height", &RecordShape::height},
    ShapeColumn{"width", &RecordShape::width},
    ShapeColumn{"filters", &RecordShape::filters},
    ShapeColumn{"filter_h", &RecordShape::filter_h},
    ShapeColumn{"filter_w", &RecordShape::filter_w},
    ShapeColumn{"stride_h", &RecordShape::stride_h},
    ShapeColumn{"stride_w", &RecordShape::stride_w},
    ShapeColumn{"pad_h", &RecordShape::pad_h},
    ShapeColumn{"pad_w", &RecordShape::pad_w},
    ShapeColumn{"dilation_h", &RecordShape::dilation_h},
    ShapeColumn{"dilation_w", &RecordShape::dilation_w},
    ShapeColumn{"groups", &RecordShape::groups},
    ShapeColumn{"rows", &RecordShape::rows},
    ShapeColumn{"cols", &RecordShape::cols},
    ShapeColumn{"elements", &RecordShape::elements},
    ShapeColumn{"bytes", &RecordShape::bytes},
    ShapeColumn{"ranks", &RecordShape::ranks},
    ShapeColumn{"input_size", &RecordShape::input_size},
    ShapeColumn{"hidden", &RecordShape::hidden},
    ShapeColumn{"layers", &RecordShape::layers},
    ShapeColumn{"directions", &RecordShape::directions},
    ShapeColumn{"steps", &RecordShape::steps},
    ShapeColumn{"output_bytes", &RecordShape::output_bytes},
    ShapeColumn{"heads", &RecordShape::heads},
    ShapeColumn{"kv_heads", &RecordShape::kv_heads},
    ShapeColumn{"queries", &RecordShape::queries},
    ShapeColumn{"keys", &RecordShape::keys},
    ShapeColumn{"head_dim", &RecordShape::head_dim},
    ShapeColumn{"value_dim", &RecordShape::value_dim},
    ShapeColumn{"window", &RecordShape::window},
};
}  // namespace

std::span<const ShapeColumn> shape_columns() { return kColumns; }

bool zero_is_a_size(const RecordShape& shape, std::int64_t RecordShape::*size) {
  return (size == &RecordShape::pad_h || size == &RecordShape::pad_w) && shape.filter_h > 0;
}

std::string to_text(const RecordShape& shape) {
  std::string text;
  for (const ShapeColumn& column : kColumns) {
    const std::int64_t value = shape.*column.size;
    if (value == 0) continue;
    if (!text.empty()) text += ' ';
    text += std::string(column.name) + '=' + std::to_string(value);
  }
  return text;
}

std::int64_t output_size(std::int64_t in, std::int64_t filter, std::int64_t pad, std::int64_t stride,
                         std::int64_t dilation) {
  const std::int64_t dilated_filter = std::max<std::int64_t>(dilation, 1) * (filter - 1) + 1;
  const std::int64_t room = in + 2 * pad - dilated_filter;
  return room < 0 ? 0 : room / std::max<std::int64_t>(stride, 1) + 1;
}

std::int64_t output_height(const RecordShape& s) {
  return output_size(s.height, s.filter_h, s.pad_h, s.stride_h, s.dilation_h);
}

std::int64_t output_width(const RecordShape& s) {
  return output_size(s.width, s.filter_w, s.pad_w, s.stride_w, s.dilation_w);
}

}  // namespace tbdsim
