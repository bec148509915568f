// Damaged, absurd and rewritten files for each reader but those of `import`
// (tests/import/hostile_import_test.cpp): an error that names the file, no crash, little time and memory.
#include <ctime>
#include <fstream>
#include <regex>
#include <string>

#include <gmock/gmock.h>

#include "calibrate/records/record.h"
#include "costmodel/profile/profile.h"
#include "graphs/captured/lower.h"
#include "graphs/captured/step_reader.h"
#include "graphs/convergence.h"
#include "graphs/dataset.h"
#include "graphs/hugging_face/config_reader.h"
#include "graphs/model.h"
#include "graphs/suite.h"
#include "hwspecs/base/csv.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/cpu_spec.h"
#include "hwspecs/gpu_spec.h"
#include "hwspecs/link_spec.h"
#include "hwspecs/machine_spec.h"
#include "simulate/analysis/presets.h"
#include "simulate/framework/framework_spec.h"
#include "simulate/import/execution_trace.h"
#include "simulate/import/measured_run.h"
#include "simulate/import/shaped_calls.h"
#include "simulate/job/job_request.h"
#include "simulate/sweep/sweep_spec.h"
#include "simulate/validation/known_faults.h"
#include "simulate/validation/observations_reader.h"
#include "simulate/validation/runs_table.h"
#include "simulate/validation/tta_rules.h"
#include "simulate/workload/spec_cache.h"
#include "tests/support/hostile_text.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using Path = std::filesystem::path;

// Sanitizers take several times the time and memory: every third form, and smaller bombs.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TBDSIM_SANITIZED
#endif
#endif
#ifdef TBDSIM_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr int kStep = kSanitized ? 3 : 1;

const Catalog& catalog() {
  static const Catalog all = Catalog::from(TBDSIM_SOURCE_DIR);
  return all;
}

void read_all_records(const Path& file) {
  std::ifstream in = open_input(file);
  RecordReader reader(in, file.string());
  for (Record record; reader.next(record);) {
  }
}

void read_all_runs(const Path& file) {
  static SpecCache specs(catalog());
  std::ifstream in = open_input(file);
  CsvReader reader(in, file.string());
  const RunColumns columns(reader);
  for (std::vector<std::string> row; reader.next(row);)
    (void)predict_row(columns, row, specs, "uncalibrated");
}

void build_all(const Path& file) {
  const ModelFile model = read_model_file(file);
  for (const Variant& variant : model.variants) (void)build_model(model, variant);
}

struct Reader {
  const char* name;
  const char* file;  // a good one
  void (*read)(const Path& file);
};
constexpr Reader kReaders[] = {
    {"gpu", "tests/bad_specs/valid_gpu.yaml", [](const Path& file) { (void)read_gpu(file, catalog()); }},
    {"cpu", "hwspecs/cpus/xeon_gold_6230.yaml", [](const Path& file) { (void)read_cpu(file); }},
    {"link", "tests/bad_specs/valid_link.yaml", [](const Path& file) { (void)read_link(file); }},
    {"machine", "tests/bad_specs/valid_machine.yaml",
     [](const Path& file) { (void)read_machine(file, catalog()); }},
    {"model", "tests/bad_specs/valid_model.yaml", build_all},
    {"dataset", "tests/bad_specs/valid_dataset.yaml", [](const Path& file) { (void)read_dataset(file); }},
    {"framework", "tests/bad_specs/valid_framework.yaml",
     [](const Path& file) { (void)read_framework(file); }},
    {"profile", "tests/bad_specs/valid_profile_fitted.yaml",
     [](const Path& file) { (void)read_profile(file, catalog()); }},
    {"suite", "graphs/suites/tbd.yaml", [](const Path& file) { (void)read_suite(file); }},
    {"convergence", "graphs/convergence/resnet50_759.yaml",
     [](const Path& file) { (void)read_convergence(file); }},
    {"preset", "simulate/presets/offload.yaml", [](const Path& file) { (void)read_preset(file); }},
    {"job", "docs/examples/my_job.yaml",
     [](const Path& file) {
       JobRequest request;
       read_job(request, file);
     }},
    {"sweep", "tests/fuzz/seeds/small.sweep.yaml", [](const Path& file) { (void)read_sweep(file); }},
    {"rules", "simulate/validation/benchmarks/mlperf_training.yaml",
     [](const Path& file) { (void)read_suite_rules(file); }},
    {"faults", "simulate/validation/benchmarks/known_faults.yaml",
     [](const Path& file) { (void)read_known_faults(file); }},
    {"observations", "simulate/validation/observations/tbd.yaml",
     [](const Path& file) { (void)read_observations(file); }},
    {"runs", "tests/bad_specs/valid_runs.csv", read_all_runs},
    {"records", "tests/bad_specs/valid_records.csv", read_all_records},
    {"config", "docs/examples/config.json", [](const Path& file) { (void)read_config_file(file); }},
    {"step", "tests/fuzz/seeds/small.step.json",
     [](const Path& file) { (void)lower_captured_step(read_step_file(file), {}, kPrecisions.front()); }},
    {"execution_trace", "tests/import/files/execution_trace_4.json",
     [](const Path& file) { (void)read_execution_trace(file); }},
    {"shaped_calls", "tests/import/files/trace_shapes.json",
     [](const Path& file) { (void)read_shaped_trace(file); }},
    {"measured_run", "tests/import/files/trace.json",
     [](const Path& file) { (void)read_measured_run(file); }}};

class HostileFile : public testing::TestWithParam<Reader> {
 protected:
  // Reads such a file, and says what is wrong with how it was read or refused; counts those refused.
  void expect_read_or_refused(const std::string& bytes, const std::string& what) {
    constexpr double kMostSeconds = kSanitized ? 50 : 5;  // of this process
    const Path file = dir_.write(Path(GetParam().file).filename().string(), bytes);
    const std::clock_t before = std::clock();
    ++tried_;
    try {
      GetParam().read(file);
    } catch (const Error& refused) {
      ++refused_;
      EXPECT_THAT(refused.what(), testing::HasSubstr(file.string() + (has_lines() ? ":" : ""))) << what;
      const bool says_where =
          std::regex_search(refused.what(), std::regex(":[0-9]+:[0-9]+: |holds no YAML|is empty"));
      EXPECT_TRUE(says_where || !has_lines()) << what << ": " << refused.what();
    }
    EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, kMostSeconds) << what;
  }

  // JSON is told by keys, and by bytes where it is none.
  [[nodiscard]] static bool has_lines() { return !std::string(GetParam().file).ends_with(".json"); }

  [[nodiscard]] static std::string good() {
    return read_file(Path(TBDSIM_SOURCE_DIR) / GetParam().file, 10'000'000);
  }

  test::TempDir dir_;
  int tried_ = 0, refused_ = 0;
};

TEST_P(HostileFile, IsReadOrRefused) {
  const std::string whole = good();
  expect_read_or_refused(whole, "as it is");
  EXPECT_EQ(refused_, 0);
  for (int number = 0; number < test::kDamages; number += kStep) {
    expect_read_or_refused(test::damaged(whole, number), "damage " + std::to_string(number));
    expect_read_or_refused(test::absurd(whole, number), "absurdity " + std::to_string(number));
  }
  for (const auto& [what, text] : test::rewritten(whole)) expect_read_or_refused(text, what);
  EXPECT_GE(tried_, 2 * test::kDamages / kStep);
  EXPECT_GT(refused_, test::kDamages / 2 / kStep);
}

INSTANTIATE_TEST_SUITE_P(All, HostileFile, testing::ValuesIn(kReaders),
                         [](const auto& reader) { return std::string(reader.param.name); });

struct Bomb {
  const char* begins;
  const char* goes_on;
  void (*read)(const Path& file);
};
constexpr Bomb kBombs[] = {
    {R"({"format": "tbdsim step", "version": 1, "name": [1)", ",1",
     [](const Path& file) { (void)read_step_file(file); }},
    {R"({"format": "tbdsim step", "version": 1, "name": ")", "xx",
     [](const Path& file) { (void)read_step_file(file); }},
    {R"({"schema": "1.0.1", "nodes": [1)", ",1", [](const Path& file) { (void)read_execution_trace(file); }},
    {R"({"schema": "1.0.1", "nodes": [")", R"(","x)",
     [](const Path& file) { (void)read_execution_trace(file); }},
    {R"({"traceEvents": [{"ph": "X", "name": ")", "xx",
     [](const Path& file) { (void)read_measured_run(file); }},
    {R"({"traceEvents": [{"ph": "X", "args": {"Input Dims": [1)", ",1",
     [](const Path& file) { (void)read_shaped_trace(file); }},
    {"Time (%),Total Time (ns),Instances,Name\n1,5,1,", "xx",
     [](const Path& file) { (void)read_measured_run(file); }}};

// Peak memory of this process in KiB since it was last set back.
std::int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6));
  }
  return 0;
}

// Some hundred kilobytes that unpack to 300 MiB: refused, with less than 1 GiB of memory.
TEST(GzipBombs, AreRefusedWithinAGibibyte) {
  constexpr std::size_t kBytes = std::size_t{kSanitized ? 3 : 300} << 20U;
  constexpr std::int64_t kMostKibibytes = std::int64_t{1} << 20U;
  const test::TempDir dir;
  for (const Bomb& bomb : kBombs) {
    const std::string piece = bomb.goes_on;
    const Path file = dir.write("bomb.gz", test::gzipped(bomb.begins, piece, kBytes / piece.size()));
    std::ofstream("/proc/self/clear_refs") << "5";  // sets the peak back
    EXPECT_THROW(bomb.read(file), Error) << bomb.begins;
    EXPECT_TRUE(kSanitized || peak_memory() < kMostKibibytes) << bomb.begins << peak_memory();
  }
}

}  // namespace
}  // namespace tbdsim
