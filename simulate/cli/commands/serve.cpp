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
#include "simulate/serve/dropped_files.h"
#include "simulate/serve/http_server.h"
#include "simulate/serve/layout_report.h"
#include "simulate/serve/live_report.h"
#include "simulate/serve/spec_pool.h"
#include "simulate/workload/precision_choice.h"

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

// A model with the frameworks that train it and, where it was captured in one, its precision.
Json model_json(const std::string& name, const std::string& gpu, SpecCache& specs) {
  ScenarioOptions all;
  all.model = name;
  all.gpu = gpu;
  all.batch = "1";
  std::vector<std::string> frameworks;
  for (const Scenario& scenario : scenarios_for(all, specs)) frameworks.push_back(scenario.framework);
  const ModelFile& file = *specs.model(name);
  Json json{{"name", name}, {"title", file.title}, {"frameworks", frameworks}};
  if (file.captured) json["precision"] = precision_for(file, "").name;
  return json;
}

Json models_json(const Scenario& start, SpecCache& specs) {
  Json list = Json::array();
  for (const std::string& name : names_of(specs, Kind::model, start.model)) {
    Json model = model_json(name, start.gpu, specs);
    Json& frameworks = model["frameworks"];
    const bool known = std::find(frameworks.begin(), frameworks.end(), start.framework) != frameworks.end();
    if (name == start.model && !known) frameworks.push_back(start.framework);
    list.push_back(std::move(model));
  }
  return list;
}

Json gpu_json(const std::string& name, SpecCache& specs) {
  const GpuSpec& gpu = *specs.gpu(name);
  return {{"name", name},
          {"title", gpu.title},
          {"bandwidth", in_unit(gpu.memory_bandwidth, "GB/s")},
          {"sms", gpu.sm_count}};
}

Json gpus_json(const Scenario& start, SpecCache& specs) {
  Json list = Json::array();
  for (const std::string& name : names_of(specs, Kind::gpu, start.gpu)) list.push_back(gpu_json(name, specs));
  return list;
}

// The lists and the ranges of the sliders of assets/live.js, as JSON.
std::string controls_of(const Scenario& start, SpecCache& specs) {
  Json precisions = Json::array();
  for (const Precision& precision : kPrecisions) precisions.push_back(precision.name);
  precisions.push_back(kDefaultPrecision);
  return Json{{"models", models_json(start, specs)},
              {"most_bytes", HttpServer::kMostBodyBytes},
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

// Answers the page's requests:
//   GET /                    the page
//   GET /report?QUERY        live_report.h
//   GET /layouts             the page of a cluster's layouts
//   GET /layout?QUERY        layout_report.h
//   POST /file?name=NAME     takes the model or GPU in the body, and answers with its entry in the page's list
//   GET /file?name=NAME      the entry of one taken before
class Answers {
 public:
  Answers(Scenario start, SpecCache& specs)
      : start_(std::move(start)),
        page_(page_of(start_, specs)),
        layouts_page_(layouts_page_of(specs)),
        files_(files_of(start_)),
        pool_(specs.catalog(), files_),
        dropped_(specs.catalog()) {}

  HttpReply operator()(const HttpRequest& request) try {
    if (request.path == "/file") return file(request);
    if (request.posted) return error_reply(405, "'POST' is answered at /file alone; expected GET");
    if (request.path == "/") return {.type = "text/html; charset=utf-8", .body = page_};
    if (request.path == "/report") return report(request.parameters);
    if (request.path == "/layouts") return {.type = "text/html; charset=utf-8", .body = layouts_page_};
    if (request.path == "/layout") return layout(request.parameters);
    return error_reply(
        404, in_quotes(request.path) + " is not here; expected /, /report, /layouts, /layout or /file");
  } catch (const Error& wrong) {
    return error_reply(400, dropped_.with_names(wrong.what()));
  }

 private:
  HttpReply report(QueryParameters parameters) {
    for (auto& [key, value] : parameters) {
      if ((key == "model" || key == "gpu") && DroppedFiles::is_dropped(value))
        value = dropped_.find(value).path.string();
    }
    const LiveQuery query = read_query(parameters, start_);
    const std::string text = live_report(query, *pool_.specs_for(query.scenario));
    return {.body = std::make_shared<const std::string>(dropped_.with_names(text))};
  }

  HttpReply layout(const QueryParameters& parameters) {
    const JobRequest job = read_job_query(parameters);
    const auto specs = pool_.specs_for({.model = job.model, .gpu = job.gpu});
    return {.body = std::make_shared<const std::string>(layout_report(job, *specs))};
  }

  HttpReply file(const HttpRequest& request) {
    if (request.parameters.size() != 1 || request.parameters[0].first != "name")
      throw UsageError("/file: expected one parameter, name");
    const std::string& name = request.parameters[0].second;
    const DroppedFile file = request.posted ? dropped_.keep(name, request.body) : dropped_.find(name);
    try {
      const std::shared_ptr<SpecCache> specs =
          request.posted ? find_dropped() : pool_.specs_for(scenario_of(file));
      const std::string path = file.path.string();
      Json json = file.kind == Kind::gpu ? gpu_json(path, *specs) : model_json(path, start_.gpu, *specs);
      json["name"] = file.name;
      json["kind"] = file.kind == Kind::gpu ? "gpu" : "model";
      json["notes"] = file.notes;
      return {.body = std::make_shared<const std::string>(dropped_.with_names(json.dump()) + '\n')};
    } catch (const Error&) {
      dropped_.forget(file);
      throw;
    }
  }

  std::shared_ptr<SpecCache> find_dropped() {
    std::vector<std::string> files = dropped_.paths();
    files.insert(files.end(), files_.begin(), files_.end());
    return pool_.find_only(std::move(files));
  }

  [[nodiscard]] Scenario scenario_of(const DroppedFile& file) const {
    Scenario scenario = start_;
    (file.kind == Kind::gpu ? scenario.gpu : scenario.model) = file.path.string();
    return scenario;
  }

  Scenario start_;
  std::shared_ptr<const std::string> page_, layouts_page_;
  std::vector<std::string> files_;  // that the command line names
  SpecPool pool_;
  DroppedFiles dropped_;
};

void run(ServeOptions options, SpecCache& specs, std::ostream& out, const Progress& progress) {
  options.scenario = with_defaults(options.scenario);
  Answers answers(scenario_for(options.scenario, specs, "the page begins with one model on one framework"),
                  specs);
  const std::vector<std::string> hosts =
      options.hosts.empty() ? std::vector<std::string>{} : list_of(options.hosts);
  const HttpServer server({.address = options.address, .port = port_of(options.port), .hosts = hosts},
                          [&](const HttpRequest& request) { return answers(request); });
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
                  "one of 'tbd-sim list precisions', as bf16 or default (without it: as captured, or fp32)");
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
