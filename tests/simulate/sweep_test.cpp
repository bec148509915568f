#include <csignal>
#include <filesystem>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "simulate/sweep/point_predictor.h"
#include "simulate/sweep/resumable_file.h"
#include "simulate/sweep/sweep_spec.h"
#include "tests/hwspecs/message_of.h"
#include "tests/simulate/toy_world.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> values(const std::string& text) {
  const SweepAxis axis("x", text);
  std::vector<std::string> all;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(axis.size()); ++i) all.push_back(axis.value(i));
  return all;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// A sweep of ResNet-50 on MXNet over two cards and these batches.
std::vector<std::string> sweep_of(const std::string& batches, const std::string& option,
                                  const std::string& value) {
  return {"sweep",         "--model", "resnet50", "--framework", "mxnet", "--gpu",
          "titanxp,p4000", "--batch", batches,    option,        value};
}

const std::vector<std::string> kSmall = sweep_of("8,16", "--set", "gpu.memory_bandwidth=+0%,+50%");

std::vector<std::string> small_with(std::initializer_list<std::string> more) {
  std::vector<std::string> all = kSmall;
  all.insert(all.end(), more);
  return all;
}

TEST(SweepAxis, ListsAndRanges) {
  EXPECT_THAT(values("8,16,32"), ElementsAre("8", "16", "32"));
  EXPECT_THAT(values("1:3"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(values("1:8:3,100"), ElementsAre("1", "4", "7", "100"));
  EXPECT_THAT(values("1:16:x2"), ElementsAre("1", "2", "4", "8", "16"));
  EXPECT_THAT(values("100GB/s:200GB/s:50GB/s"), ElementsAre("100 GB/s", "150 GB/s", "200 GB/s"));
  EXPECT_THAT(values("0.1:0.3:0.1"), ElementsAre("0.1", "0.2", "0.3"));
  EXPECT_THAT(values("[1, 2],[3]"), ElementsAre("[1, 2]", "[3]"));
  EXPECT_EQ(SweepAxis("x", "1:1000000000000").size(), 1e12);
}

TEST(SweepAxis, RefusesRangesThatGoNowhere) {
  for (const char* text :
       {"", "1,,2", "3:1", "1:5:0", "1:5:-1", "0:8:x2", "1:8:x1", "1us:2ms:1us", "1us:5us", "1:2:3:4", "1:b"})
    EXPECT_THROW(SweepAxis("x", text), UsageError) << text;
}

TEST(Sweep, TheLastAxisVariesFastest) {
  const test::CliResult result = test::run(small_with({"--metrics", "throughput"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 9u);
  EXPECT_EQ(lines[0], "model,framework,gpu,batch,gpu.memory_bandwidth,throughput,status");
  EXPECT_THAT(lines[1], testing::StartsWith("resnet50,mxnet,titanxp,8,+0%,"));
  EXPECT_THAT(lines[2], testing::StartsWith("resnet50,mxnet,titanxp,8,+50%,"));
  EXPECT_THAT(lines[3], testing::StartsWith("resnet50,mxnet,titanxp,16,+0%,"));
  EXPECT_THAT(lines[8], testing::StartsWith("resnet50,mxnet,p4000,16,+50%,"));
}

// Whatever was predicted before it, on however many threads.
TEST(Sweep, APointIsWhatItIsAlone) {
  SpecCache specs = test::source_specs();
  SweepOptions options;
  options.axes = {{"model", "resnet50,a3c"},    {"framework", "mxnet"},
                  {"gpu", "titanxp,t4"},        {"batch", "4,8"},
                  {"gpu.sm_count", "20,40"},    {"framework.execution.kernel", "+0%,x2"},
                  {"link.latency", "+0%,x1000"}};
  const SweepRun run = sweep_run(options, RowFormat::csv, specs);
  PointPredictor all(run.sweep, specs);
  std::set<double> distinct;
  for (std::int64_t point = 0; point < run.end; ++point) {
    const SweepPoint together = all.at(point);
    const SweepPoint alone = PointPredictor(run.sweep, specs).at(point);
    ASSERT_EQ(together.status, "ok");
    ASSERT_EQ(together.metrics, alone.metrics) << point;
    distinct.insert(*together.metrics[0]);
  }
  EXPECT_GE(distinct.size(), 32u);  // all but the bus, over which nothing goes
}

TEST(Sweep, ThroughputIsThatOfThePrediction) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  SweepOptions options;
  options.axes = {{"model", world.path("model.yaml")},
                  {"framework", world.path("slow.yaml")},
                  {"gpu", world.path("gpu.yaml")},
                  {"profile", world.path("profile.yaml")},
                  {"batch", "10"},
                  {"framework.execution.iteration", "+0%,1 us"}};
  options.metrics = "throughput";
  const SweepRun run = sweep_run(options, RowFormat::csv, specs);
  PointPredictor predictor(run.sweep, specs);
  EXPECT_NEAR(*predictor.at(0).metrics[0], 10 / 12.24e-6, 1);
  EXPECT_NEAR(*predictor.at(1).metrics[0], 10 / 10.24e-6, 1);
}

// A file of that name with CSV in it would be read by nothing.
TEST(Sweep, ParquetIsRefusedByName) {
  const test::CliResult result = test::run({"sweep", "--model", "resnet50", "--framework", "mxnet", "--gpu",
                                            "p4000", "--batch", "8", "-o", "x.parquet"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("-o 'x.parquet': rows are written as CSV or JSON lines"));
  EXPECT_FALSE(fs::exists("x.parquet"));
}

// One row for each name of the catalogue, and the header.
TEST(Sweep, AllIsEveryNameOfTheCatalogue) {
  for (const auto& [kind, gpu, framework] :
       {std::tuple{"gpus", "all", "mxnet"}, std::tuple{"frameworks", "p4000", "all"}}) {
    const test::CliResult names = test::run({"list", kind, "--format", "csv"});
    const test::CliResult rows =
        test::run({"sweep", "--model", "resnet50", "--framework", framework, "--gpu", gpu, "--batch", "8",
                   "--metrics", "throughput", "--format", "csv"});
    ASSERT_EQ(rows.exit_code, 0) << rows.err;
    EXPECT_EQ(lines_of(rows.out).size(), lines_of(names.out).size()) << kind;
    EXPECT_GT(lines_of(rows.out).size(), 10u);
  }
}

// Six digits of NCF's would be above what fits (2.03162e+06 for 2,031,616).
TEST(Sweep, TheLargestBatchThatItPrintsFits) {
  const std::vector<std::string> ncf = {"sweep",   "--model", "ncf",     "--framework",
                                        "pytorch", "--gpu",   "titanxp", "--batch"};
  const auto status_at = [&](const std::string& batch, const std::string& metric) {
    std::vector<std::string> arguments = ncf;
    arguments.insert(arguments.end(), {batch, "--metrics", metric});
    const std::string row = lines_of(test::run(arguments).out).at(1);
    return row.substr(std::string("ncf,pytorch,titanxp,").size() + batch.size() + 1);
  };
  const std::int64_t largest = std::stoll(status_at("4", "largest_batch"));
  EXPECT_THAT(status_at(std::to_string(largest), "throughput"), testing::EndsWith(",ok"));
  EXPECT_THAT(status_at(std::to_string(largest + 1), "throughput"), testing::EndsWith(",out of memory"));
}

TEST(Sweep, RowsSayWhatIsImpossible) {
  const test::CliResult result =
      test::run({"sweep", "--model", "resnet50,faster_rcnn", "--framework", "cntk", "--gpu", "p4000",
                 "--batch", "1,512", "--format", "jsonl", "--metrics", "throughput,price"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], HasSubstr("\"batch\": 1, \"throughput\": "));
  EXPECT_THAT(lines[0], HasSubstr("\"status\": \"ok\"}"));
  EXPECT_THAT(lines[1], HasSubstr("\"status\": \"out of memory\""));
  EXPECT_THAT(lines[2],
              HasSubstr("\"throughput\": null, \"price\": null, \"status\": \"faster_rcnn is trained by"));
}

TEST(Sweep, BestAndParetoFitAndAreNotBeaten) {
  const std::vector<std::string> command = sweep_of("8:128:8", "--metrics", "throughput,memory_total");
  const auto with = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> all = command;
    all.insert(all.end(), more);
    return lines_of(test::run(all).out);
  };
  const auto best = with({"--best", "throughput", "--per", "gpu"});
  ASSERT_EQ(best.size(), 3u);
  EXPECT_THAT(best[1], testing::StartsWith("resnet50,mxnet,titanxp,88,"));  // 96 do not fit into 12 GiB
  EXPECT_THAT(best[2], testing::StartsWith("resnet50,mxnet,p4000,56,"));    // nor 64 into 8
  EXPECT_EQ(with({"--best", "throughput"}).size(), 2u);
  // More throughput takes more memory, and a TITAN Xp is faster at equal memory: its rising throughputs are
  // the front.
  const auto front = with({"--pareto", "throughput,memory_total"});
  EXPECT_GE(front.size(), 5u);
  for (std::size_t i = 1; i < front.size(); ++i) EXPECT_THAT(front[i], HasSubstr("titanxp"));
  const auto cheapest = with({"--best", "memory_total", "--where", "throughput>=150"});
  ASSERT_EQ(cheapest.size(), 2u);
  EXPECT_THAT(cheapest[1], testing::StartsWith("resnet50,mxnet,titanxp,16,"));
}

// A single-precision run does not feel the board's power, but every SM: of each number of SMs the front has
// the least power.
TEST(Sweep, ParetoWantsLessOfAnAxis) {
  const auto front = [](const char* sms, const char* of) {
    return test::run({"sweep", "--model", "resnet50", "--framework", "mxnet", "--gpu", "titanxp", "--batch",
                      "8", "--set", "gpu.tdp=250W,200W", "--set", sms, "--pareto", of, "--metrics",
                      "throughput"});
  };
  const auto rows = lines_of(front("gpu.sm_count=30,20", "throughput,gpu.sm_count,gpu.tdp").out);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_THAT(rows[1], HasSubstr(",200W,30,"));
  EXPECT_THAT(rows[2], HasSubstr(",200W,20,"));
  // x1 and 20 cannot be compared, names are no numbers.
  EXPECT_THAT(front("gpu.sm_count=x1,20", "throughput,gpu.sm_count").err, HasSubstr("unknown metric"));
  EXPECT_THAT(front("gpu.sm_count=20", "throughput,gpu").err, HasSubstr("unknown metric 'gpu'"));
}

TEST(Sweep, ShardsAreTheWholeInParts) {
  const std::string whole = test::run(small_with({"--format", "jsonl"})).out;
  std::string parts;
  for (const char* shard : {"1/3", "2/3", "3/3"})
    parts += test::run(small_with({"--format", "jsonl", "--shard", shard})).out;
  EXPECT_EQ(parts, whole);
}

TEST(Sweep, FlagsAndYamlSayTheSame) {
  const test::TempDir directory;
  const std::string file =
      directory
          .write("sweep.yaml",
                 "model: resnet50\nframework: mxnet\ngpu: [titanxp, p4000]\nbatch: 8,16\n"
                 "set: {gpu.memory_bandwidth: [+0%, +50%]}\n")
          .string();
  EXPECT_EQ(test::run({"sweep", file}).out, test::run(kSmall).out);
  EXPECT_THAT(test::run({"sweep", file, "--gpu", "t4"}).err, HasSubstr("gpu is given twice"));
  EXPECT_THAT(test::run({"sweep", directory.write("bad.yaml", "modle: resnet50\n").string()}).err,
              HasSubstr("bad.yaml:1:1: unknown key 'modle'; did you mean 'model'?"));
}

// The file after an interrupt, a full disk or a crash: some lines, and half a line.
TEST(Sweep, GoesOnWhereItWasInterrupted) {
  const test::TempDir directory;
  const std::string whole = test::run(kSmall).out;
  const std::string file = (directory.path() / "sweep.csv").string();
  ASSERT_EQ(test::run(small_with({"-o", file})).exit_code, 0);
  EXPECT_EQ(read_file(file, 100'000), whole);
  EXPECT_FALSE(fs::exists(file + ".part"));
  SpecCache specs = test::source_specs();
  SweepOptions options;
  options.axes = {{"model", "resnet50"},
                  {"framework", "mxnet"},
                  {"gpu", "titanxp,p4000"},
                  {"batch", "8,16"},
                  {"gpu.memory_bandwidth", "+0%,+50%"}};
  const std::string text = description(sweep_run(options, RowFormat::csv, specs), specs.catalog());
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{10}, whole.size() / 2, whole.size() - 1, whole.size()}) {
    directory.write("again.csv.part", whole.substr(0, bytes));
    directory.write("again.csv.part.sweep", text);
    const std::string again = (directory.path() / "again.csv").string();
    const test::CliResult result = test::run(small_with({"-o", again}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(read_file(again, 100'000), whole) << bytes;
    EXPECT_FALSE(fs::exists(again + ".part.sweep"));
  }
}

TEST(Sweep, HalfOfAnotherSweepIsNotGoneOnWith) {
  const test::TempDir directory;
  directory.write("a.csv.part", "x\n");
  directory.write("a.csv.part.sweep", "batch: 7\n");
  const test::CliResult result = test::run(small_with({"-o", (directory.path() / "a.csv").string()}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("a.csv.part is half of another sweep"));
  EXPECT_EQ(read_file(directory.path() / "a.csv.part", 100), "x\n");
}

// The files a sweep read identify it: rows of an edited model are not appended to those of the old one.
TEST(Sweep, AnEditedModelIsAnotherSweep) {
  const test::TempDir directory;
  const std::string model =
      read_file(fs::path(TBDSIM_SOURCE_DIR) / "graphs/models/alexnet.yaml", std::uintmax_t{1} << 20U);
  const std::string mine = directory.write("mine.yaml", model).string();
  const std::string out = (directory.path() / "a.csv").string();
  const std::vector<std::string> arguments{"sweep",   "--model", mine,  "--framework", "mxnet", "--gpu",
                                           "titanxp", "--batch", "1,2", "-o",          out};
  ASSERT_EQ(test::run(arguments).exit_code, 0);
  const std::string whole = read_file(out, 10'000);
  SpecCache specs = test::source_specs();
  SweepOptions options;
  options.axes = {{"model", mine}, {"framework", "mxnet"}, {"gpu", "titanxp"}, {"batch", "1,2"}};
  directory.write("a.csv.part.sweep",
                  description(sweep_run(options, RowFormat::csv, specs), specs.catalog()));
  const auto leave_half = [&] { directory.write("a.csv.part", whole.substr(0, whole.size() / 2)); };
  leave_half();
  ASSERT_EQ(test::run(arguments).exit_code, 0);
  EXPECT_EQ(read_file(out, 10'000), whole);
  directory.write("a.csv.part.sweep",
                  description(sweep_run(options, RowFormat::csv, specs), specs.catalog()));
  leave_half();
  directory.write("mine.yaml", model + "# edited\n");
  const test::CliResult resumed = test::run(arguments);
  EXPECT_EQ(resumed.exit_code, 2);
  EXPECT_THAT(resumed.err, HasSubstr("a.csv.part is half of another sweep: it was begun with 'file "));
  EXPECT_THAT(resumed.err, HasSubstr("mine.yaml"));
}

TEST(Sweep, AForeignLineIsRefused) {
  const test::TempDir directory;
  const std::string whole = test::run(kSmall).out;
  SpecCache specs = test::source_specs();
  SweepOptions options;
  options.axes = {{"model", "resnet50"},
                  {"framework", "mxnet"},
                  {"gpu", "titanxp,p4000"},
                  {"batch", "8,16"},
                  {"gpu.memory_bandwidth", "+0%,+50%"}};
  const std::vector<std::string> lines = lines_of(whole);
  const std::string two = lines[0] + "\n" + lines[1] + "\n";
  const std::string out = (directory.path() / "a.csv").string();
  for (const std::string& foreign :
       {std::string("hello"), lines[1], lines[3]}) {  // a stray, a repeated, a skipped row
    directory.write("a.csv.part.sweep",
                    description(sweep_run(options, RowFormat::csv, specs), specs.catalog()));
    directory.write("a.csv.part", two + foreign + "\n");
    const test::CliResult result = test::run(small_with({"-o", out}));
    EXPECT_EQ(result.exit_code, 2) << foreign;
    EXPECT_THAT(result.err, HasSubstr("a.csv.part:3: is no row of this sweep")) << foreign;
    EXPECT_FALSE(fs::exists(out));
  }
}

const SweepFile::IsLine any_line = [](std::int64_t, std::string_view) { return true; };

TEST(SweepFile, OneProcessAtATime) {
  const test::TempDir directory;
  const fs::path file = directory.path() / "a.csv";
  SweepFile first(file, "s", any_line);
  first.append("a\n");
  EXPECT_THAT(test::message_of<UsageError>([&] { SweepFile(file, "s", any_line); }),
              HasSubstr("a.csv.part is being written by another process"));
  first.append("b\n");
  first.commit();
  EXPECT_EQ(read_file(file, 100), "a\nb\n");
}

// A limit on files stands for a full disk.
TEST(SweepFile, AFullDiskLeavesNoFileOfThatName) {
  const test::TempDir directory;
  const fs::path file = directory.path() / "a.csv";
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{1'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  const std::string message = test::message_of<UsageError>([&] {
    SweepFile sweep(file, "s", any_line);
    for (int i = 0; i < 100; ++i) sweep.append("a row of some twenty bytes\n");
  });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("a.csv.part: cannot be written"));
  EXPECT_FALSE(fs::exists(file));
  EXPECT_GT(SweepFile(file, "s", any_line).lines(), 10);  // what is there stays
}

TEST(Sweep, RefusesWhatIsWrongAsAWhole) {
  const auto message = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "sweep");
    return test::run(arguments).err;
  };
  const auto with = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> all = {"--model", "resnet50", "--framework", "mxnet", "--gpu", "titanxp"};
    all.insert(all.end(), more);
    return message(all);
  };
  EXPECT_THAT(with({"--batch", "1:1000000", "--set", "link.latency=1us:1000000us:1us"}),
              HasSubstr("the axes make 1000000000000 points; expected at most 1000000000"));
  EXPECT_THAT(message({"--model", "resnet50"}), HasSubstr("a sweep needs a framework"));
  EXPECT_THAT(with({}), HasSubstr("a sweep needs a batch"));
  EXPECT_THAT(with({"--batch", "8", "--tokens", "100"}), HasSubstr("batch and tokens are both given"));
  EXPECT_THAT(with({"--batch", "0:8"}), HasSubstr("batch: '0' is no whole number"));
  EXPECT_THAT(with({"--batch", "8", "--set", "gpu.sm_count=1", "--set", "gpu.sm_count=2"}),
              HasSubstr("gpu.sm_count is given twice"));
  EXPECT_THAT(with({"--batch", "8", "--set", "gpu.sm_cout=1"}), HasSubstr("did you mean 'sm_count'?"));
  EXPECT_THAT(with({"--batch", "8", "--set", "gpu.memory_bandwidth=1,2"}), HasSubstr("has no unit"));
  EXPECT_THAT(with({"--batch", "8", "--set", "batsh=4"}), HasSubstr("did you mean 'batch'?"));
  EXPECT_THAT(with({"--batch", "8", "--metrics", "thruput"}), HasSubstr("unknown metric 'thruput'"));
  EXPECT_THAT(with({"--batch", "8", "--best", "throughput", "--per", "gpus"}),
              HasSubstr("did you mean 'gpu'?"));
  EXPECT_THAT(with({"--batch", "8", "--best", "throughput", "--pareto", "price,throughput"}),
              HasSubstr("best and pareto are both given"));
  EXPECT_THAT(with({"--batch", "8", "--where", "throughput=5"}), HasSubstr("is no bound"));
  EXPECT_THAT(with({"--batch", "8", "--shard", "5/4"}), HasSubstr("is no part of a sweep"));
  EXPECT_THAT(
      message({"--model", "resnet50", "--framework", "mxnet", "--gpu", "titanxp,titanpx", "--batch", "8"}),
      HasSubstr("did you mean 'titanxp'?"));
}

}  // namespace
}  // namespace tbdsim
