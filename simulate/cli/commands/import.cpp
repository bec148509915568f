// `tbd-sim import`: files that people have become files that tbd-sim reads.
#include <filesystem>
#include <map>
#include <memory>
#include <ostream>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/machine_spec.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/import/gpu_file.h"
#include "simulate/import/machine_file.h"
#include "simulate/import/measured_run.h"
#include "simulate/import/read_network.h"
#include "simulate/import/recognise.h"
#include "simulate/import/traced_step.h"
#include "simulate/import/unpacked_file.h"
#include "simulate/report/measured_tables.h"

namespace tbdsim {
namespace {

constexpr std::uintmax_t kLargestText = std::uintmax_t{1} << 26U;  // 64 MiB

struct ImportOptions {
  std::vector<std::string> files;
  std::string folder;
  std::string gpu;
  std::vector<std::string> set;
};

GivenValues given_values(const std::vector<std::string>& set) {
  GivenValues values;
  for (const std::string& text : set) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
      throw UsageError(fmt::format("--set {}: no value; expected KEY=VALUE as tdp=250W", in_quotes(text)));
    if (!values.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
      throw UsageError(
          fmt::format("--set {}: given twice; expected it once", in_quotes(text.substr(0, equals))));
  }
  return values;
}

MachineFacts read_machine_facts(FileFormat format, const std::string& text, const std::string& file) {
  switch (format) {
    case FileFormat::topology_matrix:
      return read_topology_matrix(text, file);
    case FileFormat::lspci_tree:
      return read_lspci_tree(text, file);
    default:
      return read_hwloc_xml(text, file);
  }
}

// Writes into the folder, or to `out` with the notes as comments, and reads the file back as tbd-sim will.
class Writer {
 public:
  Writer(const std::string& folder, std::ostream& out) : folder_(folder), out_(out) {
    if (folder_.empty()) return;
    std::error_code wrong;
    std::filesystem::create_directories(folder_, wrong);
    if (wrong) throw UsageError(fmt::format("{}: cannot be made: {}", folder_, wrong.message()));
  }

  void say(const std::string& line) { out_ << (folder_.empty() ? "# " : "") << line << '\n'; }

  // The path of the file, as it was written.
  std::string write(const ImportedFile& file) {
    for (const std::string& note : file.notes) say("  " + note);
    if (folder_.empty()) {
      out_ << file.text;
      return "";
    }
    const std::filesystem::path path = std::filesystem::path(folder_) / (file.name + file.extension);
    if (!written_.insert(path.string()).second)
      throw UsageError(path.string() +
                       ": two of the files would have this name; expected one of them at a time");
    AtomicFile to(path);
    to.stream() << file.text;
    to.commit();
    say("  wrote " + path.string());
    return path.string();
  }

 private:
  std::string folder_;
  std::ostream& out_;
  std::set<std::string> written_;
};

struct Imports {
  std::map<std::string, std::pair<GpuFacts, std::string>> gpus;  // by name, with the files that name it
  std::vector<std::pair<MachineFacts, std::string>> machines;
  std::vector<std::string> traces;  // execution traces, of two batches
};

void note_gpus(std::vector<GpuFacts> all, const std::string& file, Imports& imports) {
  for (GpuFacts& facts : all) {
    const auto found = imports.gpus.find(facts.name);
    if (found == imports.gpus.end()) {
      const std::string name = facts.name;
      imports.gpus.emplace(name, std::pair(std::move(facts), file));
      continue;
    }
    auto& [before, files] = found->second;
    if (files.find(file) == std::string::npos) files += " and " + file;
    before = merged(std::move(before), facts);
  }
}

void write_step(const std::vector<std::string>& traces, Writer& writer, SpecCache& specs) {
  if (traces.empty()) return;
  if (traces.size() != 2)
    throw UsageError(fmt::format(
        "{}: {}; expected two execution traces of one step, at two batches: they say how sizes grow "
        "with the batch",
        traces.front(), traces.size() == 1 ? "is one trace" : "and others are more than two"));
  const std::string path =
      writer.write(traced_step(read_execution_trace(traces[0]), read_execution_trace(traces[1])));
  if (!path.empty()) (void)specs.model(path);
}

void run(const ImportOptions& options, SpecCache& specs, std::ostream& out) {
  const GivenValues given = given_values(options.set);
  const Catalog& catalog = specs.catalog();
  Writer writer(options.folder, out);
  Imports imports;
  bool networks = false;
  for (const std::string& file : options.files) {
    const FormatInfo& info = info_of(require_format(file));
    const std::string name = std::filesystem::path(file).filename().string();
    writer.say(fmt::format("{}: {}", file, info.title));
    if (info.kind == ImportKind::gpu)
      note_gpus(read_gpu_facts(info.format, unpacked_text(file, kLargestText), name), name, imports);
    if (info.kind == ImportKind::machine)
      imports.machines.emplace_back(read_machine_facts(info.format, unpacked_text(file, kLargestText), name),
                                    name);
    if (info.kind == ImportKind::model) {
      networks = true;
      const ImportedFile network = read_network(info.format, file, given);
      const std::string path = writer.write(network);
      if (!path.empty()) (void)specs.model(path);
    }
    if (info.kind == ImportKind::step) imports.traces.push_back(file);
    if (info.kind == ImportKind::kernels) {
      const Table table = measured_kernel_table(read_measured_run(file));
      if (options.folder.empty()) {
        write_tables(out, std::span(&table, 1), Format::table);
        continue;
      }
      const auto path = std::filesystem::path(options.folder) / (name + ".kernels.csv");
      AtomicFile to(path);
      write_tables(to.stream(), std::span(&table, 1), Format::csv);
      to.commit();
      writer.say("  wrote " + path.string());
    }
  }
  if (!given.empty() && imports.gpus.empty() && imports.machines.empty() && !networks)
    throw UsageError("--set: none of the files becomes a GPU, a machine or a model; expected one that does");
  write_step(imports.traces, writer, specs);
  std::string gpu = options.gpu;
  for (const auto& [name, facts] : imports.gpus) {
    const std::string path = writer.write(gpu_file(facts.first, facts.second, given, catalog));
    if (!path.empty()) {
      (void)read_gpu(path, catalog);
      if (gpu.empty() && !imports.machines.empty()) gpu = std::filesystem::absolute(path).string();
    }
  }
  for (const auto& [facts, file] : imports.machines) {
    const std::string path =
        writer.write(machine_file(facts, file, gpu, imports.gpus.empty() ? given : GivenValues{}, catalog));
    if (!path.empty()) (void)read_machine(path, catalog);
  }
}

}  // namespace

Command add_import(CLI::App& root) {
  const auto options = std::make_shared<ImportOptions>();
  CLI::App* app = root.add_subcommand(
      "import",
      "files that you have (deviceQuery, nvidia-smi, lspci, hwloc, profiles, ONNX) as files of tbd-sim");
  app->add_option("files", options->files,
                  "files of any format that 'tbd-sim import' knows; several of one GPU add up")
      ->required();
  app->add_option("-o,--output", options->folder, "write into this folder (default: to standard output)");
  app->add_option("--gpu", options->gpu, "the GPU of a machine whose file does not name it, or a YAML file");
  app->add_option("--set", options->set, "what the files do not say, as tdp=250W; more than once")
      ->allow_extra_args(false);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
