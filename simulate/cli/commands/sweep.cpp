#include <algorithm>
#include <memory>
#include <ostream>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/job/job_request.h"
#include "simulate/sweep/mpi_session.h"
#include "simulate/sweep/resumable_file.h"
#include "simulate/sweep/sweep_spec.h"

namespace tbdsim {
namespace {

struct SweepFlag {
  const char* flag;  // null: flag_of_key()
  const char* key;
  const char* help;
};
constexpr SweepFlag kFlags[] = {
    {"--model", "model",
     "one or several: resnet50,inception_v3, or all; a path with a comma in double quotes: "
     "'\"a,b.yaml\",resnet50'"},
    {"--framework", "framework", "one or several, or all; rows say where one does not train the model"},
    {"--variant", "variant", "variants of the model (default: the framework's)"},
    {"--precision", "precision", "of 'tbd-sim list precisions' (without it: as captured, or fp32)"},
    {"--dataset", "dataset", "data sets, or YAML files"},
    {"--profile", "profile", "sources of kernel times"},
    {"--target", "target",
     "of 'tbd-sim list targets', for metrics as time_to_target (default: the model's usual one)"},
    {"--seq-len", "sequence_length", "steps of every sequence: 10:100:10"},
    {"--image-size", "image_size", "pixels of every square image"},
    {"--rois", "rois", "regions of interest in every image"},
    {"--gpu", "gpu", "one or several: titanxp,p4000, or all"},
    {"--batch", "batch", "samples of an iteration: 8,16,32 or 1:200 or 1:512:x2"},
    {"--tokens", "tokens", "instead of --batch"},
    {"--input", "input", "synthetic, real (default: as the framework's runs)"},
    {"--input-workers", "input_workers", "that decode samples on a machine, 0 (the training loop): 1:16"},
    {"--input-time", "input_time", "of one worker for a sample: 1ms:10ms:1ms (default: the data set's)"},
    {"--input-bytes", "input_bytes", "of a sample in storage: 110kB (default: the data set's)"},
    {"--host-cores", "host.cores", "of a machine: 4:64:4 (default: the --machine's)"},
    {"--host-storage", "host.storage",
     "at which a machine reads samples: 100MB/s:1GB/s:100MB/s (default: from memory)"},
    {"--host-copies", "host.copies",
     "of batches to the GPU: overlapped, pinned, pageable (default: uncounted)"},
    {"--machine", "machine", "machines of 'tbd-sim list machines'; without --gpu with their own GPUs"},
    {"--gpus", "gpus", "GPUs in each machine: 1,2,4,8"},
    {"--machines", "machines", "machines: 1:16"},
    {"--network", "network",
     "between machines: ethernet_1g,infiniband_100g or 1Gbit/s:100Gbit/s:1Gbit/s; of GPUs in one: "
     "pcie3_host, ..."},
    {"--exchange", "exchange", "how gradients are exchanged (default: the framework's way)"},
    {"--gradients", "gradients", "fp16, fp32, as they are sent (default: as stored)"},
    {"--compression", "compression", "part of them that is sent: 1,0.1,0.01"},
};

// A flag for each key of a job that no flag above has: with --global-batch the sweep is one of layouts. What
// `plan` calls --shard is --layout-shard here, where --shard is a part of the points.
std::vector<SweepFlag> layout_flags() {
  std::vector<SweepFlag> flags;
  for (const JobKey& key : job_keys()) {
    const bool known = key.name == "seq_len" || key.group == JobKeyGroup::shape ||
                       std::any_of(std::begin(kFlags), std::end(kFlags),
                                   [&](const SweepFlag& flag) { return flag.key == key.name; });
    if (!known)
      flags.push_back({key.name == "shard" ? "--layout-shard" : nullptr, key.name.data(), key.help.data()});
  }
  return flags;
}

struct Flags {
  std::string file;
  std::vector<SweepFlag> layout_flags = tbdsim::layout_flags();
  std::vector<std::string> layout_values = std::vector<std::string>(layout_flags.size());
  std::vector<std::string> values = std::vector<std::string>(std::size(kFlags));
  std::vector<std::string> changes;
  SweepOptions chosen;
  std::string shard;
  OutputOptions output;
};

SweepOptions options_of(const Flags& flags) {
  SweepOptions options = flags.file.empty() ? SweepOptions{} : read_sweep(flags.file);
  for (std::size_t i = 0; i < flags.values.size(); ++i) {
    if (!flags.values[i].empty()) options.axes.emplace_back(kFlags[i].key, flags.values[i]);
  }
  for (std::size_t i = 0; i < flags.layout_values.size(); ++i) {
    if (!flags.layout_values[i].empty())
      options.axes.emplace_back(flags.layout_flags[i].key, flags.layout_values[i]);
  }
  for (const std::string& change : flags.changes) {
    const SpecChange parsed = parse_change(change);
    options.axes.emplace_back(key_text(parsed), parsed.value);
  }
  const auto replace = [](std::string& value, const std::string& given) {
    if (!given.empty()) value = given;
  };
  replace(options.metrics, flags.chosen.metrics);
  replace(options.best, flags.chosen.best);
  replace(options.pareto, flags.chosen.pareto);
  replace(options.per, flags.chosen.per);
  options.where.insert(options.where.end(), flags.chosen.where.begin(), flags.chosen.where.end());
  return options;
}

RowFormat row_format(const OutputOptions& output) {
  if (output.file.ends_with(".parquet"))
    throw UsageError(
        "-o " + in_quotes(output.file) +
        ": rows are written as CSV or JSON lines; expected a file as x.csv (the Python package writes "
        "Parquet: tbdsim.sweep(...).to_parquet(\"x.parquet\"))");
  if (output.format.empty()) return RowFormat::csv;
  return static_cast<RowFormat>(choice("--format", output.format, {"csv", "jsonl"}));
}

using Rows = std::vector<SweepRow>;

std::string text_of(const Rows& rows) {
  std::string text;
  for (const SweepRow& row : rows) text += row.line;
  return text;
}

// The few rows that are chosen, when all points have been seen.
void run_choosing(const Flags& flags, SweepRun& run, SpecCache& specs, std::ostream& out,
                  const Progress& progress) {
  ChosenRows chosen;
  run.take = [&](Rows rows, std::int64_t first) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      chosen.add(std::move(rows[i]), first + static_cast<std::int64_t>(i));
    progress(static_cast<std::size_t>(first - run.first) + rows.size(),
             static_cast<std::size_t>(run.end - run.first));
  };
  run_sweep(run, specs);
  if (ranks().rank > 0) return;
  const std::vector<std::string> lines = chosen.lines();
  const bool whole = flags.shard.empty();  // another part of the points may have what this one has not
  if (lines.empty() && whole && !run.choosing.by.empty())
    throw UsageError("no point can be chosen: " + chosen.why_not());
  write_output(flags.output, out, [&](std::ostream& to) {
    to << header_line(run.sweep, run.format);
    for (const std::string& line : lines) to << line;
  });
  if (const std::string silent = chosen.why_not(kNoValue); !silent.empty())
    progress.note("left out of the choice: " + silent);
}

// The first rank alone shows progress.
std::int64_t shared_from_first(std::int64_t done) {
  const Ranks here = ranks();
  if (here.rank > 0) return std::stoll(receive(0));
  for (int other = 1; other < here.count; ++other) send(other, std::to_string(done));
  return done;
}

void run_all(const Flags& flags, SweepRun& run, SpecCache& specs, std::ostream& out,
             const Progress& progress) {
  std::unique_ptr<SweepFile> file;
  const std::string header = header_line(run.sweep, run.format);
  const std::int64_t begin = run.first;
  std::int64_t done = 0;
  if (ranks().rank == 0) {
    if (!flags.output.file.empty()) {
      const std::int64_t headers = header.empty() ? 0 : 1;
      const auto is_line = [&](std::int64_t index, std::string_view line) {
        if (index < headers) return line == header;
        const std::int64_t point = begin + index - headers;
        return point < run.end && is_row_of(run.sweep, point, run.format, line);
      };
      file = std::make_unique<SweepFile>(flags.output.file, description(run, specs.catalog()), is_line);
    }
    const bool started = file && file->lines() > 0;
    if (!started) file ? file->append(header) : static_cast<void>(out << header);
    if (file) done = file->lines() - (header.empty() ? 0 : 1);
  }
  run.first = begin + shared_from_first(done);
  run.take = [&](const Rows& rows, std::int64_t first) {
    file ? file->append(text_of(rows)) : static_cast<void>(out << text_of(rows));
    progress(static_cast<std::size_t>(first - begin) + rows.size(),
             static_cast<std::size_t>(run.end - begin));
  };
  run_sweep(run, specs);
  if (file) file->commit();
}

void run(const Flags& flags, SpecCache& specs, std::ostream& out, const Progress& progress) {
  SweepRun run = sweep_run(options_of(flags), row_format(flags.output), specs);
  if (!flags.shard.empty()) limit_to(parse_shard(flags.shard), run);
  if (run.choosing.chooses()) {
    run_choosing(flags, run, specs, out, progress);
  } else {
    run_all(flags, run, specs, out, progress);
  }
}

}  // namespace

Command add_sweep(CLI::App& root) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app = root.add_subcommand(
      "sweep", "every combination of models, GPUs, batches, ... and changed specs, a row each");
  app->add_option("file", flags->file, "the sweep in YAML; flags add to it");
  for (std::size_t i = 0; i < std::size(kFlags); ++i)
    app->add_option(kFlags[i].flag, flags->values[i], kFlags[i].help);
  for (std::size_t i = 0; i < flags->layout_flags.size(); ++i) {
    const SweepFlag& flag = flags->layout_flags[i];
    app->add_option(flag.flag != nullptr ? flag.flag : flag_of_key(flag.key), flags->layout_values[i],
                    flag.help)
        ->group("Layouts of jobs on clusters as 'tbd-sim plan', where --global-batch is given");
  }
  app->add_option("--set", flags->changes,
                  "a key of a spec (gpu, link, machine, cpu, framework, model, dataset) and its values: "
                  "gpu.memory_bandwidth=100GB/s:900GB/s:50GB/s or gpu.sm_count=+10%,+20%")
      ->allow_extra_args(false);
  app->add_option("--metrics", flags->chosen.metrics, "columns, of 'tbd-sim list metrics'");
  app->add_option("--best", flags->chosen.best, "only the point best in this metric, of those that fit");
  app->add_option("--pareto", flags->chosen.pareto,
                  "only points that no other beats in all of these metrics, and has less of these axes: "
                  "throughput,gpu.sm_count");
  app->add_option("--per", flags->chosen.per, "such a choice for each value of these axes: gpu");
  app->add_option("--where", flags->chosen.where,
                  "only points within a bound: 'throughput>=1000', 'epoch_time<=2 h'")
      ->allow_extra_args(false);
  app->add_option("--shard", flags->shard, "one part of the points, 1/4 to 4/4, for job arrays");
  app->add_option("--format", flags->output.format, "csv or jsonl (default csv)");
  add_output_file(*app, flags->output);
  return {app,
          [flags](SpecCache& specs, std::ostream& out, const Progress& progress) {
            run(*flags, specs, out, progress);
          },
          true};
}

}  // namespace tbdsim
