#include "calibrate/samples/samples.h"

#include <gtest/gtest.h>

#include "costmodel/families/families.h"
#include "tests/calibrate/synthetic.h"

namespace tbdsim {
namespace {

// An LSTM that fits one kernel is a sample of it unless the record names the other algorithm.
TEST(Samples, AlgorithmOfARecurrentLayer) {
  const GpuSpecs gpus = test::specs_of({"h100_sxm"});
  Record record;
  record.gpu = "h100_sxm";
  record.generation = "cudnn9";
  record.precision = "fp16";
  record.op = "lstm";
  record.phase = "forward";
  record.shape = {.batch = 64, .input_size = 512, .hidden = 512, .steps = 25};
  record.time_s = 1e-4;
  const auto families = [&](const std::string& algorithm) {
    record.algorithm = algorithm;
    return std::pair(samples_of<RecurrentFamily>(std::span(&record, 1), gpus).size(),
                     samples_of<PersistentRecurrentFamily>(std::span(&record, 1), gpus).size());
  };
  EXPECT_EQ(families("PERSIST_STATIC"), std::pair(0UL, 1UL));
  EXPECT_EQ(families(""), std::pair(0UL, 1UL));
  EXPECT_EQ(families("STANDARD"), std::pair(1UL, 0UL));
  record.shape.batch = 256;  // more than PyTorch gives one kernel
  EXPECT_EQ(families("PERSIST_STATIC"), std::pair(0UL, 0UL));
  EXPECT_EQ(families(""), std::pair(1UL, 0UL));
}

}  // namespace
}  // namespace tbdsim
