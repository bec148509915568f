#include "simulate/workload/spec_cache.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "costmodel/power.h"
#include "costmodel/profile/same_chip.h"
#include "graphs/captured/step_reader.h"
#include "graphs/hugging_face/config_reader.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/framework/release.h"
#include "simulate/workload/captured_model.h"
#include "simulate/workload/change_scope.h"
#include "simulate/workload/find_convergence.h"

namespace tbdsim {
namespace {

constexpr std::string_view kGeneric = "generic";
constexpr std::string_view kRoofline = "uncalibrated";

}  // namespace

template <class T, class Key, class Make>
std::shared_ptr<const T> SpecCache::cached(Cache<T, Key>& cache, const Key& key, Make make) {
  typename Cache<T, Key>::Entry* entry = nullptr;
  {
    const std::scoped_lock held(cache.lock);
    entry = &cache.entries[key];  // a map's entries keep their addresses
  }
  std::call_once(entry->made, [&] { entry->value = std::make_shared<const T>(make()); });
  return entry->value;
}

SpecCache::SpecCache(SpecCache& other, const SpecChanges& changes)
    : catalog_(other.catalog_),
      other_(&other),
      changes_(other.changes_),
      of_other_(static_cast<std::ptrdiff_t>(other.changes_.size())) {
  for (SpecChange& change : scoped(changes, catalog_)) changes_.push_back(std::move(change));
}

bool SpecCache::changes(std::string_view spec) const {
  return std::any_of(changes_.begin() + of_other_, changes_.end(),
                     [&](const SpecChange& change) { return change.spec == spec; });
}

std::shared_ptr<const GpuSpec> SpecCache::gpu(const std::string& name) {
  if (other_ != nullptr && !changes("gpu") && !changes("link")) return other_->gpu(name);
  return cached(gpus_, name, [&] { return read_gpu(catalog_.find(Kind::gpu, name), catalog_, changes_); });
}

std::shared_ptr<const MachineSpec> SpecCache::machine(const std::string& name) {
  const bool own = changes("machine") || changes("link") || changes("cpu") || changes("gpu");
  if (other_ != nullptr && !own) return other_->machine(name);
  return cached(machines_, name,
                [&] { return read_machine(catalog_.find(Kind::machine, name), catalog_, changes_); });
}

std::shared_ptr<const Framework> SpecCache::framework(const std::string& name) {
  if (other_ != nullptr && !changes("framework")) return other_->framework(name);
  return cached(frameworks_, name, [&] {
    if (const std::string released = name_of_release(name); !released.empty()) return *framework(released);
    return read_framework(catalog_.find(Kind::framework, name), changes_, catalog_.folder(Kind::framework));
  });
}

std::string SpecCache::name_of_release(const std::string& name) {
  if (is_path(name) || catalog_.name_of(Kind::framework, name)) return "";
  const auto typed = family_and_release(name);
  if (!typed) return "";
  const auto family = catalog_.name_of(Kind::framework, typed->first);
  return family ? framework_of_version(*family, typed->second)->name : "";
}

namespace {

// "1.2" names "MXNet 1.2.0" but not "1.20", "11.2" or "0.1.2".
bool names_version(const std::string& text, const std::string& version) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t at = version.find(text); at != std::string::npos; at = version.find(text, at + 1)) {
    const std::size_t end = at + text.size();
    const bool starts =
        at == 0 || !digit(text.front()) || (!digit(version[at - 1]) && version[at - 1] != '.');
    const bool ends = end == version.size() || !digit(text.back()) || !digit(version[end]);
    if (starts && ends) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<const Framework> SpecCache::framework_of_version(const std::string& family,
                                                                 const std::string& version) {
  std::shared_ptr<const Framework> best;
  std::vector<std::shared_ptr<const Framework>> files;
  std::size_t longest = 0;
  for (const std::string& name : catalog_.names(Kind::framework)) {
    const std::shared_ptr<const Framework> candidate = framework(name);
    if (candidate->family != family) continue;
    files.push_back(candidate);
    for (const std::string& text : candidate->versions) {
      if (text.size() <= longest || !names_version(text, version)) continue;
      best = candidate;
      longest = text.size();
    }
  }
  if (best) return best;
  std::vector<const Framework*> of_family;
  for (const auto& file : files) of_family.push_back(file.get());
  const std::optional<Release> release = release_in(version);
  const auto nearest = release ? nearest_release(*release, of_family) : std::nullopt;
  return nearest ? files[*nearest] : framework(family);
}

std::shared_ptr<const Profile> SpecCache::profile(const std::string& name) {
  if (other_ != nullptr) return other_->profile(name);
  return cached(profiles_, name, [&] { return read_profile(catalog_.find(Kind::profile, name), catalog_); });
}

std::shared_ptr<const Profile> SpecCache::profile_for(const Named<GpuSpec>& gpu, const std::string& name) {
  if (!name.empty()) return profile(name);
  // A GPU given by a path has no profile of its own here, whatever its name.
  const std::string own = is_path(gpu.name) ? "" : gpu.spec->name;
  if (!own.empty() && catalog_.contains(Kind::profile, own)) return profile(own);
  const std::string board = own.empty() ? "" : measured_board(own);
  for (const std::string& candidate :
       {board, std::string(instructions_of(*gpu.spec)), gpu.spec->architecture, std::string(kGeneric)}) {
    if (catalog_.contains(Kind::profile, candidate)) return profile(candidate);
  }
  return profile(std::string(kRoofline));
}

std::shared_ptr<const GpuSpec> SpecCache::readable_gpu(const std::string& name) {
  if (!catalog_.contains(Kind::gpu, name)) return nullptr;
  try {
    return gpu(name);
  } catch (const Error&) {
    return nullptr;  // nobody asked for that card: its file is refused where somebody does
  }
}

std::string SpecCache::measured_board(const std::string& gpu_name) {
  if (other_ != nullptr) return other_->measured_board(gpu_name);
  const GpuSpec& card = *gpu(gpu_name);
  std::string nearest;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& name : catalog_.names(Kind::profile)) {
    const std::shared_ptr<const GpuSpec> board = readable_gpu(name);
    if (board == nullptr || !have_same_chip(card, *board)) continue;
    const double distance = distance_between_boards(card, *board);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

namespace {

// True if calibrations for the two frameworks are the same: they call the same libraries with the same
// limits.
bool same_calls(const Framework& a, const Framework& b) {
  return a.libraries == b.libraries && a.workspace_limit == b.workspace_limit &&
         a.nonfused_winograd == b.nonfused_winograd && a.pads_channels == b.pads_channels;
}

}  // namespace

std::shared_ptr<const Calibration> SpecCache::calibration(const Named<GpuSpec>& gpu,
                                                          const std::string& profile_name,
                                                          const Named<Framework>& framework) {
  const GpuSpec& card = *gpu.spec;
  const Framework& calls = *framework.spec;
  const Named<GpuSpec> other_gpu{gpu.name, other_ == nullptr ? nullptr : other_->gpu(gpu.name)};
  const Named<Framework> other_framework{framework.name,
                                         other_ == nullptr ? nullptr : other_->framework(framework.name)};
  const auto others = [&] { return other_->calibration(other_gpu, profile_name, other_framework); };
  bool other_rates = false;
  if (other_ != nullptr && same_calls(calls, *other_framework.spec)) {
    if (gpu.spec == other_gpu.spec) return others();
    other_rates = differ_in_rates_only(card, *other_gpu.spec);
  }
  const std::string key = gpu.name + '\n' + profile_name + '\n' + framework.name;
  const auto owned = cached(calibrations_, key, [&]() -> OwnedCalibration {
    if (other_rates) {
      const std::shared_ptr<const Calibration> before = others();
      return {{before, before->profile}, gpu.spec, {before, before->measured}, with_rates(*before, card)};
    }
    const std::shared_ptr<const Profile> own = profile_for(gpu, profile_name);
    const ConvLimits limits{calls.workspace_limit.si(), calls.nonfused_winograd, calls.pads_channels};
    const bool of_other =
        !own->gpu.empty() && own->gpu != card.name && catalog_.contains(Kind::gpu, own->gpu);
    const std::shared_ptr<const GpuSpec> board = of_other ? unchanged_gpu(own->gpu) : nullptr;
    return {own, gpu.spec, board, calibration_of(*own, card, calls.libraries, limits, board.get())};
  });
  return {owned, &owned->calibration};
}

ModelFile SpecCache::config_of(const std::string& name) const {
  const HuggingFaceConfig config = read_config_file(catalog_.find(Kind::model, name));
  return model_of_config(config, read_model_file(catalog_.find(Kind::model, config.model), changes_,
                                                 catalog_.folder(Kind::model)));
}

ModelFile SpecCache::step_of(const std::string& name) const {
  for (const SpecChange& change : changes_) {
    if (change.spec == "model" && (change.only.empty() || change.only == name))
      throw UsageError(in_quotes(key_text(change)) + ": " + name +
                       " is a captured step, which has no keys; expected another capture");
  }
  return captured_model(catalog_.find(Kind::model, name));
}

namespace {

// Throws UsageError for a network, or weights, in another program's format.
void require_model_format(const std::string& name) {
  for (const char* ending : {".onnx", ".prototxt"}) {
    if (name.ends_with(ending))
      throw UsageError(in_quotes(name) + " is no model file; expected one, as 'tbd-sim import " + name +
                       " -o DIR' writes it");
  }
  for (const char* ending : {".pt", ".pth", ".h5", ".keras", ".safetensors", ".ckpt", ".pb"}) {
    if (name.ends_with(ending))
      throw UsageError(in_quotes(name) +
                       " holds weights; expected a model file, or a training step that is captured in Python "
                       "(docs/capture.md)");
  }
}

}  // namespace

std::shared_ptr<const ModelFile> SpecCache::model(const std::string& name) {
  if (other_ != nullptr && !changes("model")) return other_->model(name);
  return cached(models_, name, [&] {
    require_model_format(name);
    if (is_path(name) && is_config_file(catalog_.find(Kind::model, name))) return config_of(name);
    if (is_path(name) && is_step_file(name)) return step_of(name);
    ModelFile file =
        read_model_file(catalog_.find(Kind::model, name), changes_, catalog_.folder(Kind::model));
    if (is_path(name)) require_whole(file);  // the catalogue's are held to it by a test
    return catalog_.contains(Kind::model, name) ? file : member_of_family(std::move(file), name);
  });
}

std::shared_ptr<const Dataset> SpecCache::dataset(const std::string& name) {
  if (other_ != nullptr && !changes("dataset")) return other_->dataset(name);
  return cached(datasets_, name, [&] { return read_dataset(catalog_.find(Kind::dataset, name), changes_); });
}

std::shared_ptr<const Convergence> SpecCache::convergence(const std::string& model,
                                                          const std::string& target) {
  if (other_ != nullptr) return other_->convergence(model, target);
  return cached(convergences_, model + '\n' + target,
                [&] { return find_convergence(model, target, catalog_); });
}

namespace {

// A captured step has PyTorch's operators.
void require_pytorch(const ModelFile& file, const Framework& framework) {
  constexpr std::string_view kPyTorch = "pytorch";
  if (!file.captured || framework.family == kPyTorch) return;
  throw UsageError(file.path + ": was captured by PyTorch and does not run in " + framework.name +
                   "; expected a version of PyTorch");
}

}  // namespace

std::shared_ptr<const std::vector<LengthStep>> SpecCache::workload(
    const std::string& model_name, const Variant& variant, const Named<Framework>& framework,
    const Precision& precision, const std::string& dataset_name, const Sizes& sizes,
    const TrainingChoices& choices) {
  const Framework& calls = *framework.spec;
  require_pytorch(*model(model_name), calls);
  if (other_ != nullptr && !own_steps_ && !changes("model") && !changes("dataset")) {
    const Named<Framework> others{framework.name, other_->framework(framework.name)};
    if (calls.lowering == others.spec->lowering && calls.rewrites == others.spec->rewrites &&
        calls.allocator.static_plan == others.spec->allocator.static_plan)
      return other_->workload(model_name, variant, others, precision, dataset_name, sizes, choices);
  }
  std::string key = model_name + '\n' + variant.name + '\n' + framework.name + '\n' +
                    std::string(precision.name) + '\n' + dataset_name;
  for (const auto& [name, value] : sizes) key += '\n' + name + '=' + std::to_string(value);
  key += '\n' + key_text(choices);
  return cached(workloads_, key, [&] {
    const std::optional<Dataset> trained_on =
        dataset_name.empty() ? std::nullopt : std::optional(*dataset(dataset_name));
    return expand_workload(*model(model_name), variant, sizes, trained_on, calls.lowering, calls.rewrites,
                           precision, calls.allocator.static_plan, choices);
  });
}

std::shared_ptr<const std::vector<FixedCost>> SpecCache::fixed_costs(const TrainingStep& step,
                                                                     const Calibration& calibration,
                                                                     const KernelFactors& factors) {
  return cached(fixed_costs_, {&step, &calibration},
                [&] { return tbdsim::fixed_costs(step, calibration, factors); });
}

}  // namespace tbdsim
