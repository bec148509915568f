// Rows of tables of runs: which are covered, in which unit, and why the others are not; `predict
// --scenarios`.
#include "simulate/validation/runs_table.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "simulate/prediction/predict.h"
#include "tests/simulate/runs_fixture.h"
#include "tests/simulate/toy_world.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using test::Row;
using test::run_row;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::ThrowsMessage;

RowPrediction predicted(const Row& changes, const std::string& profile = "uncalibrated") {
  std::istringstream in(test::table({run_row(changes)}));
  CsvReader reader(in, "runs.csv");
  const RunColumns columns(reader);
  std::vector<std::string> row;
  reader.next(row);
  SpecCache specs = test::source_specs();
  return predict_row(columns, row, specs, profile);
}

Prediction resnet50(const std::string& framework = "mxnet") {
  static SpecCache specs = test::source_specs();
  return predict(
      {.model = "resnet50", .framework = framework, .gpu = "titanxp", .batch = 64, .profile = "uncalibrated"},
      specs);
}

TEST(PredictRow, ThroughputInTheModelsUnit) {
  for (const char* unit : {"images/s", "samples/s"}) {
    const RowPrediction row = predicted({{"unit", unit}});
    EXPECT_EQ(row.status, "ok");
    EXPECT_DOUBLE_EQ(row.predicted, resnet50().throughput());
    EXPECT_DOUBLE_EQ(row.interval.low, resnet50().throughput_interval().low);
    EXPECT_DOUBLE_EQ(row.interval.high, resnet50().throughput_interval().high);
  }
}

TEST(PredictRow, NamesEveryColumnThatIsMissing) {
  std::istringstream in("gpu,framework,model,batch_per_gpu,metric,unit,value\n");
  const CsvReader reader(in, "runs.csv");
  EXPECT_THAT([&] { RunColumns{reader}; },
              ThrowsMessage<SpecError>(
                  "runs.csv:1:1: columns 'precision', 'variant', 'gpus', 'machines' are missing"));
}

// Two workers of 40 ms decode 50 images a second. The columns of the input may be empty or away.
TEST(PredictRow, InputOfARow) {
  const auto with_input = [](const std::string& source, const std::string& workers, const std::string& time) {
    std::string text = test::table({run_row()});
    const std::size_t line = text.find('\n');
    text.insert(line, ",input,input_workers,input_time");
    text.insert(text.rfind('\n'), "," + source + "," + workers + "," + time);
    std::istringstream in(text);
    CsvReader reader(in, "runs.csv");
    const RunColumns columns(reader);
    std::vector<std::string> row;
    reader.next(row);
    SpecCache specs = test::source_specs();
    return predict_row(columns, row, specs, "uncalibrated");
  };
  EXPECT_NEAR(with_input("real", "2", "40 ms").predicted, 50, 1e-9);
  EXPECT_DOUBLE_EQ(with_input("", "", "").predicted, resnet50().throughput());
  EXPECT_THAT(with_input("rael", "", "").status, HasSubstr("did you mean 'real'?"));
}

// A higher throughput is a shorter time: the interval's ends change places.
TEST(PredictRow, TimesInSecondsAndMilliseconds) {
  const RowPrediction s = predicted({{"metric", "iteration_time"}, {"unit", "s"}});
  const RowPrediction ms = predicted({{"metric", "iteration_time"}, {"unit", "ms"}});
  EXPECT_DOUBLE_EQ(s.predicted, resnet50().iteration_time().si());
  EXPECT_NEAR(s.interval.low, 64 / resnet50().throughput_interval().high, 1e-12);
  EXPECT_NEAR(s.interval.high, 64 / resnet50().throughput_interval().low, 1e-12);
  EXPECT_NEAR(ms.predicted, 1000 * s.predicted, 1e-9);
  EXPECT_NEAR(ms.interval.high, 1000 * s.interval.high, 1e-9);
}

// Device memory in use: the model's memory and the context.
// The four phases of a critic with a gradient's penalty make the whole of its kernels; copies over the bus,
// of which A3C has some forward, are none.
TEST(PredictRow, PhasesHaveTheKernels) {
  for (const char* model : {"wgan_gp", "a3c"}) {
    static SpecCache specs = test::source_specs();
    const Prediction p = predict(
        {.model = model, .framework = "pytorch", .gpu = "titanxp", .batch = 8, .profile = "uncalibrated"},
        specs);
    double kernels = 0;
    double copies = 0;
    const Iteration& iteration = p.iterations[0];
    for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
      const Kernel& kernel = iteration.step->kernels[k];
      (kernel.kind == KernelKind::transfer ? copies : kernels) +=
          iteration.costs[k].total.si() * static_cast<double>(kernel.repeat);
    }
    double phases = 0;
    for (const std::string phase : {"forward", "backward", "double_backward", "optimizer"}) {
      const RowPrediction row = predicted({{"model", model},
                                           {"framework", "pytorch"},
                                           {"version", "2.1"},
                                           {"variant", "pytorch"},
                                           {"batch_per_gpu", "8"},
                                           {"metric", "gpu_time:" + phase},
                                           {"unit", "s"}});
      const bool there = phase != "double_backward" || model == std::string("wgan_gp");
      EXPECT_EQ(row.status == "ok", there) << model << ' ' << phase << ": " << row.status;
      if (there) phases += row.predicted;
    }
    EXPECT_NEAR(phases, kernels, 1e-9 * kernels) << model;
    EXPECT_EQ(copies > 0, model == std::string("a3c"));
  }
}

TEST(PredictRow, MemoryOnTheDevice) {
  const RowPrediction row = predicted({{"metric", "memory_used"}, {"unit", "bytes (device memory in use)"}});
  EXPECT_DOUBLE_EQ(row.predicted, resnet50().memory.total().si());
  EXPECT_LT(row.interval.low, row.predicted);
  EXPECT_GT(row.interval.high, row.predicted);
}

// An allocator's high water does not include the context.
TEST(PredictRow, MemoryOfTheAllocator) {
  const RowPrediction row = predicted({{"metric", "memory_used"}, {"unit", "bytes (allocator high water)"}});
  EXPECT_DOUBLE_EQ(row.predicted, resnet50().memory.model().si());
}

// Throughput is that of all GPUs, which is less than so many single ones.
TEST(PredictRow, SeveralGpusAndMachines) {
  const double one = predicted({}).predicted;
  const double four = predicted({{"gpus", "4"}}).predicted;
  EXPECT_GT(four, 2 * one);
  EXPECT_LT(four, 4 * one);
}

// A machine named as the row's set is what its runs across machines were measured on.
TEST(ScenarioOfARow, KnowsTheMachineOfItsSet) {
  SpecCache specs = test::source_specs();
  std::istringstream in(
      "set,gpu,framework,precision,model,variant,batch_per_gpu,gpus,machines,network,metric,unit\n"
      "dlperf,v100_sxm2_16gb,pytorch,amp,resnet50,v1.5,64,16,2,infiniband_100g,throughput,images/s\n"
      "dlperf,v100_sxm2_16gb,pytorch,amp,resnet50,v1.5,64,4,1,nvlink,throughput,images/s\n"
      "others,v100_sxm2_16gb,pytorch,amp,resnet50,v1.5,64,16,2,infiniband_100g,throughput,images/s\n");
  CsvReader reader(in, "runs.csv");
  const RunColumns columns(reader);
  for (const char* machine : {"dlperf", "", ""}) {
    std::vector<std::string> row;
    ASSERT_TRUE(reader.next(row));
    EXPECT_EQ(scenario_of(columns, row, specs).cluster.machine, machine);
  }
}

TEST(PredictRow, VariantByItsNameInTables) {
  EXPECT_NE(predicted({{"variant", "tf_cnn_benchmarks"}}).predicted, predicted({}).predicted);
  EXPECT_EQ(predicted({{"variant", "v1.5 (DeepLearningExamples)"}}).predicted,
            predicted({{"variant", "v1.5"}}).predicted);
}

struct NotCoveredCase {
  const char* name;
  Row changes;
  const char* status;
};
void PrintTo(const NotCoveredCase& row, std::ostream* out) { *out << row.name; }

class NotCovered : public testing::TestWithParam<NotCoveredCase> {};

TEST_P(NotCovered, StatusSaysWhy) {
  const RowPrediction row = predicted(GetParam().changes);
  EXPECT_FALSE(row.ok());
  EXPECT_THAT(row.status, HasSubstr(GetParam().status));
}

const NotCoveredCase kNotCovered[] = {
    {"NoModel", {{"model", ""}}, "no model named"},
    {"NoFramework", {{"framework", ""}}, "no framework named"},
    {"NoGpu", {{"gpu", ""}}, "no GPU named"},
    {"UnknownModel", {{"model", "lenet"}}, "model 'lenet' is not in the catalogue"},
    {"UnknownFramework", {{"framework", "Caffe"}}, "framework 'Caffe' is not in the catalogue"},
    {"UnknownGpu", {{"gpu", "tpu"}}, "GPU 'tpu' is not in the catalogue"},
    {"UnevenGpus", {{"gpus", "3"}, {"machines", "2"}}, "3 gpus on 2 machines: not the same number on each"},
    {"FewerGpusThanMachines", {{"machines", "4"}}, "1 gpus on 4 machines: not the same number on each"},
    {"MoreGpusThanAServerHas", {{"gpus", "17"}}, "17 GPUs in one machine; expected 1 to 16"},
    {"NoNetwork", {{"gpus", "8"}, {"machines", "2"}}, "has no network to others"},
    {"NoNumberOfGpus", {{"gpus", ""}}, "gpus '' is not a whole number"},
    {"NoMachines", {{"machines", "0"}}, "machines '0' is not a whole number"},
    {"NoBatch", {{"batch_per_gpu", ""}}, "batch_per_gpu '' is not a whole number"},
    {"ZeroBatch", {{"batch_per_gpu", "0"}}, "batch_per_gpu '0' is not a whole number"},
    {"BrokenBatch", {{"batch_per_gpu", "1.5"}}, "batch_per_gpu '1.5' is not a whole number"},
    {"HugeBatch", {{"batch_per_gpu", "1000000001"}}, "batch_per_gpu '1000000001' is not a whole number"},
    {"UnknownVariant", {{"variant", "v9"}}, "unknown variant 'v9' of resnet50"},
    {"UnknownPrecision", {{"precision", "fp8x"}}, "unknown precision 'fp8x'"},
    {"NoPrecision", {{"precision", ""}}, "unknown precision ''"},
    {"ArithmeticTheGpuLacks", {{"precision", "tf32"}}, "has no tf32 arithmetic"},
    {"UnitOfAnotherModel", {{"unit", "sentences/s"}}, "unit 'sentences/s': resnet50 trains images/s"},
    {"UnitOfTime", {{"metric", "iteration_time"}, {"unit", "h"}}, "unit 'h' of a time"},
    {"UnitOfMemory", {{"metric", "memory_used"}, {"unit", "GB"}}, "unit 'GB' of memory"},
    {"UnknownMetric", {{"metric", "power"}}, "metric 'power' is not predicted"},
};

INSTANTIATE_TEST_SUITE_P(Rows, NotCovered, testing::ValuesIn(kNotCovered),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(RunColumns, MissingOneIsNamed) {
  std::istringstream in("gpu,framework,precision,model,variant,batch_per_gpu,gpus,machines,metric\n");
  CsvReader reader(in, "runs.csv");
  EXPECT_THAT([&] { const RunColumns columns(reader); }, ThrowsMessage<SpecError>(HasSubstr("unit")));
}

// ---- predict --scenarios

test::CliResult predict_table(const test::TempDir& directory, const std::string& csv) {
  const auto file = directory.write("scenarios.csv", csv);
  return test::run({"predict", "--scenarios", file.string(), "--profile", "uncalibrated"});
}

TEST(PredictScenarios, KeepsColumnsAndOrderAndAppendsFour) {
  const test::TempDir directory;
  const std::string csv =
      "note,unit,metric,machines,gpus,batch_per_gpu,variant,model,precision,framework,gpu,value,own column\n"
      "first,images/s,throughput,1,1,64,,resnet50,fp32,mxnet,titanxp,200,\"a, quoted \"\"field\"\"\"\n"
      "second,images/s,throughput,1,8,64,,resnet50,fp32,mxnet,titanxp,,\"two\nlines\"\n"
      "third,images/s,throughput,1,1,64,,resnet50,fp32,mxnet,titanxp,,\n";
  const test::CliResult result = predict_table(directory, csv);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream in(csv);
  CsvReader before(in, "before.csv");
  std::istringstream out(result.out);
  CsvReader after(out, "after.csv");
  std::vector<std::string> columns = before.columns();
  columns.insert(columns.end(), {"predicted", "predicted_low", "predicted_high", "status"});
  EXPECT_THAT(after.columns(), ElementsAreArray(columns));
  std::vector<std::string> old_row;
  std::vector<std::string> new_row;
  int rows = 0;
  while (before.next(old_row)) {
    ASSERT_TRUE(after.next(new_row));
    EXPECT_TRUE(std::equal(old_row.begin(), old_row.end(), new_row.begin())) << old_row[0];
    ++rows;
  }
  EXPECT_EQ(rows, 3);
  EXPECT_FALSE(after.next(new_row));
}

// 214.950 images/s: six significant digits of the prediction; nothing where there is none.
TEST(PredictScenarios, NumbersAndStatus) {
  const test::TempDir directory;
  const test::CliResult result = predict_table(
      directory, test::table({run_row({{"value", ""}}), run_row({{"gpus", "8"}, {"machines", "3"}}),
                              run_row({{"metric", "iteration_time"}, {"unit", "s"}})}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto rows = test::rows_of(result.out);
  ASSERT_EQ(rows.size(), 3u);
  const double rate = resnet50().throughput();
  EXPECT_EQ(rows[0].at("status"), "ok");
  EXPECT_NEAR(std::stod(rows[0].at("predicted")), rate, 1e-5 * rate);
  EXPECT_LT(std::stod(rows[0].at("predicted_low")), rate);
  EXPECT_GT(std::stod(rows[0].at("predicted_high")), rate);
  for (const char* column : {"predicted", "predicted_low", "predicted_high"})
    EXPECT_EQ(rows[1].at(column), "") << column;
  EXPECT_THAT(rows[1].at("status"), HasSubstr("8 gpus on 3 machines"));
  EXPECT_NEAR(std::stod(rows[2].at("predicted")), 64 / rate, 1e-5 * 64 / rate);
}

TEST(PredictScenarios, WritesAFile) {
  const test::TempDir directory;
  const auto scenarios = directory.write("scenarios.csv", test::table({run_row()}));
  const auto output = directory.path() / "out.csv";
  const test::CliResult result =
      test::run({"predict", "--scenarios", scenarios.string(), "-o", output.string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  std::ifstream in(output);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_EQ(test::rows_of(text.str()).size(), 1u);
}

// Rows may name files of the user's own.
TEST(PredictScenarios, PathsToFiles) {
  const test::ToyWorld world;
  const test::TempDir directory;
  const Row row = run_row({{"model", world.path("model.yaml")},
                           {"framework", world.path("framework.yaml")},
                           {"gpu", world.path("gpu.yaml")},
                           {"batch_per_gpu", "10"}});
  const test::CliResult result =
      test::run({"predict", "--scenarios", directory.write("s.csv", test::table({row})).string(), "--profile",
                 world.path("profile.yaml")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(test::rows_of(result.out).at(0).at("predicted"), "2.44499e+06");  // 10 / 4.09 us (toy_world.h)
}

TEST(PredictScenarios, ColumnsThatAreThereAlready) {
  const test::TempDir directory;
  const test::CliResult result = predict_table(
      directory, "gpu,framework,precision,model,variant,batch_per_gpu,gpus,machines,metric,unit,status\n");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("column 'status' is there already"));
}

TEST(PredictScenarios, WrongProfileIsNoMatterOfARow) {
  const test::TempDir directory;
  const auto file = directory.write("scenarios.csv", test::table({run_row()}));
  const test::CliResult result = test::run({"predict", "--scenarios", file.string(), "--profile", "nosuch"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("unknown profile 'nosuch'"));
}

}  // namespace
}  // namespace tbdsim
