#include "simulate/report/overlap_advice.h"

#include <fmt/format.h>

namespace tbdsim {
namespace {

// Share of the step that waits for this dimension's communication.
double exposed_share(const LayoutPrediction& p, LayoutDimension dimension) {
  return p.communication[static_cast<std::size_t>(dimension)].exposed / p.step;
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

}  // namespace

std::vector<std::string> overlap_advice(const LayoutPrediction& prediction, const Stack& stack) {
  std::vector<std::string> advice;
  const double tensor = exposed_share(prediction, LayoutDimension::tensor);
  if (tensor >= kNoticedExposure && !stack.overlaps_tensor)
    advice.push_back(fmt::format(
        "{} of the step waits for tensor-parallel collectives; --overlap-tensor true runs them in "
        "pieces beside products, where the program can (Transformer Engine's Userbuffers).",
        percent(tensor)));
  const double expert = exposed_share(prediction, LayoutDimension::expert);
  if (expert < kNoticedExposure || (stack.overlaps_experts && stack.dispatches_once)) return advice;
  std::string keys;
  if (!stack.overlaps_experts) keys += "--overlap-experts true runs them beside other micro-batches";
  if (!stack.dispatches_once)
    keys += fmt::format("{}--dispatch-once true sends a token once to each rank (DeepEP, HybridEP)",
                        keys.empty() ? "" : ", ");
  advice.push_back(fmt::format("{} of the step waits for all-to-alls of experts; {}, where the program can.",
                               percent(expert), keys));
  return advice;
}

}  // namespace tbdsim
