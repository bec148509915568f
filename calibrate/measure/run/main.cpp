// tbd-measure: times the kernels of DNN training on the GPU at hand. See README.md beside this file.
#include <csignal>
#include <cstdlib>
#include <iostream>

#include <unistd.h>

#include "calibrate/measure/run/campaign.h"
#include "calibrate/measure/run/dry_run.h"
#include "calibrate/measure/run/self_test.h"

namespace tbdsim::measure {
namespace {
constexpr int kOk = 0;
constexpr int kInternal = 1;
constexpr int kUsage = 2;
constexpr int kNoDevice = 77;     // what CTest and automake take for "skipped"
constexpr int kSignalBase = 128;  // a shell's code for a program ended by a signal
constexpr double kMinute = 60;

volatile std::sig_atomic_t g_signal = 0;

void remember_signal(int number) {
  g_signal = number;
  std::signal(number, SIG_DFL);  // a second one ends the program at once
}

void finish_output() {
  std::cout.flush();
  if (!std::cout) throw UsageError("standard output: cannot be written");
}

// Returns a message when there is no GPU to measure on, else nothing.
std::string no_device(const Options& options) {
  std::string why;
  const int count = device_count(why);
  if (count == 0) return "no CUDA device: " + why;
  if (options.device >= count) {
    throw UsageError("--device " + std::to_string(options.device) + ": there are " + std::to_string(count) +
                     " CUDA devices, numbered from 0");
  }
  check(cudaSetDevice(options.device), "cudaSetDevice");
  const Device device = describe(options.device);
  cudaError_t status = launch_empty(nullptr);
  if (status == cudaSuccess) status = cudaDeviceSynchronize();
  if (status == cudaSuccess) return "";
  return device.name + " (compute capability " + std::to_string(device.major) + '.' +
         std::to_string(device.minor) + ") does not run this build: " + cudaGetErrorString(status) +
         "; build with a CUDA version that supports it (Maxwell, Pascal and Volta: 12.9 or older)";
}

void describe_run(const Session& session, const ResultFile& file) {
  const Device& d = session.device;
  const Versions& v = session.versions;
  std::cerr << d.name << ", " << d.sm_count << " SMs, compute capability " << d.major << '.' << d.minor
            << ", CUDA " << v.cuda << ", cuDNN " << v.cudnn << ", cuBLAS " << v.cublas << ", clocks from "
            << session.nvml.origin() << '\n';
  for (const std::string& note : file.notes()) std::cerr << note << '\n';
  if (file.rows() > 0) std::cerr << "continuing a file of " << file.rows() << " rows\n";
}

void describe_result(const CampaignResult& r, const Options& options) {
  std::cout << r.highlights.text() << r.measured << " points measured, " << r.already_done << " were in "
            << options.output << " already, " << r.skipped << " skipped, " << r.out_of_time
            << " out of time, " << r.not_reached << " not reached\n";
  if (r.out_of_time + r.not_reached > 0)
    std::cout << "the same command without --minutes measures the rest\n";
}

// Environment variables that override the requested precision (cuBLAS manual, cuDNN developer guide).
void forget_overrides() {
  for (const char* name :
       {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"}) {
    if (std::getenv(name) == nullptr) continue;
    std::cerr << "ignoring the environment variable " << name << '\n';
    ::unsetenv(name);
  }
}

int measure(const Options& options) {
  forget_overrides();
  const Plan plan = plan_of(options);
  for (const std::string& line : plan.skipped) std::cerr << "skipped " << line << '\n';
  ResultFile file(options.output);
  Session session(describe(options.device), options.seed);
  if (options.no_cupti) session.tracer.refuse("--no-cupti was given");
  describe_run(session, file);
  std::signal(SIGINT, remember_signal);
  std::signal(SIGTERM, remember_signal);
  Progress progress(std::cerr, ::isatty(STDERR_FILENO) == 1, plan.points.size(), options.minutes * kMinute);
  const CampaignResult result = run_campaign(session, plan, options.minutes, file, progress);
  describe_result(result, options);
  finish_output();
  return g_signal == 0 ? kOk : kSignalBase + static_cast<int>(g_signal);
}

int check_kernels(const Options& options) {
  Session session(describe(options.device), options.seed);
  if (options.no_cupti) session.tracer.refuse("--no-cupti was given");
  const int failures = self_test(session, std::cout);
  std::cout << (failures == 0 ? "all checks hold\n" : std::to_string(failures) + " checks failed\n");
  finish_output();
  return failures == 0 ? kOk : kInternal;
}

int run(const Options& options) {
  if (options.help) {
    std::cout << usage();
  } else if (options.version) {
    std::cout << "tbd-measure " TBDSIM_VERSION "\n";
  } else if (options.list_ops) {
    std::cout << ops_text();
  } else if (options.write_plan) {
    write_plan(std::cout, plan_of(options).points);
  } else if (options.dry_run) {
    std::cout << dry_run_text(plan_of(options), options.minutes);
  } else {
    const std::string why = no_device(options);
    if (why.empty()) return options.self_test ? check_kernels(options) : measure(options);
    std::cerr << "tbd-measure: " << why << "; nothing was measured\n";
    return kNoDevice;
  }
  finish_output();
  return kOk;
}
}  // namespace

bool interrupted() { return g_signal != 0; }

int guarded(int argc, char** argv) {
  try {
    return run(parse_options(std::vector<std::string>(argv + 1, argv + argc)));
  } catch (const DeviceLost& error) {
    std::cerr << "\ntbd-measure: " << error.what() << "; the records so far are safe\n";
    return kInternal;
  } catch (const Error& error) {
    std::cerr << "tbd-measure: " << error.what() << '\n';
    return kUsage;
  } catch (const std::exception& error) {
    std::cerr << "tbd-measure: internal error: " << error.what() << '\n';
    return kInternal;
  }
}

}  // namespace tbdsim::measure

int main(int argc, char** argv) { return tbdsim::measure::guarded(argc, argv); }
