// Physics of layouts: of many random legal ones, and of each with more of one thing.
#include <random>

#include "simulate/plan/search.h"
#include "tests/simulate/plan_world.h"

namespace tbdsim::test {
namespace {

constexpr std::size_t kLayouts = 60;

class PlanProperties : public PlanTest {
 protected:
  // So many of all legal layouts, drawn with a fixed seed.
  static std::vector<ParallelLayout> drawn(const PlanInputs& in) {
    std::vector<ParallelLayout> all = legal_layouts(in.shape, in.job, in.fabric.domain);
    std::mt19937 generator(1);
    std::shuffle(all.begin(), all.end(), generator);
    all.resize(std::min(all.size(), kLayouts));
    return all;
  }
  static LayoutPrediction of(const PlanInputs& in, const ParallelLayout& layout) {
    PieceTable table(in);
    return predict_layout(layout, table, FlopsPerSecond(989e12));
  }
};

TEST_F(PlanProperties, PartsSumToTheStepAndToMemory) {
  for (const DecoderShape& shape : {llama3_8b(), mixtral_8x7b()}) {
    const PlanInputs in = inputs(shape, 64, 128);
    PieceTable table(in);
    for (const ParallelLayout& layout : drawn(in)) {
      const LayoutPrediction p = predict_layout(layout, table, FlopsPerSecond(989e12));
      const StepParts& s = p.parts;
      const Seconds sum = s.compute + s.again + s.launch + s.within + s.sends + s.bubble + s.replicas +
                          s.update + s.slowest + s.other;
      EXPECT_NEAR(sum.si(), p.step.si(), 1e-9 * p.step.si()) << to_text(layout);
      for (const RankMemory* m : {&p.first, &p.last}) {
        const Bytes states = m->parameters + m->gradients + m->optimizer;
        EXPECT_GE(m->allocated.si() * (1 + 1e-9), (states + m->activations + m->working).si());
        EXPECT_GE(m->reserved, m->allocated);
        EXPECT_GE(m->device, m->reserved);
      }
    }
  }
}

TEST_F(PlanProperties, BetterNetworksAreNeverSlower) {
  for (const DecoderShape& shape : {llama3_8b(), mixtral_8x7b()}) {
    const PlanInputs in = inputs(shape, 64, 128);
    PlanInputs wide = in, near = in;
    wide.fabric.network = in.fabric.network * 2;
    near.fabric.within = in.fabric.within * 2;
    near.fabric.switched = in.fabric.switched * 2;
    PieceTable table(in), of_wide(wide), of_near(near);
    for (const ParallelLayout& layout : drawn(in)) {
      const Seconds step = predict_layout(layout, table, FlopsPerSecond(989e12)).step * (1 + 1e-12);
      EXPECT_LE(predict_layout(layout, of_wide, FlopsPerSecond(989e12)).step, step) << to_text(layout);
      EXPECT_LE(predict_layout(layout, of_near, FlopsPerSecond(989e12)).step, step) << to_text(layout);
    }
  }
}

// Memory of the fullest rank with more of one thing, where the layout is legal with it.
TEST_F(PlanProperties, MemoryGrowsWithBatchesAndSequencesAndShrinksWithRanksAndStages) {
  const PlanInputs in = inputs(llama3_8b(), 64, 128);
  PlanInputs longer = in;
  longer.job.sequence = 2 * in.job.sequence;
  for (const ParallelLayout& layout : drawn(in)) {
    const auto most = [](const PlanInputs& inputs, const ParallelLayout& l) {
      return of(inputs, l).most.allocated.si();
    };
    const double now = most(in, layout);
    EXPECT_GE(most(longer, layout), now) << to_text(layout);
    ParallelLayout more = layout;
    more.micro_batch *= 2;
    // With fewer micro-batches fewer may be in flight.
    if (is_legal(more, in.shape, in.job) && micro_batches(more, in.job) >= 2 * layout.pp) {
      EXPECT_GE(most(in, more), now) << to_text(more);
    }
    more = layout;
    more.zero = layout.zero + 1;
    if (more.zero < 3 && is_legal(more, in.shape, in.job)) {
      EXPECT_LE(most(in, more), now) << to_text(more);
    }
    more = layout;
    more.recompute = Recomputation::full;
    EXPECT_LE(of(in, more).most.activations.si(), of(in, layout).most.activations.si()) << to_text(more);
    more = layout;
    more.tp *= 2;
    more.dp /= 2;
    more.sequence_parallel = true;
    more.zero = 0;
    ParallelLayout whole = layout;
    whole.zero = 0;
    if (layout.dp % 2 == 0 && is_legal(more, in.shape, in.job) && is_legal(whole, in.shape, in.job)) {
      EXPECT_LE(most(in, more), most(in, whole)) << to_text(more);
    }
  }
}

// A block's last product is a third of the products of one whose inner features are four times its own.
TEST_F(PlanProperties, RecomputationMayEndBeforeTheLastProduct) {
  PlanInputs in = inputs(llama3_8b(), 8, 64);
  const ParallelLayout layout = legal_layout({.zero = 1, .recompute = Recomputation::full}, in.shape, in.job);
  const LayoutPrediction all = of(in, layout);
  in.stack.stops_early = true;
  const LayoutPrediction most = of(in, layout);
  EXPECT_LT(most.parts.again.si(), 0.85 * all.parts.again.si());
  EXPECT_GT(most.parts.again.si(), 0.65 * all.parts.again.si());
  EXPECT_EQ(most.parts.compute, all.parts.compute);
}

TEST_F(PlanProperties, PrimeNumbersOfLayersHavePipelinesToo) {
  DecoderShape shape = llama3_8b();
  shape.layers = 61;
  const PlanInputs in = inputs(shape, 64, 128);
  bool stages = false;
  for (const ParallelLayout& layout : legal_layouts(shape, in.job, in.fabric.domain))
    stages = stages || (layout.pp == 8 && layout.uneven);
  EXPECT_TRUE(stages);
}

}  // namespace
}  // namespace tbdsim::test
