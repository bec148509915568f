#include "simulate/framework/framework_spec.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "costmodel/hardware.h"
#include "graphs/lowering_reader.h"
#include "hwspecs/base/spec_reader.h"
#include "simulate/framework/sync_method.h"

namespace tbdsim {
namespace {

constexpr std::string_view kLibraries[] = {"cublas", "cudnn", "torch"};
constexpr std::string_view kSourcedKeys[] = {"lowering",        "rewrites",          "libraries",
                                             "workspace_limit", "nonfused_winograd", "pads_channels",
                                             "context_memory",  "allocator",         "factors"};
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

ExchangeDefaults override_exchange(const SpecNode& node, ExchangeDefaults exchange) {
  constexpr std::string_view kSourcedExchange[] = {
      "within",        "across",  "bucket",       "first_bucket",
      "bucket_across", "message", "interference", "copy_interference",
      "single_ring",   "cycle",   "fp32_amp"};
  node.map([&](SpecMap& m) {
    const auto method = [&](std::string_view key, std::string& name) {
      const auto given = m.find(key);
      if (!given) return;
      name = given->text();
      require_exchange_method(*given);
    };
    method("within", exchange.within);
    method("across", exchange.across);
    if (const auto bucket = m.find("bucket"))
      exchange.bucket = exchange.first_bucket = exchange.bucket_across = bucket->quantity<Bytes>();
    if (const auto across = m.find("bucket_across")) exchange.bucket_across = across->quantity<Bytes>();
    if (const auto part = m.find("interference")) exchange.interference = part->number(0, 1);
    if (const auto one = m.find("single_ring")) exchange.single_ring = one->flag();
    if (const auto part = m.find("copy_interference")) exchange.copy_interference = part->number(0, 1);
    if (const auto first = m.find("first_bucket")) exchange.first_bucket = first->quantity<Bytes>();
    if (const auto message = m.find("message")) exchange.message = message->quantity<Seconds>();
    if (const auto cycle = m.find("cycle")) exchange.cycle = cycle->quantity<Seconds>();
    if (const auto wide = m.find("fp32_amp")) exchange.fp32_amp = wide->flag();
    for (auto& [name, source] : read_sources(m, kSourcedExchange)) exchange.sources[name] = source;
  });
  return exchange;
}

// Keys that are not given stay as they were.
Allocator override_allocator(const SpecNode& node, Allocator allocator) {
  node.map([&](SpecMap& m) {
    if (const auto arena = m.find("arena"))
      allocator.arena = static_cast<AllocatorPolicy>(arena->one_of(kArenaNames));
    if (const auto planned = m.find("planned")) allocator.planned = planned->flag();
    if (const auto tries = m.find("tries_algorithms")) allocator.tries_algorithms = tries->flag();
    if (const auto block = m.find("block")) allocator.block = block->quantity<Bytes>();
    if (const auto block = m.find("large_block")) allocator.large_block = block->quantity<Bytes>();
  });
  return allocator;
}

void override_factors(const SpecNode& node, Framework& framework) {
  node.map([&](SpecMap& m) {
    for (std::size_t kind = 0; kind < framework.factors.size(); ++kind) {
      if (const auto found = m.find(kKernelKindNames[kind]))
        framework.factors[kind] = found->number(kLeastFactor, kLargestFactor);
    }
    if (const auto found = m.find(kHalfConvolution))
      framework.half_convolution = found->number(kLeastFactor, kLargestFactor);
    if (const auto on = m.find("on")) {
      on->map([&](SpecMap& capabilities) {
        for (const auto& [name, mark, factor] : capabilities.all()) {
          if (!is_capability(name))
            factor.fail("is of " + name + "; expected compute capabilities, as sm_80");
          framework.factors_on[name] = factor.number(kLeastFactor, kLargestFactor);
        }
      });
    }
  });
}

Bytes multiple_of(Bytes block, Bytes size) { return block * std::ceil(size / block); }

Framework read_based(const std::filesystem::path& file, const SpecChanges& changes, int depth);

// The file beside this one, or in the folder above; all of the new framework but what is its own.
Framework read_base(const SpecNode& node, const std::filesystem::path& file, const SpecChanges& changes,
                    int depth) {
  if (depth == kDeepest) node.fail("files are based on one another without end");
  const std::string name = node.text();
  if (name.find_first_of("/\\") != std::string::npos)
    node.fail("is a path; expected the name of a file beside");
  std::filesystem::path base = file.parent_path() / (name + ".yaml");
  if (!std::filesystem::exists(base)) base = file.parent_path() / ".." / (name + ".yaml");
  if (!std::filesystem::exists(base)) node.fail("no framework " + name + " beside this file");
  Framework framework = read_based(base, changes, depth + 1);
  framework.versions.clear();
  return framework;
}

// The file with the changes made; returns what is left to do to the file it is based on, which may hold the
// number that a relative change is of.
SpecChanges apply_here(const SpecChanges& changes, SpecTree& tree) {
  const bool based = has_value(tree, {.spec = {}, .path = {"based_on"}, .value = {}});
  SpecChanges left;
  for (const SpecChange& change : changes) {
    const bool there = has_value(tree, change);
    if (is_relative(change) && !there && based) {
      left.push_back(change);
      continue;
    }
    const bool factor = change.path.size() == 2 && change.path[0] == "factors";
    if (is_relative(change) && !there && factor) apply_changes(tree, {{change.spec, change.path, "1"}});
    apply_changes(tree, {change});
  }
  return left;
}

Framework read_based(const std::filesystem::path& file, const SpecChanges& changes, int depth) {
  SpecTree tree = read_spec_file(file);
  const SpecChanges left = apply_here(changes, tree);
  Framework framework;
  framework.factors.fill(1);
  SpecNode(tree).map([&](SpecMap& m) {
    const auto base = m.find("based_on");
    if (base) framework = read_base(*base, file, left, depth);
    framework.name = file.stem().string();
    if (!base) framework.family = framework.name;
    framework.title = m.at("title").text();
    // Without a base these keys are required, with one any may be left out.
    const auto key = [&](std::string_view name) { return base ? m.find(name) : std::optional(m.at(name)); };
    framework.versions = m.texts("versions");
    if (const auto node = key("lowering")) {
      framework.lowering = base ? override_lowering(*node, framework.lowering) : read_lowering(*node);
    }
    if (const auto node = m.find("rewrites"))
      framework.rewrites = override_rewrites(*node, framework.rewrites);
    if (const auto libraries = m.find("libraries")) framework.libraries = read_libraries(*libraries);
    if (const auto node = key("workspace_limit")) framework.workspace_limit = node->quantity<Bytes>();
    if (const auto node = m.find("nonfused_winograd")) framework.nonfused_winograd = node->flag();
    if (const auto node = m.find("pads_channels")) framework.pads_channels = node->flag();
    if (const auto node = key("context_memory")) framework.context_memory = node->quantity<Bytes>();
    if (const auto node = m.find("allocator"))
      framework.allocator = override_allocator(*node, framework.allocator);
    if (const auto node = m.find("execution"))
      framework.execution = override_execution(*node, framework.execution);
    if (const auto node = m.find("exchange"))
      framework.exchange = override_exchange(*node, framework.exchange);
    if (const auto node = m.find("factors")) override_factors(*node, framework);
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

Bytes Allocator::taken_for(Bytes size) const {
  if (large_block > Bytes() && size > large_block) return multiple_of(large_block, size);
  return block > Bytes() ? multiple_of(block, size) : size;
}

Framework read_framework(const std::filesystem::path& file, const SpecChanges& changes) {
  return read_based(file, changes_of(changes, "framework", file.stem().string()), 0);
}

}  // namespace tbdsim
