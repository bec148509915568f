// Records whose times are those of a formula with known parameters: what a fit must find again.
#pragma once

#include <cmath>

#include "calibrate/fit/family_fit.h"
#include "calibrate/fit/sample_selection.h"
#include "calibrate/samples/call_of_record.h"
#include "calibrate/samples/samples.h"
#include "costmodel/families/families.h"
#include "hwspecs/base/catalog.h"

namespace tbdsim::test {

// Parameters of the formula.
struct Truth {
  std::vector<double> parameters;                           // of the family
  std::map<std::string, AchievedFraction<double>> rates{};  // by GPU
};

[[nodiscard]] inline GpuSpecs specs_of(const std::vector<std::string>& names) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  GpuSpecs specs;
  for (const std::string& name : names) specs[name] = read_gpu(catalog.find(Kind::gpu, name), catalog);
  return specs;
}

// For GEMMs: the most influential parameters differ from the start of their priors.
[[nodiscard]] inline Truth gemm_truth() {
  Truth truth{{}, {{"titanxp", {0.85, 1}}, {"p100_pcie", {0.95, 1}}}};
  for (const Parameter& parameter : GemmFamily::parameters) truth.parameters.push_back(parameter.start);
  truth.parameters[TileParameter::kEfficiency] = 0.85;
  truth.parameters[TileParameter::kSmallTile] = 0.95;
  truth.parameters[TileParameter::kPrologue] = 20;
  truth.parameters[TileParameter::kBandwidth] = 0.65;
  truth.parameters[TileParameter::kLaunch] = 8e-6;
  truth.parameters[GemmFamily::kSplit] = 8e-6;
  return truth;
}

[[nodiscard]] inline Record gemm_record(const std::string& gpu, std::int64_t m, std::int64_t n,
                                        std::int64_t k) {
  Record record;
  record.gpu = gpu;
  record.generation = "cublas8";
  record.precision = "fp32";
  record.op = "gemm";
  record.layout = "NN";
  record.cache = "hot";
  record.timer = "host";
  record.shape = {.m = m, .n = n, .k = k};
  record.source = "made by a test";
  return record;
}

[[nodiscard]] inline double true_time(const Record& record, const GpuSpec& gpu, const Truth& truth) {
  return kernel_time<GemmFamily>(std::get<GemmCall>(*call_of(record)), hardware_of(gpu, MathType::fp32),
                                 truth.rates.at(record.gpu), truth.parameters)
      .parts.total;
}

// Products from small to large on each GPU: 4 x 5 x 4 of them.
[[nodiscard]] inline std::vector<Record> gemm_records(const GpuSpecs& gpus, const Truth& truth) {
  std::vector<Record> records;
  for (const auto& [name, gpu] : gpus) {
    for (const std::int64_t m : {64, 500, 1760, 4096}) {
      for (const std::int64_t n : {16, 64, 256, 900, 3000}) {
        for (const std::int64_t k : {100, 512, 1760, 6000}) {
          records.push_back(gemm_record(name, m, n, k));
          records.back().time_s = true_time(records.back(), gpu, truth);
        }
      }
    }
  }
  return records;
}

// A fixed sequence that looks normal: mean 0, standard deviation 1 (sums of twelve uniform numbers).
class Noise {
 public:
  double operator()() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  double uniform() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state_ >> 11U) / 9007199254740992.0;  // 2^53
  }
  std::uint64_t state_ = 42;
};

}  // namespace tbdsim::test
