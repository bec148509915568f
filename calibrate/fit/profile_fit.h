// Records -> profile. For each family, library generation and precision a block:
//
//   measured on the GPU   parameters fitted to its own calls, about those that the generation's GPUs share
//   measured on others    the shared parameters; the clock is what the data sheet lets expect, times what
//                         fitted clocks of the others are of theirs
//
// Residuals of the most telling calls are kept with it. Intervals are as wide as 80 % of the fitted calls
// need when each is left out of that table (of other GPUs: when each card is), its own residual unseen.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "calibrate/fit/family_fit.h"
#include "calibrate/records/record.h"
#include "calibrate/samples/samples.h"
#include "costmodel/profile/profile.h"

namespace tbdsim {

// What several profiles have in common is fitted once: fits by family, block and GPUs.
struct FitMemo {
  std::map<std::string, FamilyFit> fits;
  std::map<std::string, ProfileBlock> blocks;  // of other GPUs, but for the clock
};

struct ProfileFitOptions {
  std::string gpu;                  // whose profile; empty: ...
  std::string architecture;         // ... of the GPUs of an architecture; both empty: of all
  bool without_gpu = false;         // nothing measured on it is used (holdout/<gpu>.yaml) ...
  bool one_gemm = false;            // ... but one large matrix product, for its clock
  std::size_t most_samples = 1000;  // of a family, GPU and block
  std::size_t most_rows = 300;      // of a residual table
  int starts = 2;
  int threads = 2;
  std::set<std::string> unlisted;  // data sets whose licence lets no row of theirs stand in a residual table
  bool refuse_thin = true;  // too few records of an op on the GPU: an error, or the block of other GPUs
  FitMemo* memo = nullptr;  // shared by calls with the same records; or none
  std::function<void(std::string_view)> progress;
};

// Throws UsageError: no records of the GPU, or too few of an op.
[[nodiscard]] Profile fit_profile(std::span<const Record> records, const GpuSpecs& gpus,
                                  const ProfileFitOptions& options);

}  // namespace tbdsim
