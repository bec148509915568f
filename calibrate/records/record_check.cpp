// Plausibility of records: bounds with their reasons.
#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "calibrate/records/record.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {
using Names = std::vector<std::string>;

const Names kPrecisions{"fp32", "tf32", "fp16", "bf16", "fp8"};
const Names kPhases{"", "forward", "backward_data", "backward_weights", "double_backward", "update"};
const Names kCaches{"hot", "cold", "unknown"};

constexpr double kShortest_s = 1e-8;  // ten clock cycles: no kernel is that short
constexpr double kLongest_s = 1e3;    // no single call of training takes a quarter of an hour
// Twenty times the fastest GPU's dense fp8 rate (5e15 flop/s), which leaves room for Winograd's savings.
constexpr double kFastest_flop_per_s = 1e17;
// A call longer than kBusy_s occupies any GPU: below this rate even the slowest (Kepler, 4e12 flop/s) would
// run at 0.25 % of its peak.
constexpr double kBusy_s = 1e-2;
constexpr double kSlowest_flop_per_s = 1e10;

std::optional<std::string> unknown(const char* column, const std::string& value, const Names& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return std::nullopt;
  return std::string("column '") + column + "' holds " + in_quotes(value) + "; expected one of " +
         joined(known) + did_you_mean(value, known);
}

double matrix_flops(const Record& r) {
  const RecordShape& s = r.shape;
  const auto number = [](std::int64_t size) { return static_cast<double>(std::max<std::int64_t>(size, 1)); };
  if (r.op == "gemm" || r.op == "batched_gemm" || r.op == "grouped_gemm")
    return 2.0 * number(s.batch) * number(s.m) * number(s.n) * number(s.k);
  if (r.op != "conv") return 0;
  return 2.0 * number(s.batch) * number(output_height(s)) * number(output_width(s)) * number(s.filters) *
         number(s.channels) * number(s.filter_h) * number(s.filter_w) / number(s.groups);
}

// Sizes that an op must have; of other ops any may be missing.
std::vector<std::string_view> required_sizes(const std::string& op) {
  if (op == "gemm") return {"m", "n", "k"};
  if (op == "batched_gemm" || op == "grouped_gemm") return {"batch", "m", "n", "k"};
  if (op == "attention") return {"batch", "heads", "kv_heads", "queries", "keys", "head_dim", "value_dim"};
  if (op == "conv") return {"batch", "channels", "height", "width", "filters", "filter_h", "filter_w"};
  if (op == "lstm" || op == "gru" || op == "rnn") return {"batch", "hidden", "steps"};
  return {};
}

// Letters and then at most four digits: "cudnn9", "own".
bool is_generation(const std::string& text) {
  constexpr std::size_t kMostDigits = 4;
  const std::size_t letters =
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-");
  if (letters == std::string::npos) return true;
  const std::string digits = text.substr(letters);
  return letters > 0 && digits.size() <= kMostDigits &&
         digits.find_first_not_of("0123456789") == std::string::npos;
}

std::optional<std::string> wrong_shape(const Record& r) {
  const auto required = required_sizes(r.op);
  for (const ShapeColumn& column : shape_columns()) {
    const bool needed = std::find(required.begin(), required.end(), column.name) != required.end();
    if (needed && r.shape.*column.size == 0)
      return "column '" + std::string(column.name) + "' is missing or 0; " + r.op + " needs 1 or more";
  }
  if (r.op == "conv" && (output_height(r.shape) <= 0 || output_width(r.shape) <= 0))
    return "the filter is larger than the padded input; expected an output of 1x1 or more";
  return std::nullopt;
}

std::optional<std::string> wrong_time(const Record& r) {
  std::ostringstream number;
  number << r.time_s;
  const std::string shown = "time_s is " + number.str();
  if (!std::isfinite(r.time_s)) return shown + "; expected a finite number of seconds";
  if (r.time_s <= 0) return shown + "; expected more than 0 seconds";
  if (r.time_s < kShortest_s || r.time_s > kLongest_s) {
    return shown + "; expected seconds between 1e-8 and 1000: is the unit right?";
  }
  const double rate = matrix_flops(r) / r.time_s;
  if (rate > kFastest_flop_per_s) return shown + ", which is above 1e17 flop/s; is it in seconds?";
  if (rate > 0 && rate < kSlowest_flop_per_s && r.time_s > kBusy_s) {
    return shown + ", which is below 1e10 flop/s; is it in seconds?";
  }
  return std::nullopt;
}

constexpr std::int64_t kLargestSize = 1'000'000'000'000;

std::optional<std::string> wrong_number(const Record& r) {
  for (const ShapeColumn& column : shape_columns()) {
    if (r.shape.*column.size < 0)
      return "column '" + std::string(column.name) + "' is negative; expected 0 or more";
    if (r.shape.*column.size > kLargestSize)
      return "column '" + std::string(column.name) + "' is beyond any size; expected at most " +
             std::to_string(kLargestSize);
  }
  const std::array measured{r.spread,      r.event_time_s,    r.slowdown,
                            r.sm_clock_hz, r.memory_clock_hz, r.power_limit_w};
  for (const double value : measured) {
    if (!(value >= 0) || !std::isfinite(value)) return "a measured value is negative or not finite";
  }
  if (r.samples < 0 || r.kernels < 0 || r.workspace_bytes < 0)
    return "a count is negative; expected 0 or more";
  return std::nullopt;
}
}  // namespace

std::optional<std::string> implausible(const Record& r) {
  if (r.gpu.empty()) return "column 'gpu' is empty; expected the GPU's name";
  if (r.generation.empty()) return "column 'generation' is empty; expected a library such as cudnn9";
  if (!is_generation(r.generation))
    return "column 'generation' holds " + in_quotes(r.generation) +
           "; expected a library and its major version, as cudnn9";
  if (r.op.empty()) return "column 'op' is empty; expected an op such as gemm";
  if (r.source.empty()) return "column 'source' is empty; expected where the row comes from";
  if (auto why = unknown("precision", r.precision, kPrecisions)) return why;
  if (auto why = unknown("phase", r.phase, kPhases)) return why;
  if (auto why = unknown("cache", r.cache, kCaches)) return why;
  if (auto why = wrong_number(r)) return why;
  if (auto why = wrong_shape(r)) return why;
  return wrong_time(r);
}

}  // namespace tbdsim
