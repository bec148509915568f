#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/error.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/job/job_prediction.h"
#include "simulate/report/export/pipeline_trace.h"
#include "simulate/report/html/plan_page.h"
#include "simulate/report/plan_table.h"
#include "simulate/report/plan_target_table.h"

namespace tbdsim {
namespace {

struct PlanOptions {
  std::map<std::string, std::string, std::less<>> texts;  // by key of set_job()
  std::string table;                                      // rows to predict instead
  std::string file;                                       // with a job or its layout
  std::string trace;
  std::string html;
  std::string target;  // quality to train to; empty: none is asked for
  std::string epochs;  // to the target, instead of those that were measured
  std::vector<std::string> changes;
  bool helps = false;
  OutputOptions output;
};

JobRequest request_of(const PlanOptions& options) {
  JobRequest request;
  if (!options.file.empty()) read_job(request, options.file);
  for (const auto& [key, value] : options.texts) {
    if (!value.empty()) set_job(request, key, value);
  }
  return request;
}

std::vector<std::string> predict_row(JobRequest request, const std::vector<std::string>& columns,
                                     const std::vector<std::string>& row, SpecCache& specs) {
  std::vector<std::string> results(layout_result_columns().size());
  std::string status = "ok";
  try {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!row[i].empty() && is_job_key(columns[i])) set_job(request, columns[i], row[i]);
    }
    if (!request.layout) request.layout.emplace();
    const ResolvedJob job = resolve_job(request, specs);
    PieceTable pieces(job.inputs);
    results = layout_results(predict_job(job, pieces));
  } catch (const Error& wrong) {
    status = wrong.what();
  }
  std::vector<std::string> all = row;
  all.insert(all.end(), results.begin(), results.end());
  all.push_back(status);
  return all;
}

void run_table(const PlanOptions& options, SpecCache& specs, std::ostream& out, const Progress& progress) {
  const JobRequest common = request_of(options);
  std::ifstream in = open_input(options.table);
  CsvReader reader(in, options.table);
  std::vector<std::string> names = reader.columns();
  for (const std::string_view added : layout_result_columns()) names.emplace_back(added);
  names.emplace_back("status");
  write_output(options.output, out, [&](std::ostream& to) {
    write_csv_row(to, names);
    std::vector<std::string> row;
    std::size_t rows = 0;
    while (reader.next(row)) {
      write_csv_row(to, predict_row(common, reader.columns(), row, specs));
      progress(++rows);
    }
  });
}

// The metrics before and after changes of specs; of the best layout of each where none is given.
std::vector<Table> tables_of_changes(const JobRequest& request, const std::vector<std::string>& texts,
                                     SpecCache& specs) {
  SpecChanges changes;
  for (const std::string& text : texts) changes.push_back(parse_change(text));
  SpecCache changed(specs, changes);
  const ResolvedJob before = resolve_job(request, specs), after = resolve_job(request, changed);
  PieceTable pieces_before(before.inputs), pieces_after(after.inputs);
  return {changed_table(predict_job(before, pieces_before), predict_job(after, pieces_after), changes)};
}

// The step of the layout, or of the best one, with each number of the hardware larger.
std::vector<Table> tables_of_helps(const JobRequest& request, SpecCache& specs) {
  constexpr const char* kChange = "+10%";
  constexpr const char* kKeys[] = {
      "gpu.memory_bandwidth",  "gpu.boost_clock",        "gpu.sm_count",       "gpu.tdp",
      "link.nvlink.bandwidth", "link.network.bandwidth", "link.pcie.bandwidth"};
  const ResolvedJob job = resolve_job(request, specs);
  PieceTable pieces(job.inputs);
  const JobPrediction now = predict_job(job, pieces);
  std::vector<Help> helps;
  for (const char* key : kKeys) {
    SpecCache changed(specs, {parse_change(fmt::format("{}={}", key, kChange))});
    ResolvedJob better = resolve_job(request, changed);
    PieceTable pieces_of_better(better.inputs);
    helps.push_back({key, predict_layout(now.layout.layout, pieces_of_better, better.peak).step});
  }
  return {helps_table(now, std::move(helps), kChange)};
}

void write_trace(const std::string& file_name, const ResolvedJob& job, const LayoutPrediction& prediction) {
  AtomicFile file(file_name);
  write_pipeline_trace(file.stream(), prediction, job.inputs.job);
  file.commit();
}

void write_html(const std::string& file_name, const PlanPageData& data, const SpecCache& specs) {
  const PageAssets assets = read_page_assets(specs.catalog().data_dir());
  AtomicFile file(file_name);
  write_page(file.stream(), plan_page(data), assets);
  file.commit();
}

// Throws where the options ask for several sorts of output at once.
void require_one_output(const PlanOptions& options) {
  const bool pictures = !options.trace.empty() || !options.html.empty();
  const int sorts = static_cast<int>(!options.table.empty()) + static_cast<int>(options.helps) +
                    static_cast<int>(!options.changes.empty()) + static_cast<int>(pictures);
  if (sorts > 1)
    throw UsageError(
        "several outputs are asked for; expected --table, --what-helps, --set, or --trace and --html");
}

// The fewest of twice, four times, ... as many GPUs on which some layout of the same global batch fits.
std::optional<std::int64_t> gpus_that_fit(JobRequest request, SpecCache& specs) {
  constexpr std::int64_t kMostTimes = 1024;
  const std::int64_t now = request.job.gpus;
  for (std::int64_t times = 2; times <= kMostTimes && now <= kMostRanks / times; times *= 2) {
    request.job.gpus = now * times;
    try {
      const ResolvedJob job = resolve_job(request, specs);
      if (!best_layouts(layouts_of(job), job.inputs, job.peak, job.usable(), 1).best.empty())
        return request.job.gpus;
    } catch (const UsageError&) {  // more GPUs than the batch can be divided over, or than a network joins
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// Adds what would make the layout fit where it does not, else the largest micro-batch that does.
void add_fitting(std::vector<Table>& tables, const JobPrediction& shown, const JobRequest& request,
                 PieceTable& pieces, SpecCache& specs) {
  const ResolvedJob& job = *shown.job;
  const ParallelLayout& layout = shown.layout.layout;
  std::vector<std::string>& notes = tables.front().notes;
  if (shown.fits()) {
    if (job.layout)
      notes.push_back(
          fmt::format("The largest micro-batch that fits: {}.", largest_micro_batch(layout, job, pieces)));
    return;
  }
  if (!job.layout) {
    if (const auto gpus = gpus_that_fit(request, specs))
      notes.push_back(fmt::format("On {} GPUs there is a layout that fits.", *gpus));
    else
      notes.push_back("With twice, four times, ... as many GPUs none was found that fits.");
    return;
  }
  const std::vector<Remedy> remedies = what_would_fit(layout, job, pieces);
  if (remedies.empty())
    notes.push_back(
        "No change of one or two of its keys makes it fit; without keys of a layout all are searched.");
  else
    tables.push_back(remedies_table(remedies, job));
}

void run(const PlanOptions& options, SpecCache& specs, std::ostream& out, const Progress& progress) {
  require_one_output(options);
  if (!options.table.empty()) return run_table(options, specs, out, progress);
  const Format format = format_of(options.output);
  const JobRequest request = request_of(options);
  std::vector<Table> tables;
  if (options.helps) {
    tables = tables_of_helps(request, specs);
  } else if (!options.changes.empty()) {
    tables = tables_of_changes(request, options.changes, specs);
  } else {
    const ResolvedJob job = resolve_job(request, specs);
    PieceTable pieces(job.inputs);
    PlanPageData data{.job = &job};
    if (job.layout) {
      data.shown = predict_job(job, pieces);
      tables = layout_tables(data.shown);
    } else {
      data.plan = best_layouts(layouts_of(job), job.inputs, job.peak, job.usable());
      data.shown = with_interval(data.plan.best.empty() ? data.plan.smallest.at(0) : data.plan.best[0], job);
      tables = plan_tables(data.plan, job, format != Format::table);
    }
    add_fitting(tables, data.shown, request, pieces, specs);
    if (!options.target.empty()) {
      const std::span<const LayoutPrediction> shown =
          data.plan.best.empty() ? std::span(&data.shown.layout, 1) : std::span(data.plan.best);
      Convergence target = *specs.convergence(specs.model(request.model)->name, options.target);
      target.given_epochs = given_epochs(options.epochs);
      tables.push_back(plan_target_table(shown, job, target));
    }
    data.memory = memory_by_stage(data.shown.layout.layout, pieces);
    if (!options.trace.empty()) write_trace(options.trace, job, data.shown.layout);
    if (!options.html.empty()) write_html(options.html, data, specs);
  }
  write_output(options.output, out, [&](std::ostream& to) { write_tables(to, tables, format); });
}

}  // namespace

Command add_plan(CLI::App& root) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* app = root.add_subcommand(
      "plan", "the fastest ways to lay out the training of a decoder on many GPUs, or one of them in detail");
  for (const JobKey& key : job_keys()) {
    const std::string flag = key.group == JobKeyGroup::model ? std::string(key.name) : flag_of_key(key.name);
    CLI::Option* option = app->add_option(flag, options->texts[std::string(key.name)], std::string(key.help));
    if (key.group == JobKeyGroup::shape) option->group("Sizes of the decoder");
  }
  app->add_option("--layout", options->file,
                  "a YAML file with a layout, to predict instead of searching; or with any of these keys, as "
                  "gpus: 512; flags come after it");
  app->add_option(
         "--set", options->changes,
         "a key of a spec (gpu, link, machine) and its new value, as gpu.memory_bandwidth=+50%: metrics "
         "before and after, of the best layout of each")
      ->allow_extra_args(false);
  app->add_flag("--what-helps", options->helps,
                "the step with each number of the hardware a tenth larger, the most useful first");
  app->add_option(
      "--target", options->target,
      "of 'tbd-sim list targets': also time, cost and energy until a layout reaches it; usual: the "
      "model's usual one");
  app->add_option("--epochs", options->epochs, std::string(kEpochsHelp));
  app->add_option("--trace", options->trace,
                  "a file for ui.perfetto.dev, a thread for each stage of the layout");
  app->add_option("--html", options->html, "a page: stages over time, communication, memory, the front");
  app->add_option("--table", options->table, "a CSV of layouts to predict, a row each");
  add_output_options(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress& progress) {
            run(*options, specs, out, progress);
          },
          true};
}

}  // namespace tbdsim
