#include <algorithm>
#include <memory>
#include <ostream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/suggest.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/report/html/page.h"
#include "simulate/serve/http_server.h"
#include "simulate/serve/layout_report.h"
#include "simulate/serve/live_report.h"
#include "simulate/serve/spec_pool.h"
#include "simulate/workload/captured_model.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostPort = 65'535;

struct ServeOptions {
  ScenarioOptions scenario;
  std::string port = "8080";
  std::string address = "127.0.0.1";
  std::string hosts;
};

int port_of(const std::string& text) {
  return text == "0" ? 0 : static_cast<int>(whole_number("--port", text, kMostPort));
}

// The catalogue's names; first the file that the command line gives, if any.
std::vector<std::string> names_of(const SpecCache& specs, Kind kind, const std::string& given) {
  std::vector<std::string> names = specs.catalog().names(kind);
  if (is_path(given)) names.insert(names.begin(), given);
  return names;
}

// Every model with the frameworks that train it.
Json models_json(const Scenario& start, SpecCache& specs) {
  Json list = Json::array();
  for (const std::string& name : names_of(specs, Kind::model, start.model)) {
    ScenarioOptions all;
    all.model = name;
    all.gpu = start.gpu;
    all.batch = "1";
    std::vector<std::string> frameworks;
    for (const Scenario& scenario : scenarios_for(all, specs)) frameworks.push_back(scenario.framework);
    const bool known = std::find(frameworks.begin(), frameworks.end(), start.framework) != frameworks.end();
    if (name == start.model && !known) frameworks.push_back(start.framework);
    list.push_back({{"name", name}, {"title", specs.model(name)->title}, {"frameworks", frameworks}});
  }
  return list;
}

Json gpus_json(const Scenario& start, SpecCache& specs) {
  Json list = Json::array();
  for (const std::string& name : names_of(specs, Kind::gpu, start.gpu)) {
    const GpuSpec& gpu = *specs.gpu(name);
    list.push_back({{"name", name},
                    {"title", gpu.title},
                    {"bandwidth", in_unit(gpu.memory_bandwidth, "GB/s")},
                    {"sms", gpu.sm_count}});
  }
  return list;
}

// The lists and the ranges of the sliders of assets/live.js, as JSON.
std::string controls_of(const Scenario& start, SpecCache& specs) {
  Json precisions = Json::array();
  for (const Precision& precision : kPrecisions) precisions.push_back(precision.name);
  return Json{{"models", models_json(start, specs)},
              {"gpus", gpus_json(start, specs)},
              {"precisions", precisions},
              {"start",
               {{"model", start.model},
                {"framework", start.framework},
                {"gpu", start.gpu},
                {"precision", std::string(precision_for(*specs.model(start.model), start.precision).name)},
                {"batch", start.batch}}}}
      .dump();
}

std::shared_ptr<const std::string> page_of(const Scenario& start, SpecCache& specs) {
  const Page page{
      .title = "Training, live",
      .summary = {"Everything here is predicted by tbd-sim " TBDSIM_VERSION ", nothing measured."},
      .controls = controls_of(start, specs)};
  std::ostringstream text;
  write_page(text, page, read_page_assets(specs.catalog().data_dir()));
  return std::make_shared<const std::string>(text.str());
}

std::shared_ptr<const std::string> layouts_page_of(const SpecCache& specs) {
  const Page page{
      .title = "Training on a cluster, live",
      .summary = {"Everything here is predicted by tbd-sim " TBDSIM_VERSION ", nothing measured."},
      .controls = layout_controls()};
  PageAssets assets = read_page_assets(specs.catalog().data_dir());
  assets.live = assets.layouts;
  std::ostringstream text;
  write_page(text, page, assets);
  return std::make_shared<const std::string>(text.str());
}

ScenarioOptions with_defaults(ScenarioOptions options) {
  if (options.model.empty()) options.model = "resnet50";
  if (options.framework.empty() && options.model == "resnet50") options.framework = "mxnet";
  if (options.gpu.empty()) options.gpu = "titanxp";
  if (options.batch.empty()) options.batch = "32";
  return options;
}

std::vector<std::string> files_of(const Scenario& scenario) {
  std::vector<std::string> files;
  for (const std::string& name : {scenario.model, scenario.framework, scenario.gpu}) {
    if (is_path(name)) files.push_back(name);
  }
  return files;
}

void run(ServeOptions options, SpecCache& specs, std::ostream& out, const Progress& progress) {
  options.scenario = with_defaults(options.scenario);
  const Scenario start =
      scenario_for(options.scenario, specs, "the page begins with one model on one framework");
  const auto page = page_of(start, specs), layouts_page = layouts_page_of(specs);
  SpecPool pool(specs.catalog().with_files_only(files_of(start)));
  const std::vector<std::string> hosts =
      options.hosts.empty() ? std::vector<std::string>{} : list_of(options.hosts);
  const HttpServer server(
      {.address = options.address, .port = port_of(options.port), .hosts = hosts},
      [&](const HttpRequest& request) -> HttpReply {
        if (request.path == "/") return {.type = "text/html; charset=utf-8", .body = page};
        if (request.path == "/layouts") return {.type = "text/html; charset=utf-8", .body = layouts_page};
        if (request.path == "/layout") {
          const JobRequest job = read_job_query(request.parameters);
          const auto known = pool.specs_for({.model = job.model, .gpu = job.gpu});
          return {.body = std::make_shared<const std::string>(layout_report(job, *known))};
        }
        if (request.path != "/report")
          return error_reply(404, in_quotes(request.path) +
                                      " is not here; expected /, /report, /layouts or "
                                      "/layout");
        const LiveQuery query = read_query(request.parameters, start);
        const auto known = pool.specs_for(query.scenario);
        return {.body = std::make_shared<const std::string>(live_report(query, *known))};
      });
  const bool ipv6 = options.address.find(':') != std::string::npos;
  out << fmt::format(fmt::runtime(ipv6 ? "http://[{}]:{}/" : "http://{}:{}/"), options.address, server.port())
      << "  (Ctrl-C ends it)\n"
      << std::flush;
  server.wait([&] { progress(0); });
}

}  // namespace

Command add_serve(CLI::App& root) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* app =
      root.add_subcommand("serve", "a page with sliders on this machine: move one, the prediction follows");
  app->add_option("--model", options->scenario.model,
                  "the model to begin with, or a YAML file (default resnet50)");
  ScenarioOptions& scenario = options->scenario;
  app->add_option("--framework", scenario.framework, "the framework to begin with");
  app->add_option("--variant", scenario.variant, "a variant of the model (default: the framework's)");
  app->add_option("--precision", scenario.precision,
                  "one of 'tbd-sim list precisions', as bf16 or fp8 (default: as captured, or fp32)");
  app->add_option("--gpu", scenario.gpu, "the GPU to begin with, or a YAML file (default titanxp)");
  app->add_option("--batch", scenario.batch, "samples in one iteration on one GPU (default 32)");
  add_input_options(*app, scenario.input);
  app->add_option("--port", options->port, "where to listen (default 8080; 0: a free one)");
  app->add_option("--address", options->address,
                  "address of this machine to listen on (default 127.0.0.1, which no other machine reaches; "
                  "0.0.0.0: all)");
  app->add_option("--host", options->hosts,
                  "further names by which browsers call this machine, as lab7,lab7.example.org");
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress& progress) {
            run(*options, specs, out, progress);
          },
          true};
}

}  // namespace tbdsim
