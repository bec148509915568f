#include "calibrate/measure/run/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "calibrate/measure/plan/op_table.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim::measure {
namespace {
const std::vector<std::string> kOptions{"-o",          "--output",  "--plan",     "--only",
                                        "--precision", "--minutes", "--device",   "--seed",
                                        "--no-cupti",  "--dry-run", "--list-ops", "--write-plan",
                                        "--self-test", "--help",    "-h",         "--version"};

template <class Number>
Number number(const std::string& option, const std::string& text, Number least, const char* expected) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc{} || rest != end || !(value >= least) ||
      !std::isfinite(static_cast<double>(value))) {
    throw UsageError(option + ": " + in_quotes(text) + "; expected " + expected);
  }
  return value;
}

void check_name(const std::string& option, const std::string& name, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw UsageError(option + ": unknown name " + in_quotes(name) + did_you_mean(name, known) +
                   "; expected one of: " + joined(known));
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpSpec& op : op_table()) names.push_back(op.name);
  return names;
}

// Sets an option that has no value; false when there is no such one.
bool set_flag(Options& options, const std::string& option) {
  bool* flag = option == "--dry-run"                  ? &options.dry_run
               : option == "--list-ops"               ? &options.list_ops
               : option == "--write-plan"             ? &options.write_plan
               : option == "--self-test"              ? &options.self_test
               : option == "--no-cupti"               ? &options.no_cupti
               : option == "--version"                ? &options.version
               : option == "--help" || option == "-h" ? &options.help
                                                      : nullptr;
  if (flag != nullptr) *flag = true;
  return flag != nullptr;
}

void set_value(Options& options, const std::string& option, const std::string& value) {
  if (option == "-o" || option == "--output") {
    options.output = value;
  } else if (option == "--plan") {
    options.plan = value;
  } else if (option == "--only") {
    check_name(option, value, op_names());
    options.only.push_back(value);
  } else if (option == "--precision") {
    check_name(option, value, {"fp32", "tf32", "fp16", "bf16"});
    options.precisions.push_back(value);
  } else if (option == "--minutes") {
    options.minutes = number<double>(option, value, 0.01, "minutes, 0.01 or more");
  } else if (option == "--device") {
    options.device = number<int>(option, value, 0, "a device number, 0 or more");
  } else {
    options.seed = number<std::uint64_t>(option, value, 0, "a whole number, 0 or more");
  }
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text.empty() ? "-" : text;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}
}  // namespace

Options parse_options(std::span<const std::string> arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string option = arguments[i];
    if (set_flag(options, option)) continue;
    const std::size_t equals = option.starts_with("--") ? option.find('=') : std::string::npos;
    const bool joined_value = equals != std::string::npos;
    std::string value = joined_value ? option.substr(equals + 1) : "";
    if (joined_value) option.resize(equals);
    if (std::find(kOptions.begin(), kOptions.end(), option) == kOptions.end() || set_flag(options, option)) {
      throw UsageError("unknown option " + in_quotes(arguments[i]) + did_you_mean(option, kOptions) +
                       "; see --help");
    }
    if (!joined_value && i + 1 == arguments.size())
      throw UsageError(option + ": its value is missing; see --help");
    set_value(options, option, joined_value ? value : arguments[++i]);
  }
  const bool measures = !options.self_test && !options.dry_run && !options.list_ops && !options.write_plan &&
                        !options.help && !options.version;
  if (measures && options.output.empty())
    throw UsageError("no output file; expected -o FILE.csv (see --help)");
  return options;
}

std::string usage() {
  return "usage: tbd-measure -o FILE.csv [options]\n"
         "Times the kernels of DNN training on one NVIDIA GPU and appends a record per kernel to FILE.csv.\n"
         "The same command continues a run that was interrupted.\n\n"
         "  -o, --output FILE   where the records go (created or continued)\n"
         "  --minutes N         stop in time; the most valuable points come first\n"
         "  --plan FILE.csv     what to measure; default: a built-in plan\n"
         "  --only OP           only this op (repeatable); names: --list-ops\n"
         "  --precision P       only this precision (repeatable): fp32, tf32, fp16, bf16\n"
         "  --device N          which GPU, as CUDA counts them (default 0)\n"
         "  --seed N            of the order and the random inputs (default 1)\n"
         "  --no-cupti          time with CUDA events only\n"
         "  --dry-run           print the ordered plan with estimated seconds; needs no device\n"
         "  --write-plan        print the plan as CSV for --plan; needs no device\n"
         "  --self-test         check the program's own kernels and timing on this GPU; exit code 1 if one "
         "is wrong\n"
         "  --list-ops          what can be measured\n"
         "  --version, --help\n\n"
         "exit code: 0 done or out of time, 2 usage or file error, 1 internal error, 77 no usable GPU,\n"
         "           130 or 143 interrupted (everything measured so far is in FILE.csv)\n";
}

std::string ops_text() {
  std::string text = padded("op", 14) + padded("library", 8) + padded("phases", 41) +
                     padded("precisions", 21) + padded("layouts", 13) + "sizes\n";
  for (const OpSpec& op : op_table()) {
    std::string sizes = list(op.sizes);
    for (const std::string& size : op.sizes_from_one) sizes += ",[" + size + "]";
    text += padded(op.name, 14) + padded(op.library, 8) + padded(list(op.phases), 41) +
            padded(list(op.precisions), 21) + padded(list(op.layouts), 13) + sizes + "\n" + padded("", 14) +
            op.what + "\n";
  }
  return text;
}

}  // namespace tbdsim::measure
