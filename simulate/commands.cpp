#include "simulate/commands.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <ostream>
#include <set>

#include <fmt/format.h>

#include "graphs/suite.h"
#include "hwspecs/base/csv.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "simulate/catalog_report.h"
#include "simulate/distinct_kernels.h"
#include "simulate/kernel_groups.h"
#include "simulate/model_report.h"
#include "simulate/predict_all.h"
#include "simulate/prediction_report.h"
#include "simulate/runs_table.h"
#include "simulate/spec_report.h"
#include "simulate/trace.h"
#include "simulate/validation.h"

namespace tbdsim {
namespace {

// A measuring plan is ordered by predicted time; without --gpu on this one, whose order serves others as
// well.
constexpr const char* kPlanOrderGpu = "a100_sxm_80gb";

constexpr const char* kSuite = "tbd";  // whose models are shown unless others are asked for

// The index of an option's value among the allowed ones; UsageError with "did you mean".
std::size_t choice(std::string_view option, const std::string& value,
                   const std::vector<std::string>& allowed) {
  const auto found = std::find(allowed.begin(), allowed.end(), value);
  if (found != allowed.end()) return static_cast<std::size_t>(found - allowed.begin());
  if (value.empty())
    throw UsageError(fmt::format("{}: says not of what; expected one of {}", option, joined(allowed)));
  throw UsageError(fmt::format("{}: {} is unknown; expected one of {}{}", option, in_quotes(value),
                               joined(allowed), did_you_mean(value, allowed)));
}

Format format_of(const Options& options, Format unless_said = Format::table) {
  if (options.format.empty()) return unless_said;
  return static_cast<Format>(choice("--format", options.format, {"table", "json", "csv"}));
}

// "4,16,64" -> its parts.
std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

std::int64_t whole_number(std::string_view option, const std::string& text, std::int64_t most) {
  const std::string expected = fmt::format("expected a whole number, 1 to {}", most);
  const auto number = parse_whole_number(text);
  if (!number) {
    throw UsageError(fmt::format("{}: {} is not a whole number; {}", option, in_quotes(text), expected));
  }
  if (*number < 1 || *number > most) {
    throw UsageError(fmt::format("{}: {} is out of range; {}", option, in_quotes(text), expected));
  }
  return *number;
}

// The batch, or 1 where --tokens says how many samples there are.
std::int64_t batch_of(const Options& options) {
  if (!options.tokens.empty()) {
    if (!options.batch.empty()) throw UsageError("--batch and --tokens are both given; expected one of them");
    if (options.model.empty() || options.model == "all") {
      throw UsageError("--tokens counts the steps of one model's sequences; expected a --model");
    }
    return 1;
  }
  if (options.batch.empty()) {
    throw UsageError(fmt::format("--batch is missing; expected a whole number, 1 to {}", kMostSamples));
  }
  return whole_number("--batch", options.batch, kMostSamples);
}

constexpr std::int64_t kLongestSide = 100'000;
constexpr std::int64_t kLongestSequence = 1'000'000;
constexpr std::int64_t kMostRegions = 1'000'000;

// "299" -> image_size or image_height and image_width, "600x800" -> those two.
Sizes image_sizes(const ModelFile& model, const std::string& text) {
  const std::size_t by = text.find('x');
  const std::int64_t height = whole_number("--image-size", text.substr(0, by), kLongestSide);
  const std::int64_t width =
      by == std::string::npos ? height : whole_number("--image-size", text.substr(by + 1), kLongestSide);
  if (has_size(model, "image_height")) return {{"image_height", height}, {"image_width", width}};
  if (height != width) {
    throw UsageError(fmt::format("--image-size: {} takes square images; expected one number", model.name));
  }
  return {{"image_size", height}};
}

// The sizes asked for. Of all models each takes what it has; one model must have what it is given.
Sizes sizes_for(const Options& options, const ModelFile& model) {
  Sizes asked;
  if (!options.seq_len.empty()) {
    asked[std::string(kLengthSize)] = whole_number("--seq-len", options.seq_len, kLongestSequence);
  }
  if (!options.image_size.empty()) asked.merge(image_sizes(model, options.image_size));
  if (!options.rois.empty()) asked["rois"] = whole_number("--rois", options.rois, kMostRegions);
  if (options.model.empty() || options.model == "all") {
    std::erase_if(asked, [&](const auto& size) { return !has_size(model, size.first); });
  }
  return asked;
}

void require_gpu(const Options& options) {
  if (options.gpu.empty())
    throw UsageError("--gpu is missing; expected a name ('tbd-sim list gpus') or a YAML file");
}

// Runs `write` on the output file, which then appears whole, or on `out`.
template <class Write>
void write_output(const Options& options, std::ostream& out, Write write) {
  if (options.output.empty()) {
    write(out);
    return;
  }
  AtomicFile file(options.output);
  write(file.stream());
  file.commit();
}

// The frameworks to predict a model for: the one asked for; else those that train the variant asked for or,
// of no variant in particular, any variant; else all there are, less their other versions.
std::vector<std::string> frameworks_for(const Options& options, const ModelFile& model, Library& library) {
  if (!options.framework.empty()) return {options.framework};
  std::vector<std::string> frameworks;
  for (const Variant& variant : model.variants) {
    if (!options.variant.empty() && &variant != &find_variant(model, options.variant, "")) continue;
    frameworks.insert(frameworks.end(), variant.frameworks.begin(), variant.frameworks.end());
  }
  if (!frameworks.empty()) return frameworks;
  frameworks = library.catalog().names(Kind::framework);
  std::erase_if(frameworks, [&](const std::string& name) { return library.framework(name).family != name; });
  return frameworks;
}

// The model asked for; else the suite's, or with "all" those of the whole catalogue.
std::vector<std::string> models_for(const Options& options, Library& library) {
  if (!options.model.empty() && options.model != "all") return {options.model};
  if (options.model == "all") return library.catalog().names(Kind::model);
  return read_suite(library.catalog().find(Kind::suite, kSuite)).models;
}

// Of many models those are shown that the framework asked for trains; it may be asked for as a file.
bool trains(const ModelFile& model, const std::string& framework) {
  if (framework.empty() || is_path(framework)) return true;
  return std::any_of(model.variants.begin(), model.variants.end(), [&](const Variant& variant) {
    return std::find(variant.frameworks.begin(), variant.frameworks.end(), framework) !=
           variant.frameworks.end();
  });
}

std::vector<Scenario> scenarios_for(const Options& options, Library& library) {
  require_gpu(options);
  const std::int64_t batch = batch_of(options);
  const bool named = !options.model.empty() && options.model != "all";
  std::vector<Scenario> scenarios;
  const std::vector<std::string> models = models_for(options, library);
  read_all(models, library);
  for (const std::string& model : models) {
    if (!named && !trains(library.model(model), options.framework)) continue;
    const Sizes sizes = sizes_for(options, library.model(model));
    for (const std::string& framework : frameworks_for(options, library.model(model), library)) {
      scenarios.push_back(
          {.model = model,
           .framework = framework,
           .gpu = options.gpu,
           .batch = batch,
           .tokens = options.tokens.empty() ? 0 : whole_number("--tokens", options.tokens, kMostSamples),
           .variant = options.variant,
           .precision = options.precision,
           .profile = options.profile,
           .dataset = options.dataset,
           .sizes = sizes});
    }
  }
  if (scenarios.empty()) {  // then the framework trains none, or is no framework
    (void)library.framework(options.framework);
    throw UsageError(
        fmt::format("{} trains none of the models; expected a --model with a --variant", options.framework));
  }
  return scenarios;
}

std::string unknown_name(const std::string& name, const Catalog& catalog) {
  std::vector<std::string> known;
  for (const KindInfo& info : kKinds) {
    const auto names = catalog.names(info.kind);
    known.insert(known.end(), names.begin(), names.end());
  }
  return "the catalogue has no " + in_quotes(name) + did_you_mean(name, known) +
         " ('tbd-sim list' names what it has; a path to a model's YAML file works too)";
}

// "modelled,roofline" -> those two; none given: all.
std::set<Provenance> provenances_of(const Options& options) {
  if (options.from.empty()) return {};
  if (options.unique || options.plan || !options.view.empty() || !options.below_average.empty()) {
    throw UsageError(
        "--from lists kernels one by one; expected no --unique, --plan, --by or --below-average beside it");
  }
  std::set<Provenance> from;
  for (const std::string& name : list_of(options.from)) {
    from.insert(
        static_cast<Provenance>(choice("--from", name, {kProvenanceNames.begin(), kProvenanceNames.end()})));
  }
  return from;
}

bool sums_kernels(const Options& options) {
  if (options.view.empty() && options.below_average.empty()) return false;
  if (options.unique || options.plan) {
    throw UsageError(
        "--by and --below-average sum the kernels of one iteration; expected no --unique or --plan beside "
        "them");
  }
  return true;
}

// Kernels summed as asked for: by name unless said.
Sheet summed_kernels(const Options& options, const Prediction& p) {
  const std::string by = options.view.empty() ? std::string(kKernelViewNames[0]) : options.view;
  const auto view =
      static_cast<KernelView>(choice("--by", by, {kKernelViewNames.begin(), kKernelViewNames.end()}));
  if (options.below_average.empty()) return kernel_group_sheet(p, view, kernel_groups(p, view));
  constexpr std::int64_t kMostGroups = 1'000'000;
  const std::int64_t most = whole_number("--below-average", options.below_average, kMostGroups);
  return kernel_group_sheet(p, view, below_average(p, view, static_cast<std::size_t>(most)));
}

std::string number_text(double value) { return fmt::format("{:.6g}", value); }

}  // namespace

void predict_command(const Options& options, Library& library, std::ostream& out) {
  const Format format = format_of(options);
  const std::vector<Prediction> predictions = predict_all(scenarios_for(options, library), library);
  write_output(options, out, [&](std::ostream& to) { write_predictions(to, predictions, format); });
}

void list_command(const Options& options, Library& library, std::ostream& out) {
  std::vector<std::string> names;
  for (const Listing& listing : listings()) names.emplace_back(listing.name);
  Sheet sheet = listings()[choice("list", options.list_of, names)].sheet(library);
  sheet.name = options.list_of;
  const Format format = format_of(options);
  write_output(options, out, [&](std::ostream& to) { write_sheets(to, std::span(&sheet, 1), format); });
}

// What is shown is a model's layers; of everything else its file.
void show_command(const Options& options, Library& library, std::ostream& out) {
  const Format format = format_of(options);
  const auto write = [&](const Sheet& sheet) {
    write_output(options, out, [&](std::ostream& to) { write_sheets(to, std::span(&sheet, 1), format); });
  };
  if (!is_path(options.model)) {
    const auto kind = kind_of(library.catalog(), options.model);
    if (!kind) throw UsageError(unknown_name(options.model, library.catalog()));
    if (*kind != Kind::model) {
      write(spec_sheet(library.catalog(), *kind, options.model));
      return;
    }
  }
  const ModelFile& file = library.model(options.model);
  const Variant& variant = find_variant(file, options.variant, options.framework);
  const Precision& precision = find_precision(options.precision);
  // Layers do not depend on the framework; their kernels do.
  const Model model = build_model(file, variant, sizes_for(options, file));
  const Lowering lowering =
      options.framework.empty() ? Lowering{} : library.framework(options.framework).lowering;
  write(layer_sheet(model, expand_training_step(model, lowering, precision), precision));
}

void kernels_command(const Options& options, Library& library, std::ostream& out) {
  const Format format = format_of(options);
  if (options.plan && !options.format.empty())
    throw UsageError("--plan writes CSV; expected no --format beside it");
  const std::set<Provenance> from = provenances_of(options);
  const bool summed = sums_kernels(options);
  std::vector<Prediction> predictions;
  for (const std::string& precision : list_of(options.precision)) {
    for (const std::string& batch : list_of(options.batch)) {
      Options one = options;
      one.precision = precision;
      one.batch = batch;
      if (options.plan && options.gpu.empty()) one.gpu = kPlanOrderGpu;
      for (Prediction& prediction : predict_all(scenarios_for(one, library), library))
        predictions.push_back(std::move(prediction));
    }
  }
  write_output(options, out, [&](std::ostream& to) {
    if (options.plan) {
      write_measuring_plan(to, distinct_kernels(predictions));
    } else if (options.unique) {
      const Sheet sheet = distinct_kernel_sheet(distinct_kernels(predictions));
      write_sheets(to, std::span(&sheet, 1), format);
    } else {
      std::vector<Sheet> sheets;
      for (const Prediction& prediction : predictions) {
        sheets.push_back(summed ? summed_kernels(options, prediction) : kernel_sheet(prediction, from));
      }
      write_sheets(to, sheets, format);
    }
  });
}

void trace_command(const Options& options, Library& library, std::ostream& out) {
  if (options.model.empty() || options.model == "all")
    throw UsageError("a trace is of one iteration; expected a model ('tbd-sim list models')");
  const std::vector<Scenario> scenarios = scenarios_for(options, library);
  if (scenarios.size() > 1) {
    std::vector<std::string> frameworks;
    for (const Scenario& scenario : scenarios) frameworks.push_back(scenario.framework);
    throw UsageError(fmt::format("a trace is of one iteration, {} is trained by {}; expected a --framework",
                                 options.model, joined(frameworks)));
  }
  const Prediction prediction = predict(scenarios[0], library);
  write_output(options, out, [&](std::ostream& to) { write_trace(to, prediction); });
}

void scenarios_command(const Options& options, Library& library, std::ostream& out,
                       const Progress& progress) {
  const Format format = format_of(options, Format::csv);
  std::ifstream in = open_input(options.scenarios);
  CsvReader reader(in, options.scenarios);
  const RunColumns columns(reader);
  std::vector<std::string> names = reader.columns();
  for (const char* added : {"predicted", "predicted_low", "predicted_high", "status"}) {
    if (reader.find_column(added)) {
      throw SpecError(reader.row_mark(),
                      fmt::format("column '{}' is there already; expected a table without it", added));
    }
    names.emplace_back(added);
  }
  if (!options.profile.empty())
    (void)library.profile(options.profile);  // a wrong profile is no matter of a row
  Sheet sheet;
  sheet.name = "rows";
  for (const std::string& name : names) sheet.columns.push_back({name, name});
  write_output(options, out, [&](std::ostream& to) {
    if (format == Format::csv) write_csv_row(to, names);
    std::size_t rows = 0;
    std::vector<std::string> row;
    while (reader.next(row)) {
      const RowPrediction p = predict_row(columns, row, library, options.profile);
      for (const double number : {p.predicted, p.interval.low, p.interval.high}) {
        row.push_back(p.ok() ? number_text(number) : "");
      }
      row.push_back(p.status);
      progress(++rows);
      if (format == Format::csv) {  // row by row, however long the table is
        write_csv_row(to, row);
      } else {
        std::vector<Cell>& cells = sheet.rows.emplace_back();
        for (const std::string& field : row) cells.push_back(text_cell(field));
      }
    }
    if (format != Format::csv) write_sheets(to, std::span(&sheet, 1), format);
  });
}

void validate_command(const Options& options, Library& library, std::ostream& out, const Progress& progress) {
  (void)choice("--by", options.by, {"group", "set", "gpu", "model", "framework"});
  const Format format = format_of(options);
  const Profile* profile = options.profile.empty() ? nullptr : &library.profile(options.profile);
  std::ifstream in = open_input(options.runs);
  const Sheet sheet = validation_sheet(
      validate_runs(in, options.runs, options.by, library, options.profile, progress), options.by, profile);
  write_output(options, out, [&](std::ostream& to) { write_sheets(to, std::span(&sheet, 1), format); });
}

}  // namespace tbdsim
