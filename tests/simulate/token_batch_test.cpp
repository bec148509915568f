// Batches of tokens.
#include "graphs/token_batch.h"

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

TEST(TokenBatch, AsManyAsFit) {
  EXPECT_EQ(token_batch(TokenBatches::fitting, 2048, 25, 8), 81);
  EXPECT_EQ(token_batch(TokenBatches::fitting, 10, 25, 8), 1);  // one sample at least
}

// tensor2tensor 1.2.7 at batch_size 2048: lengths and sentences of a batch. 2048 / 8 = 256 of the shortest;
// three times that is 768, the highly composite number below it 720, whose divisors the batches are.
TEST(TokenBatch, DivisorsOfTensor2tensorsWindow) {
  const std::int64_t batches[][2] = {{8, 240}, {11, 180}, {14, 144}, {17, 120}, {20, 90},
                                     {26, 72}, {33, 60},  {42, 48},  {55, 36},  {72, 24},
                                     {94, 20}, {124, 16}, {163, 12}, {215, 9}};
  for (const auto& [length, batch] : batches) {
    EXPECT_EQ(token_batch(TokenBatches::dividing, 2048, length, 8), batch) << length;
  }
}

TEST(TokenBatch, EveryNumberOfTokensGivesABatch) {
  for (std::int64_t tokens = 1; tokens < 1'000'000'000; tokens = tokens * 3 + 1) {
    for (const std::int64_t length : {1, 8, 215, 1'000'000}) {
      const std::int64_t batch = token_batch(TokenBatches::dividing, tokens, length, 1);
      EXPECT_GE(batch, 1);
      EXPECT_LE(batch, std::max<std::int64_t>(1, tokens / length));
    }
  }
}

}  // namespace
}  // namespace tbdsim
