#include "simulate/workload/captured_model.h"

#include <array>

#include "graphs/captured/lower.h"
#include "graphs/captured/step_reader.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

// Values of --precision under which a step captured in this one runs; the first is the default. Autocast
// keeps parameters and gradients in fp32, as `amp` says; pure half precision has no such copies.
struct RunsIn {
  CapturedPrecision captured;
  std::array<std::string_view, 2> names;
};
constexpr RunsIn kRunsIn[] = {
    {CapturedPrecision::fp32, {"fp32", "tf32"}},     {CapturedPrecision::tf32, {"tf32", "fp32"}},
    {CapturedPrecision::fp16, {"amp", "fp16"}},      {CapturedPrecision::bf16, {"bf16", ""}},
    {CapturedPrecision::pure_fp16, {"fp16", "amp"}}, {CapturedPrecision::pure_bf16, {"bf16", ""}},
};

const RunsIn& runs_in(CapturedPrecision captured) { return kRunsIn[static_cast<std::size_t>(captured)]; }

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const Precision& precision : kPrecisions) names.emplace_back(precision.name);
  return names;
}

const Precision& find_any_precision(const std::string& name) {
  for (const Precision& precision : kPrecisions) {
    if (precision.name == name) return precision;
  }
  const std::vector<std::string> names = precision_names();
  throw UsageError("unknown precision " + in_quotes(name) + "; expected one of " + joined(names) +
                   did_you_mean(name, names));
}

}  // namespace

ModelFile captured_model(const std::filesystem::path& path) {
  auto captured = std::make_shared<const CapturedStep>(read_step_file(path));
  ModelFile file;
  file.path = path.string();
  file.name = captured->name;
  file.title = captured->title;
  file.sample = captured->sample;
  file.throughput.unit = captured->sample + "s";
  Variant variant;
  variant.name = "captured";
  variant.description = "captured by PyTorch " + captured->torch + " in " +
                        std::string(kCapturedPrecisionNames[static_cast<std::size_t>(captured->precision)]) +
                        (captured->channels_last ? ", channels_last" : "");
  variant.source = path.string();
  variant.frameworks = {"pytorch"};
  file.variants.push_back(std::move(variant));
  file.captured = std::move(captured);
  return file;
}

const Precision& precision_for(const ModelFile& file, const std::string& name) {
  if (!file.captured) return find_any_precision(name.empty() ? std::string(kPrecisions[0].name) : name);
  const CapturedPrecision captured = file.captured->precision;
  const auto& names = runs_in(captured).names;
  const Precision& precision = find_any_precision(name.empty() ? std::string(names[0]) : name);
  if (precision.name == names[0] || precision.name == names[1]) return precision;
  const std::string_view own = kCapturedPrecisionNames[static_cast<std::size_t>(captured)];
  throw UsageError(
      file.path + ": was captured in " + std::string(own) + " and does not run in " + name + "; expected " +
      std::string(names[0]) + (names[1].empty() ? "" : " or " + std::string(names[1])) +
      ", or another capture: tbdsim.capture(..., precision=\"" + (name == "amp" ? "fp16" : name) + "\")");
}

void require_captured_batch(const ModelFile& file, std::int64_t batch) {
  if (!file.captured || file.captured->only_batch == 0 || file.captured->only_batch == batch) return;
  const std::string only = std::to_string(file.captured->only_batch);
  throw UsageError(file.path + ": was captured at a batch of " + only + " alone, and batch " +
                   std::to_string(batch) + " was asked for; expected --batch " + only +
                   ", or another capture: tbdsim.capture(..., batches=[" + std::to_string(batch) + "])");
}

TrainingStep expand_captured(const ModelFile& file, const Sizes& sizes, const Lowering& lowering,
                             const Precision& precision) {
  if (!sizes.empty()) {
    throw UsageError(file.path + ": was captured with inputs of one size, which " + sizes.begin()->first +
                     " does not change; expected a capture with inputs of that size");
  }
  return lower_captured_step(*file.captured, lowering, precision);
}

}  // namespace tbdsim
