// `tbd-sim trace`: events in order on their tracks, whose times are those of the iteration.
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "simulate/prediction/predict.h"
#include "simulate/report/export/chrome_trace.h"
#include "tests/simulate/toy_world.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using nlohmann::json;
using Track = std::pair<int, int>;

constexpr Track kThread{1, 1}, kCompute{0, 7}, kCopies{0, 14}, kSecondThread{1, 2}, kSecondStream{0, 8};

json trace_of(const Prediction& p) {
  std::ostringstream out;
  write_trace(out, p);
  return json::parse(out.str());
}

std::map<Track, std::vector<json>> tracks_of(const json& trace) {
  std::map<Track, std::vector<json>> tracks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") tracks[{event["pid"], event["tid"]}].push_back(event);
  }
  return tracks;
}

double total(const std::vector<json>& events) {
  double sum = 0;
  for (const json& event : events) sum += event["dur"].get<double>();
  return sum;
}

// A counter for each kernel. Alive at the first of the toy world, at b = 10: 48 B of weights, as much of
// their gradients and of momentum, 160 B of input and 120 B of output.
TEST(Trace, CountsMemory) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const json trace = trace_of(predict(world.scenario(10), specs));
  std::vector<json> counters;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "C") counters.push_back(event["args"]);
  }
  ASSERT_EQ(counters.size(), 7u);
  EXPECT_EQ(counters[0]["weights"], 48);
  EXPECT_EQ(counters[0]["weight_gradients"], 48);
  EXPECT_EQ(counters[0]["dynamic"], 48);
  EXPECT_EQ(counters[0]["feature_maps"], 160 + 120);
}

// Ten images of 1 us: three workers take 3.33 us each; without any the thread that launches kernels decodes
// for 10 us behind its 12.24.
TEST(Trace, WorkersOfTheScenario) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  Scenario scenario = world.slow_scenario(10, world.dataset_decoded_in("1 us"));
  scenario.input.workers = 3;
  auto tracks = tracks_of(trace_of(predict(scenario, specs)));
  for (const int thread : {2, 3, 4}) EXPECT_NEAR((tracks[{1, thread}].at(0)["dur"]), 10 / 3.0, 1e-9);
  EXPECT_TRUE((tracks[{1, 5}].empty()));
  // Storage gives ten images of 1 kB in 100 us: the threads decode no longer, whatever they wait for.
  scenario.input.sample_bytes = Bytes(1000);
  scenario.input.storage = BytesPerSecond(100e6);
  tracks = tracks_of(trace_of(predict(scenario, specs)));
  for (const int thread : {2, 3, 4}) EXPECT_NEAR((tracks[{1, thread}].at(0)["dur"]), 10 / 3.0, 1e-9);
  EXPECT_NEAR((tracks[{1, 5}].at(0)["dur"]), 100, 1e-9);
  EXPECT_EQ((tracks[{1, 5}].at(0)["name"]), "read samples");
  scenario.input.storage.reset();
  scenario.input.sample_bytes.reset();
  scenario.input.workers = 0;
  tracks = tracks_of(trace_of(predict(scenario, specs)));
  EXPECT_TRUE((tracks[{1, 2}].empty()));
  EXPECT_EQ(tracks[kThread].back()["name"], "decode samples");
  EXPECT_NEAR(tracks[kThread].back()["ts"], 12.24, 1e-9);
  EXPECT_NEAR(tracks[kThread].back()["dur"], 10, 1e-9);
}

// toy_world.h says when each is issued and starts.
TEST(Trace, OfTheToyWorld) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const json trace = trace_of(predict(world.slow_scenario(10, world.dataset_decoded_in("1 us")), specs));
  EXPECT_NEAR(trace["metadata"]["iteration_us"].get<double>(), 12.24, 1e-9);
  auto tracks = tracks_of(trace);
  ASSERT_EQ(tracks[kCompute].size(), 7u);
  const double starts[] = {1.25, 2.25, 3.25, 4.25, 5.25, 6.25, 8.25};
  for (std::size_t k = 0; k < 7; ++k) EXPECT_NEAR(tracks[kCompute][k]["ts"], starts[k], 1e-9);
  EXPECT_NEAR(total(tracks[kCompute]), 4.09, 1e-9);
  EXPECT_EQ(tracks[kThread].size(), 9u);  // seven issued, a wait of 0.74 + 0.5 us, work of 3 us
  EXPECT_NEAR(tracks[kThread][7]["dur"], 1.24, 1e-9);
  EXPECT_NEAR(tracks[kThread][8]["dur"], 3, 1e-9);
  EXPECT_NEAR(total(tracks[kThread]), 12.24, 1e-9);
  EXPECT_NEAR((tracks[{1, 2}].at(0)["dur"]), 5, 1e-9);  // two threads decode
  EXPECT_NEAR((tracks[{1, 3}].at(0)["dur"]), 5, 1e-9);
  const json& args = tracks[kCompute][0]["args"];
  EXPECT_EQ(args["flops"], 240);
  EXPECT_EQ(args["bytes"], 328);
  EXPECT_EQ(args["bound"], "compute");
  EXPECT_EQ(args["provenance"], "roofline");
  EXPECT_EQ(args["layer"], "fc");
  EXPECT_EQ(args["phase"], "forward");
}

class TraceOf : public testing::TestWithParam<std::pair<const char*, const char*>> {};

// How long at least one of the events lasts.
double covered(std::vector<json> events) {
  std::sort(events.begin(), events.end(), [](const json& a, const json& b) { return a["ts"] < b["ts"]; });
  double sum = 0;
  double until = 0;
  for (const json& event : events) {
    const double start = event["ts"];
    const double end = start + event["dur"].get<double>();
    sum += std::max(0.0, end - std::max(start, until));
    until = std::max(until, end);
  }
  return sum;
}

// On every track events follow one another; the threads' are the iteration, the kernels' the time the GPU is
// busy; every one on the GPU was issued before, and its arrow says so.
TEST_P(TraceOf, AddsUp) {
  const auto [model, framework] = GetParam();
  SpecCache specs = test::source_specs();
  const Prediction p = predict({.model = model, .framework = framework, .gpu = "titanxp", .batch = 8}, specs);
  const json trace = trace_of(p);
  auto tracks = tracks_of(trace);
  for (const auto& [track, events] : tracks) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      ASSERT_GT(events[i]["dur"], 0);
      ASSERT_GE(events[i]["ts"], 0);
      if (i == 0) continue;
      const double end = events[i - 1]["ts"].get<double>() + events[i - 1]["dur"].get<double>();
      ASSERT_GE(events[i]["ts"].get<double>(), end * (1 - 1e-9)) << events[i];
    }
  }
  const double iteration = trace["metadata"]["iteration_us"];
  const bool two = p.framework->launch_model.engine_threads > 1;
  std::vector<json> threads = tracks[kThread];
  std::vector<json> kernels = tracks[kCompute];
  if (two) {
    EXPECT_FALSE(tracks[kSecondThread].empty());
    EXPECT_FALSE(tracks[kSecondStream].empty());
    for (const json& event : tracks[kSecondThread]) threads.push_back(event);
    for (const json& event : tracks[kSecondStream]) kernels.push_back(event);
  }
  if (p.framework->launch_model.sync_after_iteration) {
    EXPECT_NEAR(covered(threads), iteration, 1e-6 * iteration);
  }
  double busy = 0;
  for (const json& event : kernels) busy += event["args"]["time_us"].get<double>();
  const double gpu_busy = trace["metadata"]["gpu_busy_us"];
  if (two) {
    EXPECT_LT(gpu_busy, busy);
    EXPECT_LE(gpu_busy, covered(kernels) * (1 + 1e-9));
  } else {
    EXPECT_NEAR(busy, gpu_busy, 1e-6 * busy);
  }
  EXPECT_EQ(kernels.size() + tracks[kCopies].size(), p.typical().costs.size());
  std::map<std::int64_t, double> issued;
  for (const json& event : threads) {
    if (event["args"].contains("correlation")) issued[event["args"]["correlation"]] = event["ts"];
  }
  EXPECT_EQ(issued.size(), p.typical().costs.size());
  for (const Track& stream : {kCompute, kCopies, kSecondStream}) {
    for (const json& event : tracks[stream]) EXPECT_GT(event["ts"], issued.at(event["args"]["correlation"]));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TraceOf,
                         testing::Values(std::pair{"resnet50", "mxnet"}, std::pair{"resnet50", "pytorch"},
                                         std::pair{"faster_rcnn", "tensorflow"}, std::pair{"a3c", "mxnet"},
                                         std::pair{"deep_speech2", "mxnet"}));

TEST(Trace, IsAFileThatAppearsWhole) {
  const test::TempDir directory;
  const std::string file = (directory.path() / "trace.json").string();
  const test::CliResult result = test::run(
      {"trace", "resnet50", "--framework", "mxnet", "--gpu", "titanxp", "--batch", "64", "-o", file});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  std::ifstream in(file);
  EXPECT_EQ(json::parse(in)["metadata"]["batch"], 64);
}

TEST(Trace, IsOfOneIteration) {
  EXPECT_EQ(test::run({"trace", "resnet50", "--gpu", "titanxp", "--batch", "64"}).err,
            "tbd-sim: a trace is of one iteration, resnet50 is trained by tensorflow, mxnet, cntk, pytorch; "
            "expected a --framework\n");
  EXPECT_EQ(test::run({"trace", "--gpu", "titanxp", "--batch", "64"}).err,
            "tbd-sim: a trace is of one iteration; expected a model ('tbd-sim list models')\n");
  EXPECT_EQ(
      test::run({"trace", "resnet50", "--gpu", "titanxp", "--batch", "64", "--format", "csv"}).exit_code, 2);
}

}  // namespace
}  // namespace tbdsim
