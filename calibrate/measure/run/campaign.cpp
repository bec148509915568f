#include "calibrate/measure/run/campaign.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "calibrate/measure/ops/ops.h"
#include "calibrate/measure/ops/timing.h"
#include "calibrate/measure/plan/op_table.h"
#include "calibrate/measure/plan/schedule.h"
#include "calibrate/measure/statistics/throttle.h"

namespace tbdsim::measure {
namespace {
using Clock = std::chrono::steady_clock;
constexpr double kMinute = 60;
constexpr double kSteadyClocks_s =
    0.5;  // busy before the first point; a card needs some 0.3 s to leave idle clocks
constexpr auto kPause = std::chrono::seconds(2);
constexpr std::int64_t kReferenceSize = 2048;  // 17 Gflop: 0.4 ms on the fastest cards, 10 ms on the slowest
constexpr double kWorthSaying = 1.10;

class Campaign {
 public:
  Campaign(Session& session, const Plan& plan, double minutes, ResultFile& file, Progress& progress)
      : session_(session),
        plan_(plan),
        rates_(rates_of(session.device)),
        box_(minutes * kMinute),
        file_(file),
        progress_(progress) {
    reference_.op = "gemm";
    reference_.precision = "fp32";
    reference_.layout = "NN";
    reference_.cache = "hot";
    reference_.shape = {.m = kReferenceSize, .n = kReferenceSize, .k = kReferenceSize};
  }

  CampaignResult run();

 private:
  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  [[nodiscard]] std::string generation(const PlanPoint& point) const {
    return generation_of(find_op(point.op)->library, session_.versions);
  }
  void reach_steady_clocks();
  void time_reference();
  void watch_clocks();
  void visit(const PlanPoint& point);
  void complete(Record& record, const PlanPoint& point) const;

  Session& session_;
  const Plan& plan_;
  GpuRates rates_;
  TimeBox box_;
  ResultFile& file_;
  Progress& progress_;
  PlanPoint reference_;
  ThrottleWatch watch_;
  Clock::time_point start_ = Clock::now();
  CampaignResult result_;
  bool said_refusal_ = false;
};

void Campaign::time_reference() {
  StoppingRule rule;
  rule.first_burst = rule.most_samples = 9;
  Record record = record_of(reference_);
  const cublasHandle_t blas = session_.blas();
  const std::int64_t elements = kReferenceSize * kReferenceSize;
  const DeviceBuffer a = session_.random(Type::f32, elements);
  const DeviceBuffer b = session_.random(Type::f32, elements);
  const DeviceBuffer c(a.bytes());
  constexpr int kSize = static_cast<int>(kReferenceSize);
  const float alpha = 1;
  const float beta = 0;
  time_call(
      session_, record,
      [&] {
        check(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kSize, kSize, kSize, &alpha, a.as<float>(), kSize,
                          b.as<float>(), kSize, &beta, c.as<float>(), kSize),
              "reference GEMM");
      },
      rule);
  watch_.add(record.time_s, elapsed());
  if (!session_.nvml.fast()) session_.conditions = session_.nvml.read();
}

void Campaign::reach_steady_clocks() {
  const double start = elapsed();
  try {
    while (elapsed() < start + kSteadyClocks_s) time_reference();
    watch_ = ThrottleWatch();  // the first ones ran at rising clocks
  } catch (const PointError& error) {
    progress_.say(std::string("no reference GEMM, slowdown stays empty: ") + error.what());
    recover();
  }
}

void Campaign::watch_clocks() {
  if (!watch_.due(elapsed())) return;
  try {
    time_reference();
    while (watch_.should_pause() && !interrupted() && box_.fits(kMinute / 10, elapsed())) {
      progress_.say("the reference GEMM takes " + std::to_string(watch_.slowdown()) +
                    " times its best: pausing 2 s");
      watch_.count_pause();
      std::this_thread::sleep_for(kPause);
      time_reference();
    }
  } catch (const PointError&) {
    recover();
  }
  result_.worst_slowdown = std::max(result_.worst_slowdown, watch_.slowdown());
}

void Campaign::complete(Record& record, const PlanPoint& point) const {
  record.gpu = session_.device.name;
  record.generation = generation(point);
  record.slowdown = watch_.slowdown();
  record.driver = session_.conditions.driver.empty() ? "CUDA " + session_.versions.driver_api
                                                     : session_.conditions.driver;
  record.cuda = session_.versions.cuda;
  record.cudnn = session_.versions.cudnn;
  record.cublas = session_.versions.cublas;
  record.source = "tbd-measure " TBDSIM_VERSION;
}

void Campaign::visit(const PlanPoint& point) {
  const double guess = guess_seconds(point, rates_);
  if (!box_.fits(guess, elapsed())) {
    ++result_.out_of_time;
    return;
  }
  const double start = elapsed();
  std::vector<Record> rows;
  try {
    rows = runner_of(point.op)(session_, point);
    for (Record& row : rows) complete(row, point);
    std::erase_if(rows, [&](const Record& row) {
      const auto why = implausible(row);
      if (why) progress_.say("dropped " + to_text(point) + " " + row.algorithm + ": " + *why);
      return why.has_value();
    });
  } catch (const PointError& error) {
    progress_.say("skipped " + to_text(point) + ": " + error.what());
    rows.clear();
    recover();
  }
  box_.took(guess, elapsed() - start);
  watch_.count_point();
  if (rows.empty()) {
    ++result_.skipped;
    return;
  }
  file_.append(rows);
  ++result_.measured;
  const auto fastest = std::min_element(rows.begin(), rows.end(),
                                        [](const Record& a, const Record& b) { return a.time_s < b.time_s; });
  result_.highlights.add(point, fastest->time_s);
}

CampaignResult Campaign::run() {
  bool steady = false;
  for (std::size_t i = 0; i < plan_.points.size(); ++i) {
    const PlanPoint& point = plan_.points[i];
    if (interrupted()) {
      result_.not_reached = plan_.points.size() - i;
      break;
    }
    if (file_.has(session_.device.name, generation(point), key(point))) {
      ++result_.already_done;
      continue;
    }
    progress_.show(i, elapsed(), to_text(point));
    if (point.op != "launch" && !steady) {  // launches are timed before the tracer has ever run
      reach_steady_clocks();
      steady = true;
    }
    if (steady) watch_clocks();
    visit(point);
    if (!session_.tracer.usable() && !said_refusal_) {
      progress_.say("CUPTI is not used, times hold launch gaps: " + session_.tracer.refusal());
      said_refusal_ = true;
    }
  }
  progress_.show(plan_.points.size() - result_.not_reached, elapsed(), "");
  progress_.finish();
  if (result_.worst_slowdown > kWorthSaying) {
    progress_.say("the card slowed down to 1/" + std::to_string(result_.worst_slowdown) +
                  " at worst; see the column slowdown");
  }
  return std::move(result_);
}
}  // namespace

CampaignResult run_campaign(Session& session, const Plan& plan, double minutes, ResultFile& file,
                            Progress& progress) {
  return Campaign(session, plan, minutes, file, progress).run();
}

}  // namespace tbdsim::measure
