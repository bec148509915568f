// Cross-validation of times that a formula with known parameters made.
#include <cmath>
#include <set>

#include <gmock/gmock.h>

#include "calibrate/cli/crossval_table.h"
#include "calibrate/fit/cross_validation.h"
#include "tests/calibrate/synthetic.h"

namespace tbdsim {
namespace {

const GpuSpecs& gpus() {
  static const GpuSpecs specs = test::specs_of({"titanxp", "p100_pcie"});
  return specs;
}

// Parameters where the priors have them, clocks that the data sheet lets expect.
test::Truth expected_truth() {
  test::Truth truth;
  for (const Parameter& parameter : GemmFamily::parameters) truth.parameters.push_back(parameter.start);
  for (const auto& [name, gpu] : gpus()) truth.rates[name] = {expected_clock(gpu, MathType::fp32).mean, 1};
  return truth;
}

std::vector<Record> true_records() { return test::gemm_records(gpus(), expected_truth()); }

template <class Family>
std::vector<Outcome> outcomes_of(const std::vector<Record>& records, Protocol protocol) {
  CrossvalOptions options;
  options.clocks.expected = clock_priors(records, gpus()).expected;  // no anchors
  options.threads = 1;
  options.baselines = false;
  return cross_validate<Family>(samples_of<Family>(records, gpus()), protocol, options);
}

class EveryProduct : public testing::TestWithParam<Protocol> {};

INSTANTIATE_TEST_SUITE_P(, EveryProduct,
                         testing::Values(Protocol::shapes, Protocol::gpu, Protocol::gpu_one_gemm),
                         [](const auto& protocol) {
                           return std::string(kProtocolNames[static_cast<std::size_t>(protocol.param)]);
                         });

TEST_P(EveryProduct, IsLeftOutOnceAndPredictedByTheTrueFormula) {
  const std::vector<Record> records = true_records();
  const std::vector<Outcome> outcomes = outcomes_of<GemmFamily>(records, GetParam());
  EXPECT_EQ(outcomes.size(), records.size());
  EXPECT_LT(summarize(outcomes, &Outcome::formula).geometric, 0.005);
  EXPECT_LT(summarize(outcomes, &Outcome::residual).geometric, 0.005);
}

// Layers at batches of 16, 64 and 256: those of 256 are held out.
TEST(LargestBatch, IsExtrapolatedTo) {
  std::vector<Record> records;
  const Hardware hardware = hardware_of(gpus().at("titanxp"), MathType::fp32);
  std::vector<double> parameters;
  for (const Parameter& parameter : RecurrentFamily::parameters) parameters.push_back(parameter.start);
  for (const std::int64_t hidden : {256, 512, 1024, 1760, 2048}) {
    for (const std::int64_t batch : {16, 64, 256}) {
      Record record = test::gemm_record("titanxp", 0, 0, 0);
      record.op = "lstm";
      record.phase = "forward";
      record.generation = "cudnn6";
      record.shape = {.batch = batch, .hidden = hidden, .layers = 1, .directions = 1, .steps = 25};
      record.time_s = kernel_time<RecurrentFamily>(
                          std::get<RecurrentCall>(*call_of(record)), hardware,
                          {expected_clock(gpus().at("titanxp"), MathType::fp32).mean, 1}, parameters)
                          .parts.total;
      records.push_back(record);
    }
  }
  const auto outcomes = outcomes_of<RecurrentFamily>(records, Protocol::largest_batch);
  ASSERT_EQ(outcomes.size(), 5u);
  std::set<double> held, largest;
  for (const Outcome& o : outcomes) held.insert(o.measured);
  for (const Record& record : records) {
    if (record.shape.batch == 256) largest.insert(record.time_s);
  }
  EXPECT_EQ(held, largest);
  EXPECT_LT(summarize(outcomes, &Outcome::formula).geometric, 0.005);
}

// One product takes five times as long as the formula says, on both cards. Were it seen by the fold that
// predicts it, its own residual would correct it; left out, it is missed by that factor.
TEST(Shapes, AFoldNeverSeesItsShapes) {
  std::vector<Record> records = true_records();
  std::set<double> slowed;
  for (Record& record : records) {
    if (record.shape.m != 1760 || record.shape.n != 256 || record.shape.k != 1760) continue;
    record.time_s *= 5;
    slowed.insert(record.time_s);
  }
  ASSERT_EQ(slowed.size(), 2u);
  std::set<int> folds;
  int found = 0;
  for (const Outcome& o : outcomes_of<GemmFamily>(records, Protocol::shapes)) {
    if (!slowed.contains(o.measured)) continue;
    ++found;
    folds.insert(o.fold);
    EXPECT_NEAR(o.residual / o.measured, 0.2, 0.04);
  }
  EXPECT_EQ(found, 2);
  EXPECT_EQ(folds.size(), 1u) << "held out on every card at once";
}

// A card that runs at half the clock that its data sheet lets expect is missed by that factor, but not where
// one large product of its own was measured.
TEST(Gpu, OneProductTellsAHeldOutCardsClock) {
  test::Truth truth = expected_truth();
  truth.rates["p100_pcie"].clock /= 2;
  const std::vector<Record> records = test::gemm_records(gpus(), truth);
  CrossvalOptions options;
  options.clocks = clock_priors(records, gpus());
  options.threads = 1;
  options.baselines = false;
  const auto samples = samples_of<GemmFamily>(records, gpus());
  const auto bias_on_p100 = [&](Protocol protocol) {
    std::vector<Outcome> mine;
    for (const Outcome& o : cross_validate<GemmFamily>(samples, protocol, options)) {
      if (o.gpu == "p100_pcie") mine.push_back(o);
    }
    return summarize(mine, &Outcome::formula).bias;
  };
  EXPECT_LT(bias_on_p100(Protocol::gpu), -0.2);
  EXPECT_NEAR(bias_on_p100(Protocol::gpu_one_gemm), 0, 0.1);
}

// Times scattered by 15 %: four in five lie within their interval, for any nominal width.
TEST(Shapes, FourInFiveLieWithinTheirInterval) {
  std::vector<Record> records = true_records();
  test::Noise noise;
  for (Record& record : records) record.time_s *= std::exp(0.15 * noise());
  const auto outcomes = outcomes_of<GemmFamily>(records, Protocol::shapes);
  double inside = 0;
  for (const Outcome& o : outcomes) inside += o.inside ? 1 : 0;
  EXPECT_NEAR(inside / static_cast<double>(outcomes.size()), 0.8, 0.08);
}

Outcome outcome(const std::string& gpu, double predicted, bool inside = true) {
  Outcome made;
  made.family = "gemm";
  made.block = "cublas8/fp32";
  made.gpu = gpu;
  made.phase = "gemm";
  made.set = "owner/table@1";
  made.measured = 1;
  made.formula = made.residual = made.constant = made.roofline = predicted;
  made.inside = inside;
  return made;
}

// Half, twice and as measured: ln 2 twice of three.
TEST(Summarize, ByHand) {
  const std::vector<Outcome> three = {outcome("a", 0.5), outcome("a", 2), outcome("a", 1)};
  const ErrorSummary s = summarize(three, &Outcome::residual);
  EXPECT_EQ(s.count, 3);
  EXPECT_NEAR(s.geometric, std::pow(2.0, 2.0 / 3) - 1, 1e-12);
  EXPECT_NEAR(s.bias, 0, 1e-12);
  EXPECT_EQ(s.median, 0.5);
  EXPECT_DOUBLE_EQ(s.p90, 0.9);  // position 1.8 of 0, 0.5 and 1
  EXPECT_EQ(summarize({}, &Outcome::residual).count, 0);
}

// Card a is off by a factor of two in one call, card b by nothing in three: 50 % over cards, not 19 % over
// calls. Three of four are inside.
TEST(CrossvalSheet, MeansAreOverCards) {
  const Table table = cross_validation_table(
      {outcome("a", 2, false), outcome("b", 1), outcome("b", 1), outcome("b", 1)}, true);
  ASSERT_EQ(table.rows.size(), 4u);  // all, by card (2), by phase (1)
  const auto value = [&](std::size_t row, const std::string& column) {
    std::size_t c = 0;
    while (table.columns[c].key != column) ++c;
    return std::get<double>(table.rows[row][c].value);
  };
  EXPECT_NEAR(value(0, "error"), 0.5, 1e-12);
  EXPECT_NEAR(value(0, "coverage"), 0.75, 1e-12);
  EXPECT_NEAR(value(0, "calls"), 4, 0);
  EXPECT_NEAR(value(1, "error"), 1, 1e-12);
  EXPECT_NEAR(value(2, "error"), 0, 1e-12);
  EXPECT_EQ(cross_validation_table({outcome("a", 2)}, false).rows.size(), 1u);
}

}  // namespace
}  // namespace tbdsim
