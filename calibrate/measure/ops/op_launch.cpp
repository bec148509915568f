// Launch overhead and launch latency. The host's side is timed without the tracer, which slows launches down.
#include <chrono>

#include "calibrate/measure/ops/ops.h"
#include "calibrate/measure/ops/timing.h"

namespace tbdsim::measure {
namespace {
using Clock = std::chrono::steady_clock;
constexpr int kLaunches = 200;  // back to back: well below the queue's 1024
constexpr int kRounds = 31;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Record host_record(const Session& session, const PlanPoint& point, const char* algorithm,
                   const std::vector<double>& samples) {
  const Summary summary = summarize(samples);
  Record record = record_of(point);
  record.algorithm = algorithm;
  record.time_s = summary.median;
  record.spread = summary.spread;
  record.samples = summary.samples;
  record.timer = "host";
  record.sm_clock_hz = session.conditions.sm_clock_hz;
  record.memory_clock_hz = session.conditions.memory_clock_hz;
  record.power_limit_w = session.conditions.power_limit_w;
  record.temperature_c = session.conditions.temperature_c;
  return record;
}
}  // namespace

std::vector<Record> run_launch(Session& session, const PlanPoint& point) {
  std::vector<double> enqueue;     // the CPU's time per launch, asynchronous
  std::vector<double> throughput;  // per launch when the queue never runs dry
  std::vector<double> round_trip;  // launch and wait for the end
  const auto wait = [&] { check(cudaStreamSynchronize(session.stream()), "cudaStreamSynchronize"); };
  for (int round = -1; round < kRounds; ++round) {  // the first round warms up
    auto start = Clock::now();
    for (int i = 0; i < kLaunches; ++i) check(launch_empty(session.stream()), "empty kernel");
    const double queued = seconds_since(start) / kLaunches;
    wait();
    const double done = seconds_since(start) / kLaunches;
    start = Clock::now();
    check(launch_empty(session.stream()), "empty kernel");
    wait();
    if (round < 0) continue;
    enqueue.push_back(queued);
    throughput.push_back(done);
    round_trip.push_back(seconds_since(start));
  }
  Record duration = record_of(point);
  duration.algorithm = "kernel_duration";
  time_call(session, duration, [&] { check(launch_empty(session.stream()), "empty kernel"); });
  return {host_record(session, point, "enqueue", enqueue),
          host_record(session, point, "back_to_back", throughput),
          host_record(session, point, "launch_and_wait", round_trip), duration};
}

}  // namespace tbdsim::measure
