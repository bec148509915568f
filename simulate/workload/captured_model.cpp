#include "simulate/workload/captured_model.h"

#include "graphs/captured/lower.h"
#include "graphs/captured/step_reader.h"
#include "hwspecs/base/error.h"

namespace tbdsim {

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
