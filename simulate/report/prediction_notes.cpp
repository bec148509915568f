#include "simulate/report/prediction_notes.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/base/table.h"
#include "simulate/prediction/metrics.h"
#include "simulate/report/training_notes.h"

namespace tbdsim {
namespace {

// Keys whose source begins with "estimate:".
std::vector<std::string> estimates_among(const Sources& sources) {
  std::vector<std::string> keys;
  for (const auto& [key, source] : sources) {
    if (source.starts_with("estimate:")) keys.push_back(key);
  }
  return keys;
}

// The number of samples in a batch of tokens.
std::string token_note(const Prediction& p) {
  const auto [fewest, most] =
      std::minmax_element(p.iterations.begin(), p.iterations.end(),
                          [](const Iteration& a, const Iteration& b) { return a.batch < b.batch; });
  return fmt::format("{} tokens on each side, padding included, are {} to {} {}s.", p.scenario.tokens,
                     fewest->batch, most->batch, p.model->sample);
}

// A note for each kind of sample, "images (alexnet, resnet50)", and for each model whose batch is limited.
std::vector<std::string> batch_notes(std::span<const Prediction> predictions) {
  std::map<std::string, std::vector<std::string>> models;  // sample -> models
  std::set<std::string> seen;
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    if (!seen.insert(p.model->name).second) continue;
    models[p.model->sample + "s"].push_back(p.model->name);
    if (p.batch_limited) {
      notes.push_back(fmt::format("{} trains {} {} at a time, whatever the batch.", p.model->name,
                                  p.scenario.batch, p.model->sample));
    }
  }
  if (predictions[0].scenario.tokens > 0) {
    notes.insert(notes.begin(), token_note(predictions[0]));
  } else if (models.size() == 1) {
    notes.insert(notes.begin(), fmt::format("The batch counts {}.", models.begin()->first));
  } else {
    std::vector<std::string> sorts;
    for (const auto& [sample, names] : models) sorts.push_back(fmt::format("{} ({})", sample, joined(names)));
    notes.insert(notes.begin(), "The batch counts " + joined(sorts) + ".");
  }
  return notes;
}

// Notes on models with lengths: those with a mean over several, and the length of the others.
std::vector<std::string> length_notes(std::span<const Prediction> predictions) {
  std::vector<std::string> means;
  std::vector<std::string> single;
  for (const Prediction& p : predictions) {
    const std::string name = p.model->name + " on " + p.framework->name;
    const std::int64_t length = p.iterations[0].bucket.length;
    if (p.iterations.size() > 1) {
      means.push_back(name);
    } else if (length > 0) {
      single.push_back(fmt::format("{} ({})", name, length));
    }
  }
  std::string text;
  if (!means.empty())
    text = joined(means) +
           ": mean over the lengths of the data set, memory of the longest; --seq-len fixes one. ";
  if (!single.empty()) text += "Of one length: " + joined(single) + ".";
  return text.empty() ? std::vector<std::string>{} : std::vector{text};
}

// "8 workers of a machine, 4.00 ms each".
std::string loader_text(const Prediction& p) {
  const Loader& loader = p.loader;
  const SampleInput& input = p.scenario.input;
  std::string more;
  if (input.storage) more += ", read at " + to_text(*input.storage);
  if (input.copies != InputCopies::uncounted)
    more += fmt::format(", copied in {} ({})", to_text(p.iterations[p.largest].input_copy),
                        kInputCopiesNames[static_cast<std::size_t>(input.copies)]);
  if (loader.sample_time == Seconds(0))
    return (more.empty() ? "made up on the GPU" : "of unknown time to decode") + more;
  const std::string each = to_text(loader.sample_time) + " each";
  if (loader.in_loop()) return "decoded in the training loop, " + each + more;
  return fmt::format("decoded by {:.0f} worker{} {}, {}{}", loader.workers, loader.workers == 1 ? "" : "s",
                     loader.is_shared ? "of a machine" : "for each GPU", each, more);
}

// True where the scenario names a data set whose samples take a known time to decode, and none is decoded.
bool leaves_out_decoding(const Prediction& p) {
  return !p.scenario.dataset.empty() && p.dataset->decode_time && p.loader.sample_time == Seconds(0);
}

// Notes on the loaders, where the scenarios say something of them.
std::vector<std::string> input_notes(std::span<const Prediction> predictions) {
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    if (says_input(p))
      notes.push_back(fmt::format("Samples, on {}: {}.", p.framework->name, loader_text(p)));
    else if (leaves_out_decoding(p))
      notes.push_back(
          fmt::format("Samples, on {}: made up on the GPU; --input real decodes those of {}, {} each.",
                      p.framework->name, p.dataset->name, to_text(*p.dataset->decode_time)));
  }
  return notes;
}

// True for the workers of a loader that the prediction does not have.
bool is_of_another_loader(const std::string& key, const Prediction& p) {
  return (key == "input_threads" || key == "loader_threads") && key != p.loader.key;
}

// Notes on constants of the frameworks and the data set that are estimates; only where one model is shown.
std::vector<std::string> estimate_notes(std::span<const Prediction> predictions) {
  const auto several = [&](const Prediction& p) { return p.model != predictions[0].model; };
  if (std::any_of(predictions.begin(), predictions.end(), several)) return {};
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    std::vector<std::string> keys = estimates_among(p.framework->launch_model.sources);
    std::erase_if(keys, [&](const std::string& key) { return is_of_another_loader(key, p); });
    if (p.iterations[0].decode > Seconds(0) && !p.scenario.input.sample_time) {
      for (const std::string& key : estimates_among(p.dataset->sources))
        keys.push_back(key + " of " + p.dataset->name);
    }
    if (!keys.empty()) notes.push_back(fmt::format("Estimates, on {}: {}.", p.framework->name, joined(keys)));
  }
  return notes;
}

bool trains_all(const Prediction& p) { return p.scenario.training.fine_tuning == FineTuning{}; }

// Figures that people quote of models that train on tokens.
std::vector<std::string> mfu_notes(std::span<const Prediction> predictions) {
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    const auto model = find_metric("mfu").value(p);
    const auto hardware = find_metric("hfu").value(p);
    if (p.model->throughput.unit != "tokens" || !model || !hardware) continue;
    notes.push_back(fmt::format(
        "{} on {}: MFU {:.1f} % ({} x multiply-adds of a forward pass), HFU {:.1f} % (FLOP that run), of the "
        "peak of {}.",
        p.model->name, p.framework->name, 100 * *model, trains_all(p) ? "6" : "6, 4 where frozen,",
        100 * *hardware, name_of(p.precision->weight_product_math())));
  }
  return notes;
}

// The notes of captured steps: warnings of the capture, operators without a lowering.
std::vector<std::string> step_notes(std::span<const Prediction> predictions) {
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    for (const std::string& warning : p.steps->front().step.warnings)
      notes.push_back(p.model->name + ": " + warning + ".");
  }
  return notes;
}

// A note for each variant that other frameworks train than the one it is predicted on.
std::vector<std::string> variant_notes(std::span<const Prediction> predictions) {
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    const std::vector<std::string>& own = p.variant->frameworks;
    if (own.empty() || std::find(own.begin(), own.end(), p.framework->family) != own.end()) continue;
    notes.push_back(fmt::format("{} {} is trained by {}: on {} it is hypothetical.", p.model->name,
                                p.variant->name, joined(own), p.framework->name));
  }
  return notes;
}

// The sentences, each once, in lines of at most `width` letters.
std::vector<std::string> lines_of(std::span<const std::string> sentences, std::size_t width) {
  std::set<std::string> seen;
  std::vector<std::string> lines;
  for (const std::string& sentence : sentences) {
    if (!seen.insert(sentence).second) continue;
    const std::vector<std::string> more = wrapped(sentence, width);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

}  // namespace

bool says_input(const Prediction& p) {
  const SampleInput& input = p.scenario.input;
  return !input.source.empty() || input.workers || input.sample_time || input.storage ||
         input.copies != InputCopies::uncounted;
}

std::vector<std::string> fit_notes(std::span<const Prediction> predictions, std::size_t width) {
  std::vector<std::string> notes;
  for (const Prediction& p : predictions) {
    if (p.fits) continue;
    const auto largest = p.largest_batch();
    const std::int64_t length = p.iterations[p.largest].bucket.length;
    const std::string of_length = length == 0 ? "" : fmt::format(", of length {}", length);
    const std::string fitting = largest == 0
                                    ? "no batch fits ('tbd-sim memory --remedies' says what would help)"
                                    : fmt::format("the largest batch that fits is {}{}", largest, of_length);
    notes.push_back(fmt::format("! {} on {} needs {} of {}: {}; its throughput is hypothetical",
                                p.model->name, p.framework->name, to_text(p.memory.total()),
                                to_text(p.usable_memory()), fitting));
  }
  return lines_of(notes, width);
}

std::vector<std::string> prediction_notes(std::span<const Prediction> predictions, std::size_t width) {
  std::vector<std::string> sentences;
  for (const auto& notes : {mfu_notes(predictions), batch_notes(predictions), training_notes(predictions),
                            length_notes(predictions), input_notes(predictions), variant_notes(predictions),
                            step_notes(predictions), estimate_notes(predictions)}) {
    sentences.insert(sentences.end(), notes.begin(), notes.end());
  }
  return lines_of(sentences, width);
}

}  // namespace tbdsim
