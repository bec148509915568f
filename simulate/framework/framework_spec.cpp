#include "simulate/framework/framework_spec.h"

#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "costmodel/hardware.h"
#include "graphs/lowering_reader.h"
#include "hwspecs/base/catalog_reference.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {

constexpr std::string_view kLibraries[] = {"cublas", "cudnn", "torch"};
constexpr std::string_view kSourcedKeys[] = {
    "lowering",       "rewrites",  "libraries", "workspace_limit", "nonfused_winograd", "pads_channels",
    "context_memory", "allocator", "factors",   "spread",          "default_precision"};
constexpr std::array<std::string_view, 3> kFp32Precisions = {"fp32", "tf32", "tf32_convolutions"};
constexpr double kLeastFactor = 0.1, kLargestFactor = 10;
constexpr int kDeepest = 8;  // files based on files

LibraryVersions read_libraries(const SpecNode& node) {
  LibraryVersions libraries;
  node.map([&](SpecMap& m) {
    for (const std::string_view name : kLibraries) {
      if (const auto version = m.find(name))
        libraries[std::string(name)] = static_cast<int>(version->count(1, 99));
    }
  });
  return libraries;
}

double read_factor(const SpecNode& node) { return node.number(kLeastFactor, kLargestFactor); }

void override_factors_by_capability(const SpecNode& node, std::map<std::string, double>& factors) {
  node.map([&](SpecMap& capabilities) {
    for (const auto& [name, mark, factor] : capabilities.all()) {
      if (!is_capability(name)) factor.fail("is of " + name + "; expected compute capabilities, as sm_80");
      factors[name] = read_factor(factor);
    }
  });
}

void override_factors(const SpecNode& node, Framework& framework) {
  node.map([&](SpecMap& m) {
    for (std::size_t kind = 0; kind < framework.factors.size(); ++kind) {
      if (const auto found = m.find(kKernelKindNames[kind])) framework.factors[kind] = read_factor(*found);
    }
    if (const auto found = m.find(kHalfConvolution)) framework.half_convolution = read_factor(*found);
    if (const auto on = m.find("on")) override_factors_by_capability(*on, framework.factors_on);
  });
}

Framework read_based(const std::filesystem::path& file, const SpecChanges& changes,
                     const std::filesystem::path& catalogue, int depth);

// The framework that `file` is based on.
Framework read_base(const SpecNode& node, const std::filesystem::path& file, const SpecChanges& changes,
                    const std::filesystem::path& catalogue, int depth) {
  if (depth == kDeepest) node.fail("files are based on one another without end");
  Framework framework =
      read_based(base_named(node, Kind::framework, file, catalogue), changes, catalogue, depth + 1);
  framework.versions.clear();
  framework.fitted_runs = 0;
  framework.spread = 0;
  return framework;
}

// Applies the changes that concern this file. Returns those that are left for the file it is based on, which
// may hold the number that a relative change refers to.
SpecChanges apply_here(const SpecChanges& changes, SpecTree& tree) {
  const bool based = has_value(tree, {.spec = {}, .path = {"based_on"}, .value = {}});
  SpecChanges left;
  for (const SpecChange& change : changes) {
    const bool missing_number = is_relative(change) && !has_value(tree, change);
    if (missing_number && based) {
      left.push_back(change);
      continue;
    }
    const bool is_factor = change.path.size() == 2 && change.path[0] == "factors";
    if (missing_number && is_factor) apply_changes(tree, {{change.spec, change.path, "1"}});
    apply_changes(tree, {change});
  }
  return left;
}

// The keys that a file without a base must have; with one any may be left out.
void read_required_keys(SpecMap& m, bool based, Framework& framework) {
  const auto key = [&](std::string_view name) { return based ? m.find(name) : std::optional(m.at(name)); };
  if (const auto node = key("lowering"))
    framework.lowering = based ? override_lowering(*node, framework.lowering) : read_lowering(*node);
  if (const auto node = key("workspace_limit")) framework.workspace_limit = node->quantity<Bytes>();
  if (const auto node = key("context_memory")) framework.context_memory = node->quantity<Bytes>();
}

void read_optional_keys(SpecMap& m, Framework& framework) {
  constexpr std::int64_t kMostRuns = 1'000'000;
  framework.versions = m.texts("versions");
  (void)m.texts("also_called");  // for the catalogue
  if (const auto node = m.find("fitted_runs")) framework.fitted_runs = node->count(0, kMostRuns);
  if (const auto node = m.find("spread")) framework.spread = node->number(0, 1);
  if (const auto node = m.find("rewrites")) framework.rewrites = override_rewrites(*node, framework.rewrites);
  if (const auto node = m.find("libraries")) framework.libraries = read_libraries(*node);
  if (const auto node = m.find("nonfused_winograd")) framework.nonfused_winograd = node->flag();
  if (const auto node = m.find("pads_channels"))
    framework.pads_channels = static_cast<PadsChannels>(node->one_of(kPadsChannelsNames));
  if (const auto node = m.find("default_precision"))
    framework.default_precision = kFp32Precisions[node->one_of(kFp32Precisions)];
  if (const auto node = m.find("allocator"))
    framework.allocator = override_allocator(*node, framework.allocator);
  if (const auto node = m.find("execution"))
    framework.launch_model = override_launch_model(*node, framework.launch_model);
  if (const auto node = m.find("exchange")) framework.sync = override_sync_defaults(*node, framework.sync);
  if (const auto node = m.find("factors")) override_factors(*node, framework);
}

Framework read_based(const std::filesystem::path& file, const SpecChanges& changes,
                     const std::filesystem::path& catalogue, int depth) {
  SpecTree tree = read_spec_file(file);
  const SpecChanges left = apply_here(changes, tree);
  Framework framework;
  framework.factors.fill(1);
  SpecNode(tree).map([&](SpecMap& m) {
    const auto base = m.find("based_on");
    if (base) framework = read_base(*base, file, left, catalogue, depth);
    framework.name = file.stem().string();
    if (!base) framework.family = framework.name;
    framework.title = m.at("title").text();
    read_required_keys(m, base.has_value(), framework);
    read_optional_keys(m, framework);
    for (auto& [name, source] : read_sources(m, kSourcedKeys)) framework.sources[name] = source;
  });
  return framework;
}

}  // namespace

bool is_capability(std::string_view name) {
  constexpr std::size_t kDigits = 2;
  return name.starts_with(kCapability) && name.size() >= kCapability.size() + kDigits &&
         name.find_first_not_of("0123456789", kCapability.size()) == name.npos;
}

KernelFactors factors_on(const Framework& framework, const GpuSpec& gpu, MathType math) {
  KernelFactors factors = framework.factors;
  const bool half = math == MathType::fp16 || math == MathType::bf16;
  if (half && has_tensor_cores(gpu, math))
    factors[index_of(KernelKind::convolution)] *= framework.half_convolution;
  const auto on =
      framework.factors_on.find(fmt::format("{}{}", kCapability, std::lround(10 * gpu.compute_capability)));
  if (on == framework.factors_on.end()) return factors;
  for (double& factor : factors) factor *= on->second;
  return factors;
}

Framework read_framework(const std::filesystem::path& file, const SpecChanges& changes,
                         const std::filesystem::path& catalogue) {
  return read_based(file, changes_of(changes, "framework", file.stem().string()), catalogue, 0);
}

}  // namespace tbdsim
