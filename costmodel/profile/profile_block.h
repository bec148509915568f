// One family's parameters for one library generation and precision: an entry of a profile's list
// `families.<family>`.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/call.h"
#include "costmodel/residuals/residual_table.h"
#include "hwspecs/base/math_type.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

struct ProfileBlock {
  std::string generation;          // library and major version: cublas8, cudnn6, torch2
  MathType math = MathType::fp32;  // precision of the measured calls
  bool own = false;                // measured on the profile's GPU; else on others
  double capability = 0;           // the newest compute capability measured, 9.0; 0: not known
  std::vector<double> parameters;  // in the order of the family's table
  std::vector<std::string> at_bound;
  double effective_parameters = 0;  // how many the records determine, the rest being priors'; 0: not known
  double clock = 1;                 // sustained share of the peak ...
  bool clock_of_expected = false;   // ... or of expected_clock(gpu, math)
  double clock_sd = 0;              // of its logarithm
  double bandwidth = 1;             // sustained share of the memory bandwidth, multiplied by the family's own
  bool converged = true;
  int iterations = 0;
  double cost = 0;                              // robust, of the fit
  std::map<std::string, std::int64_t> records;  // "gpu, data set" -> how many were fitted
  Kriging kriging;
  double interval = 1.28;       // 80 % of calls left out lie within this many deviations
  std::vector<Call> measured;   // representative measured calls
  ResidualTable residuals{{}};  // theirs
};

// `family`: the family's name. A residual row is a text of numbers: the fields of the call (call_fields.h),
// then ln(measured / formula). Throws SpecError: an unknown or missing parameter, one out of its bounds, a
// row of another length.
[[nodiscard]] ProfileBlock read_profile_block(const SpecNode& node, std::string_view family);

// The block as the tree that read_profile_block reads.
[[nodiscard]] SpecTree write_profile_block(const ProfileBlock& block, std::string_view family);

inline constexpr std::size_t kMostResidualRows = 2000;  // of a block

}  // namespace tbdsim
