// Records -> profile. For each family, library generation and precision a block:
//
//   parameters are pooled: those that all generations of a library and precision share are the prior of a
//   generation's, which are the prior of a GPU's own
//   measured on the GPU   parameters fitted to its own calls, about those that the generation's GPUs share
//   measured on others    the shared parameters; the clock is the data sheet's expected_clock times the
//                         median ratio of fitted to expected clock of those GPUs. Calls of its own that are
//                         too few for a block of their own are among them
//
// Each block keeps the residuals of representative calls. Intervals are as wide as 80 % of the fitted calls
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

// Fits and blocks that several profiles share, computed once; keys name family, block and GPUs.
struct FitMemo {
  std::map<std::string, FamilyFit> fits;
  std::map<std::string, ProfileBlock> blocks;  // fitted to other GPUs; without the clock
};

struct ProfileFitOptions {
  std::string gpu;                  // the GPU that the profile is for; empty: ...
  std::string architecture;         // ... of the GPUs of an architecture; both empty: of all
  bool without_gpu = false;         // nothing measured on it is used (holdout/<gpu>.yaml) ...
  bool one_gemm = false;            // ... but one large matrix product, for its clock
  std::size_t most_samples = 1000;  // of a family, GPU and block
  std::size_t most_rows = 300;      // of a residual table
  int starts = 2;
  int threads = 2;
  std::set<std::string>
      unlisted;  // data sets whose licence forbids publishing rows of them in a residual table
  std::set<std::string> families;  // fitted; empty: all
  bool refuse_thin = true;  // too few records of an op on the GPU: an error, or the block of other GPUs
  FitMemo* memo = nullptr;  // shared by calls with the same records; or none
  std::function<void(std::string_view)> progress;
};

// Throws UsageError: no records of the GPU, or too few of an op; a fit that does not converge.
[[nodiscard]] Profile fit_profile(std::span<const Record> records, const GpuSpecs& gpus,
                                  const ProfileFitOptions& options);

}  // namespace tbdsim
