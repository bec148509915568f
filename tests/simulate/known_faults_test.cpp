// Runs whose program logs something else than its unit says are context, with the reason.
#include <sstream>

#include <gmock/gmock.h>

#include "simulate/validation/validate_runs.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// One GPU, two GPUs, two GPUs under an older version, two GPUs of another set.
constexpr const char* kRuns =
    "set,group,use,split,gpu,framework,version,precision,model,variant,batch_per_gpu,gpus,machines,metric,"
    "value,unit\n"
    "lab,g,time,score,v100,pytorch,\"box, torch 2.3\",amp,ssd300,,8,1,1,throughput,100,images/s\n"
    "lab,g,time,score,v100,pytorch,\"box, torch 2.3\",amp,ssd300,,8,2,1,throughput,400,images/s\n"
    "lab,g,time,score,v100,pytorch,\"box, torch 1.4\",amp,ssd300,,8,2,1,throughput,200,images/s\n"
    "other,g,time,score,v100,pytorch,\"box, torch 2.3\",amp,ssd300,,8,2,1,throughput,200,images/s\n";

Validation validate(const std::vector<KnownFault>& faults) {
  std::istringstream in(kRuns);
  const RunsTable table{in, "runs.csv"};
  return validate_runs(
      std::span(&table, 1), "group", faults,
      [](const RunColumns&, std::span<const std::string>) {
        return RowPrediction{"ok", 200, {150, 250}};
      },
      [](std::size_t) {});
}

const KnownFault kFault{.set = "lab",
                        .model = "ssd300",
                        .framework = "pytorch",
                        .versions = {"torch 1.13", "torch 2."},
                        .several = true,
                        .why = "counted twice"};

TEST(KnownFaults, RowsOfAFaultAreContext) {
  EXPECT_EQ(validate({}).groups.size(), 1u);
  const Validation v = validate({kFault});
  ASSERT_EQ(v.groups.size(), 2u);
  EXPECT_EQ(v.groups[0].section, "score");
  EXPECT_EQ(v.groups[0].rows, 3);
  EXPECT_EQ(v.groups[1].section, "context");
  EXPECT_EQ(v.groups[1].rows, 1);
  EXPECT_NEAR(v.groups[1].mean, 0.5, 1e-12);  // 200 predicted, 400 logged
  EXPECT_THAT(v.set_aside, ElementsAre(Pair("ssd300 of lab: counted twice", 1)));
}

TEST(KnownFaults, OneGpuCountsWhereAnyDoes) {
  KnownFault any = kFault;
  any.several = false;
  EXPECT_THAT(validate({any}).set_aside, ElementsAre(Pair("ssd300 of lab: counted twice", 2)));
}

TEST(KnownFaults, ThoseOfTheProjectHaveAReason) {
  const std::vector<KnownFault> faults = known_faults(test::source_specs().catalog());
  ASSERT_FALSE(faults.empty());
  for (const KnownFault& fault : faults) {
    EXPECT_FALSE(fault.versions.empty());
    EXPECT_THAT(fault.why, HasSubstr(" "));
  }
}

}  // namespace
}  // namespace tbdsim
