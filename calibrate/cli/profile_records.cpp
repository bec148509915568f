#include "calibrate/cli/profile_records.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "simulate/import/recognise.h"
#include "simulate/import/shaped_calls.h"

namespace tbdsim {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kLargest = 1'000'000'000;

struct TypeName {
  std::string_view traced;
  std::string_view record;
};
constexpr std::array kTypes{TypeName{"float", "fp32"}, TypeName{"c10::Half", "fp16"},
                            TypeName{"c10::BFloat16", "bf16"}};

// The reason why calls make no record, or what they have of a record.
struct Call {
  RecordShape shape;
  std::string op, phase, layout, left_out;
  const ShapedKernels* kernels = nullptr;
};

Call left_out_call(std::string reason) {
  Call call;
  call.left_out = std::move(reason);
  return call;
}

bool are_sizes(const Sizes& sizes, std::size_t count) {
  return sizes.size() == count &&
         std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 1 && size <= kLargest; });
}

// 'N' for a matrix whose rows lie one behind another, 'T' for one whose columns do; none for others.
std::optional<char> transpose_of(const Sizes& shape, const Sizes& strides) {
  const std::size_t last = shape.size() - 1;
  if (strides.size() != shape.size()) return std::nullopt;
  if (strides[last] == 1) return 'N';
  if (strides[last - 1] == 1) return 'T';
  return std::nullopt;
}

// y[rows x outputs] = x[rows x inner] w[inner x outputs]; cuBLAS computes y' = w' x', so that w comes first.
Call product(const ShapedCalls& calls, std::size_t x, bool batched, bool added) {
  const std::size_t sides = batched ? 3 : 2;
  if (calls.shapes.size() <= x + 1 || !are_sizes(calls.shapes[x], sides) ||
      !are_sizes(calls.shapes[x + 1], sides))
    return left_out_call("products of other than matrices");
  const Sizes &left = calls.shapes[x], &right = calls.shapes[x + 1];
  if (calls.strides.size() <= x + 1) return left_out_call("products without strides (PyTorch before 2.1)");
  const auto of_left = transpose_of(left, calls.strides[x]),
             of_right = transpose_of(right, calls.strides[x + 1]);
  if (!of_left || !of_right) return left_out_call("products of matrices with gaps");
  Call call;
  call.op = batched ? "batched_gemm" : "gemm";
  call.shape.batch = batched ? left[0] : 0;
  call.shape.m = right[sides - 1];
  call.shape.n = left[sides - 2];
  call.shape.k = left[sides - 1];
  call.layout = std::string{*of_right, *of_left};
  if (added) call.layout += '+';
  return call;
}

// "[1, 2]" -> 1 and 2; none for another text.
std::optional<std::array<std::int64_t, 2>> pair_of(const std::string& text) {
  std::array<std::int64_t, 2> pair{};
  int count = 0;
  return std::sscanf(text.c_str(), "[%ld, %ld]%n", &pair[0], &pair[1], &count) == 2 &&
                 static_cast<std::size_t>(count) == text.size()
             ? std::optional(pair)
             : std::nullopt;
}

// Places of a convolution's arguments among those of an operator.
struct ConvolutionArguments {
  std::size_t input, padding, stride, dilation;
};

// cudnn_convolution(input, weight, padding, stride, dilation, groups, benchmark, deterministic, allow_tf32)
constexpr ConvolutionArguments kForward = {.input = 0, .padding = 2, .stride = 3, .dilation = 4};
// convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed,
// output_padding, groups, output_mask)
constexpr ConvolutionArguments kBackward = {.input = 1, .padding = 5, .stride = 4, .dilation = 6};
constexpr std::size_t kTransposed = 7, kOutputMask = 10;

Call convolution(const ShapedCalls& calls, const ConvolutionArguments& at) {
  const std::size_t weight = at.input + 1;
  if (calls.shapes.size() <= weight || !are_sizes(calls.shapes[at.input], 4) ||
      !are_sizes(calls.shapes[weight], 4))
    return left_out_call("convolutions of other than images");
  const std::size_t last = std::max({at.padding, at.stride, at.dilation});
  if (calls.values.size() <= last || calls.strides.size() <= at.input)
    return left_out_call("convolutions without strides (PyTorch before 2.1)");
  const auto padding = pair_of(calls.values[at.padding]), stride = pair_of(calls.values[at.stride]),
             dilation = pair_of(calls.values[at.dilation]);
  if (!padding || !stride || !dilation)
    return left_out_call("convolutions without strides (PyTorch before 2.1)");
  const Sizes &input = calls.shapes[at.input], &filter = calls.shapes[weight];
  Call call;
  call.op = "conv";
  call.phase = "forward";
  RecordShape& shape = call.shape;
  shape.batch = input[0];
  shape.channels = input[1];
  shape.height = input[2];
  shape.width = input[3];
  shape.filters = filter[0];
  shape.filter_h = filter[2];
  shape.filter_w = filter[3];
  shape.pad_h = (*padding)[0];
  shape.pad_w = (*padding)[1];
  shape.stride_h = (*stride)[0];
  shape.stride_w = (*stride)[1];
  shape.dilation_h = (*dilation)[0];
  shape.dilation_w = (*dilation)[1];
  shape.groups = filter[1] > 0 ? input[1] / filter[1] : 0;
  const Sizes& strides = calls.strides[at.input];
  call.layout = strides.size() == 4 && strides[1] == 1 && input[1] > 1 ? "NHWC" : "NCHW";
  return call;
}

// A record for each gradient that the calls compute, by what the mask asks for, and by the kernels' names
// where it asks for both.
std::vector<Call> backward_convolutions(const ShapedCalls& calls) {
  Call call = convolution(calls, kBackward);
  if (!call.left_out.empty()) return {call};
  if (calls.values.size() <= kOutputMask || calls.values[kTransposed] != "False")
    return {left_out_call("transposed convolutions' gradients")};
  const std::string& mask = calls.values[kOutputMask];
  const bool data = mask.starts_with("[True"),
             weights = mask.starts_with("[True, True") || mask.starts_with("[False, True");
  const ShapedKernels &all = calls.kernels, &of_data = calls.data_gradient,
                      &of_weights = calls.weight_gradient;
  if (data && weights && of_data.count + of_weights.count != all.count)
    return {left_out_call("gradients of convolutions whose kernels' names do not tell of what")};
  std::vector<Call> both;
  if (data) {
    call.phase = "backward_data";
    call.kernels = weights ? &of_data : &all;
    both.push_back(call);
  }
  if (weights) {
    call.phase = "backward_weights";
    call.kernels = data ? &of_weights : &all;
    both.push_back(call);
  }
  return both;
}

std::vector<Call> calls_of(const ShapedCalls& calls) {
  if (calls.op == "aten::mm") return {product(calls, 0, false, false)};
  if (calls.op == "aten::bmm") return {product(calls, 0, true, false)};
  if (calls.op == "aten::addmm") return {product(calls, 1, false, true)};
  if (calls.op == "aten::cudnn_convolution") return {convolution(calls, kForward)};
  if (calls.op == "aten::convolution_backward") return backward_convolutions(calls);
  return {left_out_call("other operators")};
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// 1.4826 times the median distance from the median, over the median.
double spread_of(std::vector<double> values) {
  constexpr double kOfNormal = 1.4826;
  const double centre = median(values);
  for (double& value : values) value = std::abs(value - centre);
  return kOfNormal * median(std::move(values)) / centre;
}

std::string precision_of(const ShapedCalls& calls) {
  const std::size_t input = calls.op == "aten::addmm" ? 1 : 0;
  const auto* const found = calls.types.size() > input
                                ? std::ranges::find(kTypes, calls.types[input], &TypeName::traced)
                                : kTypes.end();
  if (found == kTypes.end()) return "";
  const bool tf32 = found->record == "fp32" && calls.kernels.longest.find("tf32") != std::string::npos;
  return std::string(tf32 ? "tf32" : found->record);
}

Record record_of(const Call& call, const ShapedKernels& kernels, int version) {
  Record record;
  record.generation = fmt::format("{}{}", call.op == "conv" ? "cudnn" : "cublas", version);
  record.op = call.op;
  record.phase = call.phase;
  record.shape = call.shape;
  record.layout = call.layout;
  record.cache = "unknown";
  record.time_s = median(kernels.seconds);
  record.spread = spread_of(kernels.seconds);
  record.samples = static_cast<std::int64_t>(kernels.seconds.size());
  record.timer = "cupti";
  record.kernel = kernels.longest;
  record.kernels = kernels.count;
  return record;
}

}  // namespace

bool is_profile(const std::filesystem::path& file) {
  const auto format = recognise(file);
  return format && info_of(*format).kind == ImportKind::kernels;
}

ImportSummary profile_records(const std::filesystem::path& file, const ProfileOptions& options,
                              const std::function<void(const Record&)>& on_record) {
  const FormatInfo& info = info_of(require_format(file));
  if (info.format != FileFormat::chrome_trace)
    throw UsageError(
        file.string() + ": " + std::string(info.title) +
        ", which has no shapes; expected a Chrome trace of torch.profiler.profile(record_shapes=True)");
  const ShapedTrace trace = read_shaped_trace(file);
  const std::string gpu = options.gpu.empty() ? trace.gpu : options.gpu;
  if (gpu.empty()) throw UsageError(file.string() + ": names no GPU; expected --gpu");
  const int cuda = options.cuda > 0 ? options.cuda : trace.cuda;
  ImportSummary summary{.source = std::string(info.title), .rows = 0, .records = 0, .notes = {}};
  std::map<std::string, std::int64_t> left_out;
  const auto version_of = [&](const Call& call) { return call.op == "conv" ? options.cudnn : cuda; };
  for (const ShapedCalls& calls : trace.calls) {
    ++summary.rows;
    for (Call& call : calls_of(calls)) {
      const std::string precision = precision_of(calls);
      if (call.left_out.empty() && version_of(call) == 0)
        call.left_out = call.op == "conv" ? "convolutions, without --cudnn" : "products, without --cuda";
      if (call.left_out.empty() && precision.empty()) call.left_out = "of types without a precision";
      if (!call.left_out.empty()) {
        ++left_out[call.left_out];
        continue;
      }
      Record record =
          record_of(call, call.kernels == nullptr ? calls.kernels : *call.kernels, version_of(call));
      record.gpu = gpu;
      record.precision = precision;
      record.source = file.filename().string();
      if (const auto why = implausible(record))
        throw SpecError({std::make_shared<const std::string>(file.string())}, *why);
      on_record(record);
      ++summary.records;
    }
  }
  for (const auto& [reason, count] : left_out)
    summary.notes.push_back(
        fmt::format("{}: {} shape{} left out: {}", file.string(), count, count == 1 ? "" : "s", reason));
  if (trace.without_shapes > 0)
    summary.notes.push_back(
        fmt::format("{}: {} kernels left out: no shapes", file.string(), trace.without_shapes));
  return summary;
}

}  // namespace tbdsim
