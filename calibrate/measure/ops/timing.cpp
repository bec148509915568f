#include "calibrate/measure/ops/timing.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "calibrate/measure/plan/plan.h"

namespace tbdsim::measure {
namespace {
using Clock = std::chrono::steady_clock;

constexpr double kMillisecond = 1e-3;
// The stream is held busy this long while a burst is enqueued, so that launch gaps do not show in the events.
constexpr double kHeadStart_s = 300e-6;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void synchronize(Session& session) {
  check(cudaStreamSynchronize(session.stream()), "cudaStreamSynchronize");
}

// Returns what one call costs, with its flush and its launch, from the fastest warm-up call.
double warm_up(Session& session, bool cold, const std::function<void()>& call, int calls) {
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < calls; ++i) {
    const auto start = Clock::now();
    if (cold) session.flush();
    call();
    check(cudaGetLastError(), "warm-up call");
    synchronize(session);
    fastest = std::min(fastest, seconds_since(start));
  }
  return fastest;
}

struct Samples {
  std::vector<double> busy;    // from the tracer
  std::vector<double> events;  // between events
  CallSpans last;
};

void run_burst(Session& session, bool cold, const std::function<void()>& call, int calls) {
  check(launch_spin(session.stream(), static_cast<long long>(kHeadStart_s * session.device.clock_hz)),
        "spin kernel");
  for (int i = 0; i < calls; ++i) {
    if (cold) session.flush();
    check(launch_begin_mark(session.stream()), "begin mark");
    check(cudaEventRecord(session.begin(i), session.stream()), "cudaEventRecord");
    call();
    check(cudaEventRecord(session.end(i), session.stream()), "cudaEventRecord");
    check(launch_end_mark(session.stream()), "end mark");
  }
  session.read_conditions();  // while the queue is being worked off
}

void read_burst(Session& session, int calls, std::vector<Span> spans, Samples& samples) {
  for (int i = 0; i < calls; ++i) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, session.begin(i), session.end(i)), "cudaEventElapsedTime");
    samples.events.push_back(milliseconds * kMillisecond);
  }
  if (!session.tracer.usable()) return;
  const std::vector<CallSpans> traced = calls_of(std::move(spans));
  if (traced.size() != static_cast<std::size_t>(calls)) {
    session.tracer.refuse("CUPTI returned " + std::to_string(traced.size()) + " of " + std::to_string(calls) +
                          " calls; records were lost");
    return;
  }
  for (const CallSpans& one : traced) samples.busy.push_back(one.busy_s);
  samples.last = traced.back();
}

void fill(Record& record, const Session& session, const Samples& samples) {
  const bool traced = samples.busy.size() == samples.events.size() && samples.last.busy_s > 0;
  const Summary events = summarize(samples.events);
  const Summary best = traced ? summarize(samples.busy) : events;
  record.time_s = best.median;
  record.spread = best.spread;
  record.samples = best.samples;
  record.event_time_s = events.median;
  record.timer = traced ? "cupti" : "event";
  record.kernel = traced ? samples.last.kernel : "";
  record.kernels = traced ? samples.last.spans : 0;
  record.grid = traced ? samples.last.grid : "";
  record.sm_clock_hz = session.conditions.sm_clock_hz;
  record.memory_clock_hz = session.conditions.memory_clock_hz;
  record.power_limit_w = session.conditions.power_limit_w;
  record.temperature_c = session.conditions.temperature_c;
}
}  // namespace

void time_call(Session& session, Record& record, const std::function<void()>& call,
               const StoppingRule& rule) {
  const bool cold = record.cache == "cold";
  const double call_s = warm_up(session, cold, call, rule.warm_up);
  Samples samples;
  double spent = 0;
  for (;;) {
    const bool traced = !samples.busy.empty();
    const int calls = more_samples(rule, traced ? samples.busy : samples.events, spent, call_s);
    if (calls <= 0) break;
    const auto start = Clock::now();
    session.tracer.start();
    run_burst(session, cold, call, calls);
    synchronize(session);
    read_burst(session, calls, session.tracer.stop(), samples);
    spent += seconds_since(start);
  }
  fill(record, session, samples);
}

}  // namespace tbdsim::measure
