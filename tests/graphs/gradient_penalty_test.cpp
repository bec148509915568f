// Passes of several runs: gradients that add up before an update, and a gradient penalty's second order, all
// by hand.
#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"
#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

using test::model_text;
using test::step_of;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

constexpr Lowering kAdded = {.step_gradients = GradientAccumulation::added};

// "layer op xrepeat", the repeat where it is not 1.
std::vector<std::string> program(const TrainingStep& step) {
  std::vector<std::string> lines;
  for (const Kernel& kernel : step.kernels) {
    std::string line =
        step.layers[static_cast<std::size_t>(kernel.layer)].name + ' ' + std::string(kernel.op);
    if (kernel.repeat > 1) line += " x" + std::to_string(kernel.repeat);
    lines.push_back(line);
  }
  return lines;
}

struct Life {
  TensorRole role;
  int layer;
  std::int64_t bytes;  // of a sample
  int first, last;
  friend bool operator==(const Life&, const Life&) = default;
};
void PrintTo(const Life& life, std::ostream* out) {
  *out << "role " << static_cast<int>(life.role) << " layer " << life.layer << " bytes " << life.bytes
       << " kernels " << life.first << "-" << life.last;
}

std::vector<Life> lives(const TrainingStep& step) {
  std::vector<Life> all;
  for (const Tensor& t : step.tensors) {
    all.push_back({t.role, t.layer, t.bytes.per_sample, t.first_use, t.last_use});
  }
  return all;
}

TrainingStep penalty_of(const std::string& data, const std::string& layers, const Lowering& lowering = {}) {
  return step_of(test::model_from(model_text(data, layers, "sgd", "[{graph: main, backward: penalty}]")),
                 lowering);
}

std::int64_t training_macs(const TrainingStep& step, int layer) {
  return step.layers[static_cast<std::size_t>(layer)].training_macs.per_sample;
}

// Two products, 6 -> 3 -> 2: forward, back to the data, the penalty, along the graph. Nothing is
// input_gradient_depends_on_input, so nothing goes back again: 18 and 6 multiply-adds four times each.
constexpr const char* kLinear =
    "      - {name: a, type: fully_connected, outputs: 3, bias: false}\n"
    "      - {name: b, type: fully_connected, outputs: 2, bias: false}\n";

TEST(GradientPenalty, OfALinearGraph) {
  const TrainingStep step = penalty_of("[6]", kLinear);
  EXPECT_THAT(program(step), ElementsAre("a matmul", "b matmul", "b matmul", "a matmul", "a norm", "a scale",
                                         "a matmul", "a matmul", "b matmul", "b matmul", "a sgd", "b sgd"));
  EXPECT_EQ(training_macs(step, 0), 4 * 18);
  EXPECT_EQ(training_macs(step, 1), 4 * 6);
}

// Kernels as above. The data's gradient is 24 B, a's output 12 B, b's 8 B.
TEST(GradientPenalty, LifetimesInALinearGraph) {
  using enum TensorRole;
  EXPECT_THAT(
      lives(penalty_of("[6]", kLinear)),
      IsSupersetOf({Life{feature_map, 0, 12, 0, 9},    // b's weights have a gradient, so it keeps its input
                    Life{feature_map, 1, 8, 1, 1},     // no kernel reads it
                    Life{gradient_map, 0, 12, 2, 7},   // made by b, read by a's product in 3 and by that in 7
                    Life{gradient_map, -1, 24, 3, 9},  // the data's
                    Life{gradient_map, 0, 12, 6, 9},   // along the graph: from a to b's products
                    Life{gradient_map, 1, 8, 8, 9}}));
}

// A relu between them hands zeros back (kernel 11): with them a's weights get a gradient once more, 18.
constexpr const char* kBent =
    "      - {name: a, type: fully_connected, outputs: 3, bias: false}\n"
    "      - {name: relu, type: relu}\n"
    "      - {name: b, type: fully_connected, outputs: 2, bias: false}\n";

TEST(GradientPenalty, GoesBackFromCurvedLayers) {
  const TrainingStep step = penalty_of("[6]", kBent);
  EXPECT_THAT(program(step),
              ElementsAre("a matmul", "relu relu", "b matmul",  // forward
                          "b matmul", "relu relu", "a matmul",  // back to the data
                          "a norm", "a scale",                  // the penalty
                          "a matmul", "a matmul", "relu relu", "relu fill", "b matmul", "b matmul",  // along
                          "a matmul", "a sgd", "b sgd"));
  EXPECT_EQ(training_macs(step, 0), 5 * 18);
  EXPECT_EQ(training_macs(step, 2), 4 * 6);
  using enum TensorRole;
  EXPECT_THAT(lives(step), IsSupersetOf({Life{feature_map, -1, 24, 0, 14},   // a's weights read the data last
                                         Life{feature_map, 1, 12, 1, 13},    // the mask in 10, b in 13
                                         Life{gradient_map, 0, 12, 10, 14},  // relu's zeros
                                         Life{gradient_map, 0, 12, 8, 11},   // along: from a to relu
                                         Life{gradient_map, 1, 12, 10, 13}}));
}

std::vector<std::string> from_kernel(const std::vector<std::string>& lines, std::size_t first) {
  return {lines.begin() + static_cast<std::ptrdiff_t>(first), lines.end()};
}

// a's output is read by a relu and by the sum; on the way back it gets the gradient of the first relu's
// zeros only. Behind the sum another relu: its zeros go to the sum, which passes them to both of its inputs:
// two gradients for a and a sum of them with the first relu's zeros, which its backward pass now adds to.
TEST(GradientPenalty, GradientsOnTheWayBackAreSummed) {
  const TrainingStep step = penalty_of("[6]",
                                       "      - {name: a, type: fully_connected, outputs: 3, bias: false}\n"
                                       "      - {name: first, type: relu}\n"
                                       "      - {name: sum, type: add, from: [first, a]}\n"
                                       "      - {name: second, type: relu}\n"
                                       "      - {name: b, type: fully_connected, outputs: 2, bias: false}\n");
  const auto lines = program(step);
  EXPECT_THAT(from_kernel(lines, 5),
              ElementsAre("b matmul", "second relu", "first relu", "a gradient_sum", "a matmul", "a norm",
                          "a scale",  //
                          "a matmul", "a matmul", "first relu", "first fill", "sum add", "second relu",
                          "second fill", "b matmul", "b matmul",  //
                          "first relu", "a gradient_sum", "a matmul", "a sgd", "b sgd"));
  // first's zeros, first's own gradient, and the sum's, passed on: three terms of 12 B.
  EXPECT_EQ(step.kernels[22].read_bytes, (Size{0, 3 * 12}));
  using enum TensorRole;
  EXPECT_THAT(lives(step), IsSupersetOf({Life{gradient_map, 2, 12, 17, 22},  // second's zeros: until the sum
                                         Life{gradient_map, 0, 12, 14, 23},  // first's, where the sum is made
                                         Life{gradient_map, 0, 12, 21, 22}}));
}

constexpr const char* kJudge =
    "title: T\nsample: image\nvariants:\n  v: {description: d, source: s, optimizer: sgd}\n"
    "graphs:\n"
    "  maker: {inputs: {noise: [4]}, outputs: [image], layers: [\n"
    "    {name: hidden, type: fully_connected, outputs: 5, bias: false}, {name: relu, type: relu},\n"
    "    {name: image, type: fully_connected, outputs: 6, bias: false}]}\n"
    "  judge: {inputs: {image: [6]}, layers: [{name: score, type: fully_connected, outputs: 2}, "
    "{name: loss, type: mean_loss}]}\n"
    "training:\n";

TrainingStep step_with(const std::string& training, const Lowering& lowering = {}) {
  return step_of(test::model_from(kJudge + training), lowering);
}

std::vector<std::string> only(const std::vector<std::string>& lines, const std::string& what) {
  std::vector<std::string> found;
  for (const std::string& line : lines) {
    if (line.find(what) != std::string::npos) found.push_back(line);
  }
  return found;
}

// Tensors that the maker keeps for its backward pass outlive the judge's: relu's output, 20 B, from its
// kernel 1 past the judge's kernels 3 to 7 to the product with it in 8 and its own gradient in 10.
TEST(Runs, AMakersFeatureMapsOutliveTheJudge) {
  const TrainingStep step = step_with("  - {runs: [{graph: maker}, {graph: judge, backward: inputs}]}\n");
  EXPECT_THAT(program(step),
              ElementsAre("hidden matmul", "relu relu", "image matmul", "score matmul", "score bias_add",
                          "loss mean", "loss fill", "score matmul", "image matmul", "image matmul",
                          "relu relu", "hidden matmul", "hidden sgd", "image sgd"));
  const int relu = 3;  // the judge's layers stand first
  EXPECT_THAT(lives(step), Contains(Life{TensorRole::feature_map, relu, 20, 1, 10}));
}

// Without a backward pass of the maker its maps die on the way: the first pass has 3 kernels forward, 4 back
// and 2 updates, so relu is kernel 10 of the step and its output is read by the next one only.
TEST(Runs, AMakerThatOnlyMakesKeepsNothing) {
  const TrainingStep step = step_with(
      "  - {runs: [{graph: maker}]}\n"
      "  - {runs: [{graph: maker, backward: none}, {graph: judge}]}\n");
  EXPECT_THAT(lives(step), Contains(Life{TensorRole::feature_map, 3, 20, 10, 11}));
}

// Products that run in place add by themselves; otherwise the second run's gradients, of 12 weights and 2
// biases, are added by kernels, in every repeat.
TEST(Runs, TheSecondRunOfAGraphAddsItsGradients) {
  const std::string training =
      "  - {runs: [{graph: maker}]}\n  - {runs: [{graph: judge}, {graph: judge}], repeat: 5}\n";
  EXPECT_THAT(only(program(step_with(training)), "accumulate"), IsEmpty());
  const TrainingStep added = step_with(training, kAdded);
  EXPECT_THAT(only(program(added), "accumulate"), ElementsAre("score accumulate x5", "score accumulate x5"));
  for (const Kernel& kernel : added.kernels) {
    if (kernel.op == "accumulate" && std::get<VectorShape>(kernel.shape).elements == fixed_size(12)) {
      EXPECT_EQ(kernel.read_bytes, fixed_size(2 * 12 * 4));
      EXPECT_EQ(kernel.written_bytes, fixed_size(12 * 4));
    }
  }
}

// In place both runs' products add to the 12 weights' gradient, which they read, and which is zeroed before
// each of the 5 updates. A run alone writes it.
TEST(Runs, AdditionsInPlaceReadAndStartFromZero) {
  const auto reads = [](const std::string& judge) {
    std::vector<std::int64_t> all;
    const TrainingStep step = step_with("  - {runs: [{graph: maker}]}\n" + judge);
    for (const Kernel& kernel : step.kernels) {
      const bool of_judge = step.layers[static_cast<std::size_t>(kernel.layer)].name == "score";
      if (of_judge && kernel.op == "matmul" && kernel.phase == Phase::backward_weights)
        all.push_back(kernel.read_bytes.fixed);
    }
    return all;
  };
  const std::string twice = "  - {runs: [{graph: judge}, {graph: judge}], repeat: 5}\n";
  EXPECT_THAT(reads(twice), ElementsAre(12 * 4, 12 * 4));
  EXPECT_THAT(only(program(step_with("  - {runs: [{graph: maker}]}\n" + twice)), "score fill"),
              ElementsAre("score fill x5", "score fill x5"));
  EXPECT_THAT(reads("  - {graph: judge}\n"), ElementsAre(0));
  EXPECT_THAT(reads("  - {graph: judge, update: false}\n  - {graph: judge}\n"), ElementsAre(12 * 4, 12 * 4));
}

// A penalty after an ordinary run: the weights' gradient along the graph is added; the bias has none, since
// it is no part of the image's gradient.
TEST(Runs, APenaltyAddsToTheWeightsOnly) {
  const TrainingStep step = step_with(
      "  - {runs: [{graph: maker}]}\n  - {runs: [{graph: judge, backward: penalty}, {graph: judge}]}\n",
      kAdded);
  EXPECT_THAT(only(program(step), "accumulate"), ElementsAre("score accumulate"));
}

// Four passes before an update: the first writes the gradients, three add to them, two of these in the pass
// that is repeated. Where products add in place, the gradients are zeroed at first instead.
TEST(Runs, PassesAddUpUntilTheUpdate) {
  const std::string training =
      "  - {graph: maker}\n  - {graph: judge, update: false, repeat: 3}\n  - {graph: judge}\n";
  const auto added = program(step_with(training, kAdded));
  EXPECT_THAT(only(added, "accumulate"), ElementsAre("score accumulate x2", "score accumulate x2",
                                                     "score accumulate", "score accumulate"));
  EXPECT_THAT(only(added, "score fill"), IsEmpty());
  const auto in_place = program(step_with(training));
  EXPECT_THAT(only(in_place, "accumulate"), IsEmpty());
  EXPECT_THAT(only(in_place, "score fill"), ElementsAre("score fill", "score fill"));
  EXPECT_THAT(only(in_place, "score sgd"), ElementsAre("score sgd", "score sgd"));
}

// Two layers read one input of a graph that is run back to its inputs: their gradients are summed, 2 x 24 B.
TEST(Runs, GradientsOfAnInputAreSummed) {
  const std::string text =
      model_text("[6]",
                 "      - {name: a, type: fully_connected, outputs: 3, bias: false}\n"
                 "      - {name: b, type: fully_connected, from: data, outputs: 3, bias: false}\n"
                 "      - {name: sum, type: add, from: [a, b]}\n",
                 "sgd", "[{graph: main, backward: inputs}]");
  const TrainingStep step = step_of(test::model_from(text));
  ASSERT_EQ(step.kernels.back().op, "gradient_sum");
  EXPECT_EQ(step.kernels.back().read_bytes, (Size{0, 48}));
  // Kernels 3 and 4 write them; in a's, the last, 5 makes the sum.
  EXPECT_THAT(lives(step), IsSupersetOf({Life{TensorRole::gradient_map, -1, 24, 3, 5},
                                         Life{TensorRole::gradient_map, -1, 24, 4, 5}}));
}

// The judge's kernel 7 makes the gradient of the image, 24 B, which the maker's backward pass reads: until
// 11. A run that trains the judge only has none.
TEST(Runs, GradientsOfInputsAreForEarlierRuns) {
  const TrainingStep step =
      step_with("  - {runs: [{graph: maker}, {graph: judge, backward: inputs}]}\n  - {graph: judge}\n");
  std::vector<Life> of_inputs;
  for (const Life& life : lives(step)) {
    if (life.role == TensorRole::gradient_map && life.layer < 0) of_inputs.push_back(life);
  }
  EXPECT_THAT(of_inputs, ElementsAre(Life{TensorRole::gradient_map, -1, 24, 7, 11}));
}

// An addition hands its own gradient, 24 B, to both inputs: there is no other. It has no backward kernel, so
// kernel 2, relu's, is the last.
TEST(Runs, AGradientPassedThroughIsTheInputs) {
  const std::string text =
      "title: T\nsample: image\nvariants:\n  v: {description: d, source: s, optimizer: sgd}\n"
      "graphs:\n  main: {inputs: {x: [6], y: [6]}, outputs: [relu], layers: [\n"
      "    {name: sum, type: add, from: [x, y]}, {name: relu, type: relu}]}\n"
      "training: [{graph: main, backward: inputs}]\n";
  std::vector<Life> gradients;
  for (const Life& life : lives(step_of(test::model_from(text)))) {
    if (life.role == TensorRole::gradient_map) gradients.push_back(life);
  }
  EXPECT_THAT(gradients, ElementsAre(Life{TensorRole::gradient_map, 0, 24, 2, 2}));
}

// Layers that run step by step read the input in 5 steps; what is done with its whole gradient is done once.
TEST(Runs, WholeInputsAreSummedOnce) {
  const std::string layers =
      "      - {name: a, type: fully_connected, outputs: 3, bias: false, per_step: true}\n"
      "      - {name: b, type: fully_connected, from: data, outputs: 3, bias: false, per_step: true}\n"
      "      - {name: sum, type: add, from: [a, b]}\n";
  const TrainingStep step =
      step_of(test::model_from(model_text("[5, 6]", layers, "sgd", "[{graph: main, backward: inputs}]")));
  EXPECT_THAT(program(step), Contains("a matmul x5"));
  EXPECT_THAT(only(program(step), "gradient_sum"), ElementsAre("a gradient_sum"));
  const auto penalty = program(penalty_of("[5, 6]", layers));
  EXPECT_THAT(penalty, IsSupersetOf({"a gradient_sum", "a norm", "a scale"}));
}

}  // namespace
}  // namespace tbdsim
