// `tbd-sim doctor`: what of tbd-sim is here, and what is missing.
#include <memory>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/gpu_spec.h"
#include "hwspecs/machine_spec.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/import/recognise.h"
#include "simulate/sweep/mpi_session.h"

namespace tbdsim {
namespace {

namespace fs = std::filesystem;

struct Finding {
  std::string part;
  bool there = true;
  std::string what;
};

// Names of a kind, and the first file of it that cannot be read.
Finding catalogue_of(const KindInfo& info, SpecCache& specs) {
  Finding finding{.part = std::string(info.plural), .there = true, .what = {}};
  const std::vector<std::string> names = specs.catalog().names(info.kind);
  try {
    for (const std::string& name : names) {
      if (info.kind == Kind::gpu) (void)specs.gpu(name);
      if (info.kind == Kind::machine)
        (void)read_machine(specs.catalog().find(info.kind, name), specs.catalog());
      if (info.kind == Kind::model) (void)specs.model(name);
      if (info.kind == Kind::framework) (void)specs.framework(name);
      if (info.kind == Kind::profile) (void)specs.profile(name);
    }
    finding.what = fmt::format("{} in {}", names.size(), specs.catalog().folder(info.kind).string());
    finding.there = !names.empty();
  } catch (const Error& wrong) {
    finding.there = false;
    finding.what = wrong.what();
  }
  return finding;
}

// GPUs whose own kernels were timed.
Finding measured_gpus(const Catalog& catalog) {
  std::vector<std::string> measured;
  for (const std::string& name : catalog.names(Kind::profile)) {
    if (catalog.contains(Kind::gpu, name)) measured.push_back(name);
  }
  return {"timed GPUs", !measured.empty(),
          fmt::format("{}; other GPUs take kernel times from the profile of their architecture",
                      joined(measured))};
}

Finding file_there(const std::string& part, const fs::path& path, const std::string& without) {
  std::error_code ignored;
  const bool there = fs::exists(path, ignored);
  return {part, there, there ? path.string() : without};
}

std::vector<Finding> examine(SpecCache& specs) {
  const Catalog& catalog = specs.catalog();
  const fs::path assets = catalog.data_dir() / "simulate/report/html/assets";
  std::vector<Finding> found = {{"program", true, "tbd-sim " TBDSIM_VERSION},
                                {"data", true, catalog.data_dir().string()},
                                {"cores", true, std::to_string(std::thread::hardware_concurrency())}};
  for (const KindInfo& info : kKinds) found.push_back(catalogue_of(info, specs));
  found.push_back(measured_gpus(catalog));
  found.push_back(file_there("measured runs", catalog.data_dir() / "simulate/validation/runs",
                             "no table of runs: 'validate' needs --runs"));
  found.push_back(
      file_there("charts of pages", assets / "plotly.min.js.gz",
                 "no Plotly: " + (assets / "get_plotly.sh").string() + " gets it, for 'report' and 'serve'"));
  found.push_back({"sweeps by MPI", built_with_ranks(),
                   built_with_ranks() ? "mpirun tbd-sim sweep ... shares the work"
                                      : "built without MPI (libopenmpi-dev): a sweep takes one machine"});
  found.push_back({"import", true, fmt::format("{} formats: 'tbd-sim import --help'", kFileFormats.size())});
  return found;
}

void run(const OutputOptions& output, SpecCache& specs, std::ostream& out) {
  const Format format = format_of(output);
  Table table;
  table.name = "parts";
  table.columns = {{"part", "part"}, {"there", "there"}, {"what", "what"}};
  int missing = 0;
  for (const Finding& finding : examine(specs)) {
    missing += !finding.there;
    table.rows.push_back({text_cell(finding.part), flag_cell(finding.there), text_cell(finding.what)});
  }
  table.notes = {missing == 0 ? "Everything is there."
                              : fmt::format("{} of these parts missing or damaged.", missing)};
  write_output(output, out, [&](std::ostream& to) { write_tables(to, std::span(&table, 1), format); });
}

}  // namespace

Command add_doctor(CLI::App& root) {
  const auto output = std::make_shared<OutputOptions>();
  CLI::App* app =
      root.add_subcommand("doctor", "what of tbd-sim is installed: data, profiles, optional parts");
  add_output_options(*app, *output);
  return {app, [output](SpecCache& specs, std::ostream& out, const Progress&) { run(*output, specs, out); }};
}

}  // namespace tbdsim
