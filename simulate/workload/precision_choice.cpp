#include "simulate/workload/precision_choice.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "graphs/captured/captured_step.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

// Values of --precision under which a step captured in this one runs; the first is the default. Autocast
// keeps parameters and gradients in fp32, as `amp` says; pure half precision has no such copies.
struct RunsIn {
  CapturedPrecision captured;
  std::array<std::string_view, 3> names;
};
constexpr RunsIn kRunsIn[] = {
    {CapturedPrecision::fp32, {"fp32", "tf32", "tf32_convolutions"}},
    {CapturedPrecision::tf32, {"tf32", "fp32", "tf32_convolutions"}},
    {CapturedPrecision::fp16, {"amp", "fp16"}},
    {CapturedPrecision::bf16, {"bf16"}},
    {CapturedPrecision::pure_fp16, {"fp16", "amp"}},
    {CapturedPrecision::pure_bf16, {"bf16"}},
};

std::vector<std::string> names_of(const RunsIn& runs_in) {
  std::vector<std::string> names;
  for (const std::string_view name : runs_in.names) {
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

// Name of the first number format whose captures run in this value of --precision; empty where none do.
std::string_view capture_for(std::string_view precision) {
  const auto* const found = std::ranges::find_if(kRunsIn, [&](const RunsIn& runs_in) {
    return std::ranges::find(runs_in.names, precision) != runs_in.names.end();
  });
  if (found == std::end(kRunsIn)) return "";
  return kCapturedPrecisionNames[static_cast<std::size_t>(found->captured)];
}

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const Precision& precision : kPrecisions) names.emplace_back(precision.name);
  names.emplace_back(kDefaultPrecision);
  return names;
}

bool is_default(const std::string& name) { return name.empty() || name == kDefaultPrecision; }

}  // namespace

const Precision& find_precision(const std::string& name) {
  for (const Precision& precision : kPrecisions) {
    if (precision.name == name) return precision;
  }
  const std::vector<std::string> names = precision_names();
  throw UsageError("unknown precision " + in_quotes(name) + "; expected one of " + joined(names) +
                   did_you_mean(name, names));
}

const Precision& precision_for(const ModelFile& file, const std::string& name) {
  if (!file.captured) return is_default(name) ? kPrecisions[0] : find_precision(name);
  const auto captured = static_cast<std::size_t>(file.captured->precision);
  const std::vector<std::string> names = names_of(kRunsIn[captured]);
  if (is_default(name)) return find_precision(names[0]);
  const Precision& precision = find_precision(name);
  for (const std::string& runs : names) {
    if (precision.name == runs) return precision;
  }
  const std::string_view other = capture_for(name);
  throw UsageError(
      file.path + ": was captured in " + std::string(kCapturedPrecisionNames[captured]) +
      " and does not run in " + name + "; expected " + (names.size() > 1 ? "one of " : "") + joined(names) +
      (other.empty()
           ? ""
           : ", or another capture: tbdsim.capture(..., precision=\"" + std::string(other) + "\")"));
}

const Precision& precision_on(const ModelFile& file, const std::string& name, const Framework& framework,
                              const GpuSpec& gpu) {
  const Precision& precision = precision_for(file, name);
  if (name != kDefaultPrecision || precision.storage_bytes != kFp32Bytes) return precision;
  const bool has_tf32 = gpu.math[index_of(MathType::tf32)].has_value();
  return find_precision(std::string(has_tf32 ? framework.default_precision : kPrecisions[0].name));
}

}  // namespace tbdsim
