#include "calibrate/cli/errors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <ostream>
#include <tuple>

#include <fmt/format.h>

#include "calibrate/samples/call_of_record.h"
#include "calibrate/samples/load_records.h"
#include "costmodel/calibration.h"
#include "costmodel/families/families.h"
#include "costmodel/families/physical_limit.h"
#include "costmodel/model_of_kernel.h"
#include "costmodel/profile/generation.h"
#include "costmodel/profile/profile.h"
#include "costmodel/residuals/residual_index.h"
#include "graphs/image_product.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/base/statistics.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/base/table.h"

namespace tbdsim {
namespace {

// A call's seconds: measured, and as the profile predicts them.
struct Compared {
  const Record* record;
  double predicted;

  [[nodiscard]] double ratio() const { return predicted / record->time_s; }
};

// The key of a line of the table: op, phase, precision, layout; "dense", "grouped" or "depthwise" of
// convolutions.
using Group = std::tuple<std::string, std::string, std::string, std::string, std::string>;

std::string groups_of(const Record& record) {
  const RecordShape& shape = record.shape;
  if (record.op != "conv") return "";
  if (shape.groups <= 1) return "dense";
  return shape.groups == shape.channels ? "depthwise" : "grouped";
}

Group group_of(const Record& r) { return {r.op, groups_of(r), r.phase, r.precision, r.layout}; }

// Seconds of a call by its family's block; none where the profile has no block.
template <class Family>
std::optional<double> seconds_of(const typename Family::Call& call, const Calibration& calibration,
                                 MathType math) {
  const FamilyModel& model = calibration.models[index_of_family<Family>()][index_of(math)];
  if (model.block == nullptr) return std::nullopt;
  const Estimate<Family> best =
      kernel_time<Family>(call, model.hardware, model.sustained, model.block->parameters);
  const auto* measured = model.residuals->find(Family::group(call));
  const double residual =
      measured == nullptr ? 0 : model.residuals->estimate(*measured, Family::features(call)).mean;
  const double limit =
      physical_limit(Family::executed(call, best.choice), Family::operand_bytes(call), model.hardware);
  return std::max(best.parts.total * std::exp(residual), limit);
}

std::optional<double> seconds_of(const Call& call, const Calibration& calibration, MathType math) {
  std::optional<double> seconds;
  for_each_family([&]<class Family>(FamilyTag<Family>) {
    const auto* mine = std::get_if<typename Family::Call>(&call);
    if (mine == nullptr || !gives_time<Family>(*mine, math, calibration)) return false;
    seconds = seconds_of<Family>(*mine, calibration, math);
    return true;
  });
  return seconds;
}

// True for a record of NCHW images that tensor cores convolve.
bool is_nchw_on_tensor_cores(const Record& record) {
  return record.layout == "NCHW" && record.precision != "fp32";
}

ConvShape shape_of(const ConvCall& call) {
  const auto whole = [](double size) { return static_cast<std::int64_t>(size); };
  return {.images = fixed_size(whole(call.images)),
          .channels = whole(call.channels),
          .height = whole(call.height),
          .width = whole(call.width),
          .filters = whole(call.filters),
          .out_height = whole(call.out_height),
          .out_width = whole(call.out_width),
          .kernel_height = whole(call.kernel_height),
          .kernel_width = whole(call.kernel_width),
          .stride_height = whole(call.stride_height),
          .stride_width = whole(call.stride_width),
          .pad_height = whole(call.pad_height),
          .pad_width = whole(call.pad_width),
          .groups = whole(call.groups)};
}

// The product by which a step computes a pass of a one-tap convolution of NCHW images in half precision
// (graphs/image_product.h); none for other calls.
std::optional<GemmCall> image_product(const Record& record, const ConvCall& call) {
  const bool by_image = is_nchw_on_tensor_cores(record) && is_image_product(shape_of(call));
  if (!by_image || !is_half(*math_of(record)) || call.phase == Phase::backward_weights) return std::nullopt;
  Kernel kernel;
  kernel.op = "conv_1x1";
  kernel.math = *math_of(record);
  return gemm_call(kernel, image_products(shape_of(call), call.phase), 1);
}

// Bytes of images that are copied to NHWC before a convolution on tensor cores, and back after it, as a
// step's kernels have them (graphs/layers/conv2d.cpp).
double copied_bytes(const Record& record, const ConvCall& call) {
  if (!is_nchw_on_tensor_cores(record) || call.groups > 1 || is_image_product(shape_of(call))) return 0;
  const double x = call.images * call.channels * call.height * call.width * call.element_bytes;
  const double y = call.images * call.filters * call.out_height * call.out_width * call.element_bytes;
  return x + y;
}

std::optional<double> prediction_of(const Record& record, const Calibration& calibration) {
  const auto call = call_of(record);
  const auto math = math_of(record);
  if (!call || !math) return std::nullopt;
  const auto* conv = std::get_if<ConvCall>(&*call);
  if (conv == nullptr) return seconds_of(*call, calibration, *math);
  if (const auto product = image_product(record, *conv))
    return seconds_of(Call(*product), calibration, *math);
  const double bytes = copied_bytes(record, *conv);
  auto seconds = seconds_of(*call, calibration, *math);
  if (seconds && bytes > 0) {
    const StreamCall copy{.kind = KernelKind::transpose,
                          .phase = conv->phase,
                          .columns = bytes / conv->element_bytes,
                          .read_bytes = bytes,
                          .written_bytes = bytes,
                          .element_bytes = conv->element_bytes};
    *seconds += seconds_of(copy, calibration, *math).value_or(0);
  }
  return seconds;
}

// The library versions that a GPU's records are of; PyTorch 2 stands for kernels of no library.
LibraryVersions libraries_of(const LoadedRecords& loaded, const std::string& gpu) {
  LibraryVersions versions{{"torch", 2}};
  for (const Record& record : loaded.records) {
    const auto [library, version] = generation_of(record.generation);
    if (record.gpu == gpu && version > 0) versions[library] = version;
  }
  return versions;
}

// The fastest record of each call, whatever its algorithm.
std::vector<const Record*> fastest_of(const std::vector<Record>& records) {
  std::map<std::string, const Record*> fastest;
  for (const Record& record : records) {
    const Record*& kept = fastest[record.gpu + '|' + record.generation + '|' + point_key(record)];
    if (kept == nullptr || record.time_s < kept->time_s) kept = &record;
  }
  std::vector<const Record*> found;
  for (const auto& [key, record] : fastest) found.push_back(record);
  return found;
}

Table table_of_groups(const std::vector<Compared>& calls) {
  std::map<Group, std::vector<double>> groups;  // of predicted / measured
  for (const Compared& call : calls) groups[group_of(*call.record)].push_back(call.ratio());
  Table table;
  table.name = "errors";
  table.preface = {
      "median and 90th percentile of |predicted / measured - 1|, median of predicted / measured - 1", ""};
  table.columns = {
      {"op", "op"},          {"groups", "groups"},     {"phase", "phase"},         {"precision", "prec."},
      {"layout", "layout"},  {"calls", "calls", true}, {"median", "median", true}, {"p90", "p90", true},
      {"bias", "bias", true}};
  for (auto& [group, ratios] : groups) {
    std::vector<double> errors;
    for (const double ratio : ratios) errors.push_back(std::abs(ratio - 1));
    std::ranges::sort(ratios);
    std::ranges::sort(errors);
    const auto& [op, kind, phase, precision, layout] = group;
    table.rows.push_back({text_cell(op), text_cell(kind), text_cell(phase), text_cell(precision),
                          text_cell(layout), count_cell(static_cast<double>(ratios.size())),
                          bare_percent_cell(quantile(errors, 0.5)), bare_percent_cell(quantile(errors, 0.9)),
                          signed_bare_percent_cell(quantile(ratios, 0.5) - 1)});
  }
  return table;
}

Table table_of_calls(const std::vector<Compared>& calls) {
  Table table;
  table.name = "calls";
  table.columns = {{"op", "op"},
                   {"groups", "groups"},
                   {"phase", "phase"},
                   {"precision", "prec."},
                   {"layout", "layout"},
                   {"shape", "shape"},
                   {"measured_us", "us", true},
                   {"predicted_us", "predicted", true}};
  for (const Compared& call : calls) {
    const auto& [op, kind, phase, precision, layout] = group_of(*call.record);
    constexpr double kMicro = 1e6;
    table.rows.push_back({text_cell(op), text_cell(kind), text_cell(phase), text_cell(precision),
                          text_cell(layout), text_cell(to_text(call.record->shape)),
                          text_cell(fmt::format("{:.2f}", call.record->time_s * kMicro)),
                          text_cell(fmt::format("{:.2f}", call.predicted * kMicro))});
  }
  return table;
}

}  // namespace

void errors_command(const ErrorsCommand& command, const ProgramContext& context) {
  constexpr std::string_view kFormats[] = {"table", "json", "csv"};
  const auto* const format = std::ranges::find(kFormats, command.format);
  if (format == std::end(kFormats)) {
    const std::vector<std::string> names(std::begin(kFormats), std::end(kFormats));
    throw UsageError("--format: " + in_quotes(command.format) + " is unknown; expected one of " +
                     joined(names) + did_you_mean(command.format, names));
  }
  std::optional<AtomicFile> file;
  if (!command.output.empty()) file.emplace(command.output);
  const Catalog catalog = Catalog::from(context.data_dir);
  const Profile profile = read_profile(catalog.find(Kind::profile, command.profile), catalog);
  const LoadedRecords loaded = load_records(command.files, catalog);
  std::map<std::string, Calibration> calibrations;
  for (const auto& [name, gpu] : loaded.gpus) {
    calibrations[name] =
        calibration_of(profile, gpu, libraries_of(loaded, name), {.pads_channels = PadsChannels::half});
  }
  std::vector<Compared> calls;
  for (const Record* record : fastest_of(loaded.records)) {
    if (const auto predicted = prediction_of(*record, calibrations.at(record->gpu)))
      calls.push_back({record, *predicted});
  }
  if (calls.empty()) throw UsageError("no record is of a kernel that the profile has a block for");
  Table table = command.each ? table_of_calls(calls) : table_of_groups(calls);
  table.notes = loaded.notes;
  write_tables(file ? file->stream() : context.out, std::span(&table, 1),
               static_cast<Format>(format - std::begin(kFormats)));
  if (file) file->commit();
}

}  // namespace tbdsim
