// A table of records that is accepted becomes samples that a fit can use: finite sizes, times above zero, and
// a formula for each that says a finite time.
#include <cmath>
#include <sstream>

#include "calibrate/samples/samples.h"
#include "costmodel/families/families.h"
#include "tests/fuzz/memory_file.h"

namespace {
using namespace tbdsim;

constexpr std::size_t kSomeRecords = 50;

std::vector<Record> read_some(std::istream& in) {
  RecordReader reader(in, "records.csv");
  std::vector<Record> records;
  for (Record record; records.size() < kSomeRecords && reader.next(record);) {
    record.gpu = "titanxp";
    records.push_back(record);
  }
  return records;
}

template <class Family>
void check(const std::vector<Record>& records, const GpuSpecs& gpus) {
  std::vector<double> start;
  for (const Parameter& parameter : Family::parameters) start.push_back(parameter.start);
  for (const Sample<Family>& s : samples_of<Family>(records, gpus)) {
    fuzz::require(s.time_s > 0 && std::isfinite(s.time_s) && std::isfinite(s.sigma));
    for (const double x : s.features.x) fuzz::require(std::isfinite(x));
    const double formula = kernel_time<Family>(s.call, s.hardware, {0.9, 1}, start).parts.total;
    fuzz::require(formula > 0 && std::isfinite(formula));
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  static const GpuSpecs gpus = {{"titanxp", read_gpu(catalog.find(Kind::gpu, "titanxp"), catalog)}};
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  return fuzz::run([&] {
    const std::vector<Record> records = read_some(in);
#define TBDSIM_CHECK(Family) check<Family>(records, gpus);
    TBDSIM_FOR_EACH_FAMILY(TBDSIM_CHECK)
#undef TBDSIM_CHECK
  });
}
