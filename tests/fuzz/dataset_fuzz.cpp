// The buckets of a data set that is accepted are within their bounds and hold all samples trained on.
#include <cmath>

#include "graphs/dataset.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tbdsim;
  constexpr std::int64_t kBounds[] = {1, 10, 20, 50, 100, 1000, 2'000'000'000};
  constexpr double kTolerance = 1e-9;
  const fuzz::MemoryFile file(data, size);
  return fuzz::run([&] {
    const Dataset dataset = read_dataset(file.path());
    const auto buckets = buckets_of(dataset.lengths, kBounds);
    fuzz::require(buckets.empty() == dataset.lengths.empty());
    double shares = 0;
    for (const LengthBucket& bucket : buckets) {
      fuzz::require(bucket.mean_length >= 1 - kTolerance &&
                    bucket.mean_length <= static_cast<double>(bucket.length) * (1 + kTolerance));
      shares += bucket.share;
    }
    fuzz::require(buckets.empty() || std::abs(shares - 1) < kTolerance);
  });
}
