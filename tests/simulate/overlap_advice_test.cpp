// Advice on communication that a step waits for.
#include "simulate/report/overlap_advice.h"

#include <gmock/gmock.h>

namespace tbdsim {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A step of 10 s with so many exposed seconds of tensor and expert parallelism.
LayoutPrediction step_with(double tensor, double expert) {
  LayoutPrediction p;
  p.step = Seconds(10);
  p.communication[static_cast<std::size_t>(LayoutDimension::tensor)].exposed = Seconds(tensor);
  p.communication[static_cast<std::size_t>(LayoutDimension::expert)].exposed = Seconds(expert);
  return p;
}

TEST(OverlapAdvice, NamesWhatATenthOfTheStepWaitsFor) {
  EXPECT_THAT(overlap_advice(step_with(0.99, 0.99), Stack{}), IsEmpty());
  EXPECT_THAT(overlap_advice(step_with(1, 0), Stack{}),
              ElementsAre(AllOf(HasSubstr("10 % of the step waits"), HasSubstr("--overlap-tensor true"))));
  EXPECT_THAT(overlap_advice(step_with(0, 4.5), Stack{}),
              ElementsAre(AllOf(HasSubstr("45 % of the step waits"), HasSubstr("--overlap-experts true"),
                                HasSubstr("--dispatch-once true"))));
}

TEST(OverlapAdvice, LeavesOutWhatTheStackDoes) {
  Stack stack;
  stack.overlaps_tensor = stack.overlaps_experts = true;
  EXPECT_THAT(overlap_advice(step_with(5, 5), stack),
              ElementsAre(AllOf(HasSubstr("--dispatch-once true"), Not(HasSubstr("--overlap-experts")))));
  stack.dispatches_once = true;
  EXPECT_THAT(overlap_advice(step_with(5, 5), stack), IsEmpty());
}

}  // namespace
}  // namespace tbdsim
