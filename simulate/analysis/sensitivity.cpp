#include "simulate/analysis/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/spec_reader.h"
#include "simulate/analysis/whatif.h"

namespace tbdsim {
namespace {

struct NamedNumber {
  SpecChange change;  // without a value
  std::string text;
};

// Finds the numbers of a file that describe rates and sizes, not those of its sources, names and prices.
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

void find_link_numbers(const LinkSpec& link, const std::string& called, std::vector<NamedNumber>& found) {
  find_numbers(read_spec_file(link.file), {.spec = "link", .path = {}, .value = {}, .only = called}, found);
}

// A network given as a rate has the numbers of the link it is derived from, but for the bandwidth.
void find_network_numbers(const LinkSpec& network, std::vector<NamedNumber>& found) {
  const bool rate = network.name != network.file.stem();
  const std::size_t first = found.size();
  find_link_numbers(network, "network", found);
  for (std::size_t n = first; n < found.size(); ++n) {
    if (rate && found[n].change.path.front() == "bandwidth") found[n].text = network.name;
  }
}

// Adds the numbers of the links, processors and network that join the GPUs of the prediction.
void add_cluster(const Prediction& p, const Resolver& resolve, std::vector<NamedNumber>& found) {
  const MachineSpec machine = resolve.machine(p.scenario.cluster, *p.gpu);
  std::map<std::string, const LinkSpec*> links;
  const auto add_link = [&](const LinkSpec& link) { links.emplace(link.name, &link); };
  if (p.scenario.cluster.gpus > 1) {
    for (const RootPort& port : machine.root_ports) {
      add_link(port.link);
      add_link(port.of_slots());
    }
    if (machine.socket_link) add_link(machine.socket_link->link);
    if (machine.nvlink) add_link(machine.nvlink->link);
  }
  links.erase(p.gpu->bus.name);  // already found with the GPU
  for (const auto& [name, link] : links) find_link_numbers(*link, name, found);
  find_numbers(read_spec_file(machine.cpu.file),
               {.spec = "cpu", .path = {}, .value = {}, .only = machine.cpu.name}, found);
  if (p.scenario.cluster.machines > 1) find_network_numbers(machine.networks.front().link, found);
  const Seconds message = p.framework->sync.message;
  if (message > Seconds(0))
    found.push_back({{.spec = "framework", .path = {"exchange", "message"}, .value = {}}, to_text(message)});
}

// Adds what the data set says of its samples, where they are decoded and read.
void add_samples(const Prediction& p, std::vector<NamedNumber>& found) {
  const auto any = [&](Seconds Iteration::*part) {
    return std::any_of(p.iterations.begin(), p.iterations.end(),
                       [&](const Iteration& i) { return i.*part > Seconds(0); });
  };
  const SampleInput& given = p.scenario.input;
  if (any(&Iteration::decode) && !given.sample_time)
    found.push_back({{"dataset", {"decode_time"}, {}}, to_text(*p.dataset->decode_time)});
  if (any(&Iteration::read) && !given.sample_bytes)
    found.push_back({{"dataset", {"sample_bytes"}, {}}, to_text(*p.dataset->sample_bytes)});
}

std::vector<NamedNumber> numbers_of(const Prediction& p, const Resolver& resolve) {
  std::vector<NamedNumber> numbers;
  find_numbers(read_spec_file(resolve.catalog().find(Kind::gpu, p.scenario.gpu)),
               {.spec = "gpu", .path = {}, .value = {}}, numbers);
  find_link_numbers(p.gpu->bus, p.gpu->bus.name, numbers);
  const LaunchModel& e = p.framework->launch_model;
  const auto host = [&](const char* key, Seconds time) {
    if (time > Seconds(0))
      numbers.push_back({{.spec = "framework", .path = {"execution", key}, .value = {}}, to_text(time)});
  };
  host("kernel", e.launch_overhead);
  host("step", e.loop_step_overhead);
  host("update", e.update_overhead);
  host("wait", e.sync_overhead);
  host("iteration", e.iteration_overhead);
  host("latency", e.launch_latency);
  host("gap", e.kernel_gap);
  if (p.sync) add_cluster(p, resolve, numbers);
  add_samples(p, numbers);
  return numbers;
}

// The change to `factor` times the number, with the change that must go with it: an FP32 lane does two
// operations in a clock.
SpecChanges scaled(const NamedNumber& number, double factor) {
  SpecChange change = number.change;
  const auto whole = parse_whole_number(number.text);
  const std::vector<std::string> flops{"math", "fp32", "flops_per_clock_per_sm"};
  if (change.path == flops) {
    const double one_lane_more = 1 + 2.0 / static_cast<double>(*whole);
    change.value = fmt::format("x{}", factor < 2 ? one_lane_more : factor);
    return {change, {"gpu", {"fp32_lanes_per_sm"}, change.value}};
  }
  const bool counted = whole && factor < 2;
  change.value = counted ? std::to_string(*whole + 1) : fmt::format("x{}", factor);
  return {change};
}

constexpr double kOnePercentMore = 1.01;

// The value of scaled(number, kOnePercentMore) over the value now.
double larger_value(const NamedNumber& number) {
  const auto whole = parse_whole_number(number.text);
  if (!whole) return kOnePercentMore;
  const bool lanes = number.change.path.back() == "flops_per_clock_per_sm";
  const double more = lanes ? 2 : 1;
  return 1 + more / static_cast<double>(*whole);
}

double throughput_with(const NamedNumber& number, double factor, const Scenario& scenario,
                       const Resolver& resolve) {
  return predict_changed(scenario, scaled(number, factor), resolve).throughput();
}

}  // namespace

std::vector<Sensitivity> sensitivities(const Scenario& scenario, const Prediction& p,
                                       const Resolver& resolve) {
  std::vector<Sensitivity> all;
  const double now = p.throughput();
  for (const NamedNumber& number : numbers_of(p, resolve)) {
    try {
      const double larger = larger_value(number);
      const double then = throughput_with(number, kOnePercentMore, scenario, resolve);
      const double doubled = throughput_with(number, 2, scenario, resolve);
      const double elasticity = std::log(then / now) / std::log(larger);
      all.push_back({key_text(number.change), number.text, elasticity, doubled / now});
    } catch (const Error&) {  // an efficiency of 1 cannot be doubled, lanes not changed alone
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return std::abs(a.elasticity) > std::abs(b.elasticity);
  });
  return all;
}

}  // namespace tbdsim
