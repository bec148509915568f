#include "simulate/scaling.h"

#include <memory>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "simulate/commands/command.h"
#include "simulate/commands/options.h"

namespace tbdsim {
namespace {

constexpr int kMostCounts = 100;  // in a list
constexpr std::int64_t kMostGpus = 1000;
constexpr std::int64_t kMostAsked = 1'000'000;

struct ScalingOptions : ScenarioOptions {
  std::vector<std::string> models;  // with a framework behind ':', or that of --framework
  std::string machine;
  std::string gpus = "1,2,4,8";
  std::string machines = "1";
  std::string networks;
  std::string method;
  std::string gradients;
  std::string compression;
  OutputOptions output;
};

std::vector<int> counts(std::string_view option, const std::string& text, std::int64_t most) {
  std::vector<int> numbers;
  for (const std::string& part : list_of(text))
    numbers.push_back(static_cast<int>(whole_number(option, part, most)));
  if (numbers.size() > kMostCounts)
    throw UsageError(
        fmt::format("{} has {} numbers; expected up to {}", option, numbers.size(), kMostCounts));
  return numbers;
}

double gradient_bytes(const std::string& text) {
  if (text.empty()) return 0;
  constexpr double kHalf = 2;
  constexpr double kWhole = 4;
  return choice("--gradients", text, {"fp16", "fp32"}) == 0 ? kHalf : kWhole;
}

double compression(const std::string& text) {
  if (text.empty()) return 1;
  const auto part = parse_number(text);
  if (!part || !(*part > 0 && *part <= 1))
    throw UsageError("--compression '" + text + "': expected the part that is sent, above 0 and up to 1");
  return *part;
}

// One machine once for each number of GPUs; several once for each network.
std::vector<Cluster> clusters_of(const ScalingOptions& options) {
  std::vector<std::string> networks = list_of(options.networks);
  if (networks.empty()) networks.emplace_back();
  std::vector<Cluster> clusters;
  for (const int machines : counts("--machines", options.machines, kMostAsked)) {
    for (const int gpus : counts("--gpus", options.gpus, kMostGpus)) {
      for (std::size_t n = 0; n < (machines > 1 ? networks.size() : 1); ++n) {
        const bool named = machines > 1 || options.machine.empty();
        clusters.push_back({.gpus = gpus,
                            .machines = machines,
                            .machine = options.machine,
                            .network = named ? networks[n] : "",
                            .method = options.method,
                            .gradient_bytes = gradient_bytes(options.gradients),
                            .compression = compression(options.compression)});
      }
    }
  }
  return clusters;
}

void append(std::vector<ScalingPoint>& points, ScalingOptions options, const std::string& model,
            std::span<const Cluster> clusters, Library& library) {
  const std::size_t colon = is_path(model) ? std::string::npos : model.find(':');
  options.model = model.substr(0, colon);
  if (colon != std::string::npos) options.framework = model.substr(colon + 1);
  const std::vector<std::string> batches = list_of(options.batch);
  for (std::size_t b = 0; b < std::max<std::size_t>(1, batches.size()); ++b) {
    if (!batches.empty()) options.batch = batches[b];
    for (const Scenario& scenario : scenarios_for(options, library)) {
      for (ScalingPoint& point : predict_scaling(scenario, clusters, library))
        points.push_back(std::move(point));
    }
  }
}

void run(const ScalingOptions& options, Library& library, std::ostream& out) {
  const Format format = format_of(options.output);
  const std::vector<Cluster> clusters = clusters_of(options);
  std::vector<ScalingPoint> points;
  for (const std::string& model : options.models) append(points, options, model, clusters, library);
  const Sheet sheet = scaling_sheet(points, library);
  write_output(options.output, out,
               [&](std::ostream& to) { write_sheets(to, std::span(&sheet, 1), format); });
}

}  // namespace

Command add_scaling(CLI::App& root) {
  const auto options = std::make_shared<ScalingOptions>();
  CLI::App* app = root.add_subcommand(
      "scaling",
      "throughput on several GPUs and machines, what the exchange of gradients costs, what to buy");
  app->add_option("models", options->models, "models, each with a framework behind ':' if one is meant")
      ->required();
  add_scenario_options(*app, *options);
  app->get_option("--batch")->description("samples in one iteration on one GPU; several as 8,16,32");
  app->add_option("--machine", options->machine,
                  "a machine of 'tbd-sim list machines', or a YAML file (default: a server of which only "
                  "--network is known)");
  app->add_option("--gpus", options->gpus, "GPUs in each machine (default 1,2,4,8)");
  app->add_option("--machines", options->machines, "machines (default 1)");
  app->add_option("--network", options->networks,
                  "between machines, several as ethernet_1g,infiniband_100g: a link, a file or a rate as "
                  "'25 Gbit/s'; of one machine how its GPUs are joined, as pcie3_host or nvlink");
  app->add_option("--exchange", options->method,
                  "how gradients are exchanged (default: the framework's way)");
  app->add_option("--gradients", options->gradients, "fp16 or fp32, as they are sent (default: as stored)");
  app->add_option("--compression", options->compression, "part of them that is sent, 0.01 to 1 (default 1)");
  add_output_options(*app, options->output);
  return {app,
          [options](Library& library, std::ostream& out, const Progress&) { run(*options, library, out); }};
}

}  // namespace tbdsim
