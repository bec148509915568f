#include "simulate/whatif.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"
#include "simulate/scenario_keys.h"

namespace tbdsim {
namespace {

constexpr double kUnlimited = 1'000'000'000;  // times what it is

Seconds time_of_kind(const Prediction& p, std::size_t kind) {
  Seconds sum;
  for (const Iteration& iteration : p.iterations) {
    for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
      const Kernel& kernel = iteration.step->kernels[k];
      if (index_of(kernel.kind) == kind)
        sum += iteration.costs[k].total * (static_cast<double>(kernel.repeat) * iteration.share);
    }
  }
  return sum;
}

GpuSpec unlimited(GpuSpec gpu, bool bandwidth, bool compute) {
  if (bandwidth) gpu.memory_bandwidth = gpu.memory_bandwidth * kUnlimited;
  if (!compute) return gpu;
  gpu.tdp = gpu.tdp * kUnlimited;
  for (auto& rate : gpu.math) {
    if (rate) rate->peak = rate->peak * kUnlimited;
  }
  return gpu;
}

Framework unlimited(Framework framework) {
  Execution& e = framework.execution;
  for (Seconds* time : {&e.kernel, &e.step, &e.update, &e.wait, &e.iteration, &e.latency, &e.gap})
    *time = Seconds(0);
  return framework;
}

Limitless limitless(const Prediction& p, std::string name, bool bandwidth, bool compute, bool launches) {
  const GpuSpec gpu = unlimited(*p.gpu, bandwidth, compute);
  const Prediction changed = with_rates(p, gpu);
  const Seconds time =
      launches ? iteration_time_with(unlimited(*p.framework), changed) : changed.iteration_time();
  return {std::move(name), p.throughput() * (p.iteration_time() / time)};
}

struct NamedNumber {
  SpecChange change;  // without a value
  std::string text;
};

// Every number of a file, but where it is from, what it is called, costs and is quoted as.
void find_numbers(const SpecTree& tree, const SpecChange& at, std::vector<NamedNumber>& found) {
  constexpr std::string_view kNoRates[] = {
      "sources", "price", "price_per_hour", "quoted_peak", "compute_capability", "count"};
  for (const SpecEntry& entry : tree.entries) {
    if (std::find(std::begin(kNoRates), std::end(kNoRates), entry.key) != std::end(kNoRates)) continue;
    SpecChange inner = at;
    inner.path.push_back(entry.key);
    const std::string& text = entry.value.text;
    if (entry.value.kind == SpecTree::Kind::map) {
      find_numbers(entry.value, inner, found);
    } else if (!entry.value.quoted && parse_number(text.substr(0, text.find(' ')))) {
      found.push_back({std::move(inner), text});
    }
  }
}

std::vector<NamedNumber> numbers_of(const Prediction& p, Library& library) {
  std::vector<NamedNumber> numbers;
  const Catalog& catalog = library.catalog();
  find_numbers(read_spec_file(catalog.find(Kind::gpu, p.scenario.gpu)),
               {.spec = "gpu", .path = {}, .value = {}}, numbers);
  find_numbers(read_spec_file(catalog.find(Kind::link, p.gpu->bus.name)),
               {.spec = "link", .path = {p.gpu->bus.name}, .value = {}}, numbers);
  const Execution& e = p.framework->execution;
  const auto host = [&](const char* key, Seconds time) {
    if (time > Seconds(0))
      numbers.push_back({{.spec = "framework", .path = {"execution", key}, .value = {}}, to_text(time)});
  };
  host("kernel", e.kernel);
  host("step", e.step);
  host("update", e.update);
  host("wait", e.wait);
  host("iteration", e.iteration);
  host("latency", e.latency);
  host("gap", e.gap);
  return numbers;
}

// The change to `factor` times the number, with what must go with it: a lane does two operations in a clock.
SpecChanges scaled(const NamedNumber& number, double factor) {
  SpecChange change = number.change;
  const auto whole = parse_whole_number(number.text);
  change.value = whole && factor < 2 ? std::to_string(*whole + 1) : fmt::format("x{}", factor);
  SpecChanges all{change};
  const std::vector<std::string> flops{"math", "fp32", "flops_per_clock_per_sm"};
  if (change.path == flops) {
    all.front().value = fmt::format("x{}", factor < 2 ? 1 + 2.0 / static_cast<double>(*whole) : factor);
    all.push_back({"gpu", {"fp32_lanes_per_sm"}, all.front().value});
  }
  return all;
}

double throughput_with(const NamedNumber& number, double factor, const Scenario& scenario, Library& library) {
  return predict_changed(scenario, scaled(number, factor), library).prediction.throughput();
}

}  // namespace

ChangedPrediction predict_changed(Scenario scenario, const SpecChanges& changes, Library& library) {
  SpecChanges of_specs;
  for (const SpecChange& change : changes) {
    if (!change.spec.empty()) {
      of_specs.push_back(change);
      continue;
    }
    const ScenarioKey* key = find_scenario_key(change.path.front());
    if (key == nullptr) {
      throw UsageError("unknown key " + in_quotes(change.path.front()) +
                       did_you_mean(change.path.front(), scenario_key_names()) + "; expected one of " +
                       joined(scenario_key_names()) + ", or a key of a spec as gpu.sm_count");
    }
    key->set(scenario, change.value);
  }
  ChangedPrediction changed{std::make_unique<Library>(library, std::move(of_specs)), {}};
  changed.prediction = predict(scenario, *changed.library);
  return changed;
}

SpecChanges read_changes(const std::filesystem::path& file) {
  const SpecTree tree = read_spec_file(file);
  SpecChanges changes;
  SpecNode(tree).map([&](SpecMap& m) {
    if (const auto title = m.find("title")) (void)title->text();
    if (const auto source = m.find("source")) (void)source->text();
    m.at("set").map([&](SpecMap& set) {
      for (const auto& [name, mark, node] : set.all())
        changes.push_back(parse_change(name + "=" + node.text()));
    });
  });
  return changes;
}

std::vector<TimePart> time_parts(const Prediction& before, const Prediction& after) {
  std::vector<TimePart> parts;
  const auto idle = [](const Prediction& p, Limit limit) { return p.iteration_time() * p.share(limit); };
  for (std::size_t kind = 0; kind < kKernelKindCount; ++kind) {
    if (static_cast<KernelKind>(kind) == KernelKind::transfer) continue;
    const TimePart part{std::string(kKernelKindNames[kind]), time_of_kind(before, kind),
                        time_of_kind(after, kind)};
    if (part.before > Seconds(0) || part.after > Seconds(0)) parts.push_back(part);
  }
  parts.push_back({"GPU waits for the CPU and copies", idle(before, Limit::cpu), idle(after, Limit::cpu)});
  if (idle(before, Limit::input) > Seconds(0) || idle(after, Limit::input) > Seconds(0))
    parts.push_back({"GPU waits for samples", idle(before, Limit::input), idle(after, Limit::input)});
  return parts;
}

std::vector<Limitless> without_limits(const Prediction& p) {
  return {limitless(p, "infinite memory bandwidth", true, false, false),
          limitless(p, "infinite compute", false, true, false),
          limitless(p, "launches and waits at no cost", false, false, true),
          limitless(p, "all three", true, true, true)};
}

std::vector<Sensitivity> sensitivities(const Scenario& scenario, const Prediction& p, Library& library) {
  constexpr double kLittleMore = 1.01;
  std::vector<Sensitivity> all;
  const double now = p.throughput();
  for (const NamedNumber& number : numbers_of(p, library)) {
    try {
      const auto whole = parse_whole_number(number.text);
      const bool lanes = number.change.path.back() == "flops_per_clock_per_sm";
      const double larger = whole ? 1 + (lanes ? 2.0 : 1.0) / static_cast<double>(*whole) : kLittleMore;
      const double then = throughput_with(number, kLittleMore, scenario, library);
      all.push_back({key_text(number.change), number.text, std::log(then / now) / std::log(larger),
                     throughput_with(number, 2, scenario, library) / now});
    } catch (const Error&) {  // an efficiency of 1 cannot be doubled, lanes not changed alone
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return std::abs(a.elasticity) > std::abs(b.elasticity);
  });
  return all;
}

}  // namespace tbdsim
