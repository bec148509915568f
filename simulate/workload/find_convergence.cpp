#include "simulate/workload/find_convergence.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

std::vector<Convergence> targets_of(const std::string& model, const Catalog& catalog) {
  std::vector<Convergence> targets;
  for (const std::string& name : catalog.names(Kind::target)) {
    Convergence target = read_convergence(catalog.find(Kind::target, name));
    if (target.model == model) targets.push_back(std::move(target));
  }
  return targets;
}

std::string names_of(const std::vector<Convergence>& targets) {
  std::vector<std::string> names;
  for (const Convergence& target : targets) names.push_back(target.name + " (" + target.target + ")");
  return joined(names);
}

Convergence read_own(const std::string& model, const std::string& file, const Catalog& catalog) {
  Convergence own = read_convergence(catalog.find(Kind::target, file));
  if (own.model == model) return own;
  throw UsageError(file + ": is a target of " + own.model + "; expected one of " + model);
}

}  // namespace

Convergence find_convergence(const std::string& model, const std::string& target, const Catalog& catalog) {
  if (is_path(target)) return read_own(model, target, catalog);
  const std::vector<Convergence> targets = targets_of(model, catalog);
  if (targets.empty()) {
    throw UsageError("no target was measured for " + model +
                     " ('tbd-sim list targets' names those there are); expected a YAML file of your own, as "
                     "graphs/convergence");
  }
  const bool usual = target == kUsualTarget;
  const auto found = std::find_if(targets.begin(), targets.end(), [&](const Convergence& candidate) {
    return usual ? candidate.usual || targets.size() == 1 : candidate.is_called(target);
  });
  if (found != targets.end()) return *found;
  std::vector<std::string> known;
  for (const Convergence& candidate : targets) {
    known.push_back(candidate.name);
    known.push_back(candidate.target);
    known.insert(known.end(), candidate.also_called.begin(), candidate.also_called.end());
  }
  throw UsageError((usual ? "no target of " + model + " is the usual one"
                          : "nobody measured " + model + " to target " + in_quotes(target)) +
                   did_you_mean(target, known) + "; expected one of " + names_of(targets));
}

}  // namespace tbdsim
