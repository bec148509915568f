#include "simulate/report/training_notes.h"

#include <string_view>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"

namespace tbdsim {
namespace {

constexpr double kMillion = 1e6;

std::string trained_weights(const Prediction& p) {
  double trained = 0;
  double frozen = 0;
  for (const LayerSummary& layer : p.iterations[0].step->layers) {
    trained += static_cast<double>(layer.trained_parameters);
    frozen += static_cast<double>(layer.frozen_parameters);
  }
  const std::int64_t rank = p.scenario.training.fine_tuning.rank;
  const std::string adapters = rank > 0 ? fmt::format(", in adapters of rank {}", rank) : "";
  return fmt::format("{:.3g} million of {:.4g} million weights are trained{}", trained / kMillion,
                     (trained + frozen) / kMillion, adapters);
}

std::string accumulated(const Prediction& p) {
  const std::int64_t batches = p.scenario.training.accumulate;
  return fmt::format("an update follows {} batches, {:.10g} {}s", batches,
                     p.batch() * static_cast<double>(batches), p.model->sample);
}

std::string offloaded_activations(const Prediction& p) {
  const Iteration& iteration = p.iterations[p.largest];
  double bytes = 0;
  for (const OffloadedActivation& map : iteration.on_host)
    bytes += map.bytes.at(static_cast<double>(iteration.batch));
  return fmt::format("{} of activations go to the host and back, for which the iteration waits {}",
                     to_text(Bytes(bytes)), to_text(iteration.copies));
}

std::string offloaded_optimizer(const Prediction& p) {
  const Iteration& iteration = p.iterations[p.largest];
  const auto batch = static_cast<double>(iteration.batch);
  double out = 0;
  double back = 0;
  Seconds time;
  for (std::size_t k = 0; k < iteration.step->kernels.size(); ++k) {
    const Kernel& kernel = iteration.step->kernels[k];
    if (kernel.kind != KernelKind::transfer || kernel.phase != Phase::update) continue;
    out += kernel.read_bytes.at(batch);
    back += kernel.written_bytes.at(batch);
    time += iteration.timeline.kernels[k].end - iteration.timeline.kernels[k].start;
    time += Seconds(kernel.host_nanoseconds.at(batch) * kNano);
  }
  return fmt::format(
      "the host updates: {} of gradients go there and {} of weights come back, {} with its own work, while "
      "the GPU waits",
      to_text(Bytes(out)), to_text(Bytes(back)), to_text(time));
}

std::vector<std::string> sentences_of(const Prediction& p) {
  const TrainingChoices& chosen = p.scenario.training;
  std::vector<std::string> sentences;
  if (!chosen.optimizer.empty()) sentences.push_back("updated by " + chosen.optimizer);
  if (chosen.loss)
    sentences.push_back(
        fmt::format("loss by {} kernels", kLossKernelsNames[static_cast<std::size_t>(*chosen.loss)]));
  if (chosen.attention)
    sentences.push_back(fmt::format("attention by {} kernels",
                                    kAttentionKernelsNames[static_cast<std::size_t>(*chosen.attention)]));
  if (chosen.fine_tuning != FineTuning{}) sentences.push_back(trained_weights(p));
  if (chosen.accumulate > 1) sentences.push_back(accumulated(p));
  if (!p.iterations[p.largest].on_host.empty()) sentences.push_back(offloaded_activations(p));
  if (chosen.optimizer_state == Variables::host) sentences.push_back(offloaded_optimizer(p));
  return sentences;
}

}  // namespace

std::vector<std::string> training_notes(std::span<const Prediction> predictions) {
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    if (p.scenario.training.empty()) continue;
    const std::string of = p.model->name + " on " + p.framework->name + ": ";
    for (const std::string& sentence : sentences_of(p)) notes.push_back(of + sentence + ".");
  }
  return notes;
}

}  // namespace tbdsim
