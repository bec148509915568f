// The result of a calibration, one YAML file in calibrate/profiles/: fitted parameters for each family of
// kernels, library generation and precision, and round efficiencies for each kind of kernel that no family
// covers (a roofline).
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "costmodel/families/family_names.h"
#include "costmodel/families/roofline.h"
#include "costmodel/profile/profile_block.h"
#include "graphs/kernel.h"
#include "hwspecs/base/catalog.h"
#include "hwspecs/base/sources.h"

namespace tbdsim {

struct Profile {
  std::string name;  // the file's stem
  std::string title;
  std::string gpu;           // the card it is for; empty: any card ...
  std::string architecture;  // ... of this architecture; empty: any at all
  double board_power = 0;    // W, of the card that was measured; 0: none was
  bool calibrated = false;   // fitted to measured kernels; reports mark a profile that is not
  std::array<std::vector<ProfileBlock>, kFamilyCount> families;
  std::array<Efficiency<double>, kKernelKindCount>
      kinds{};        // by KernelKind, for kernels that no family covers
  double spread = 0;  // standard deviation of ln(measured / predicted) of those
  Sources sources;
};

// Reads a profile and, where it has no `kinds`, those of the profile that its key `roofline` names. Throws
// UsageError or SpecError.
[[nodiscard]] Profile read_profile(const std::filesystem::path& file, const Catalog& catalog);

// Its title, and how many of its blocks were measured on the GPU itself: "... (fitted to no measurement)".
[[nodiscard]] std::string calibration_text(const Profile& profile);

// The profile as a YAML document with `roofline: uncalibrated`.
[[nodiscard]] std::string write_profile(const Profile& profile);

inline constexpr int kProfileSchema = 2;  // grows when a key changes its meaning

}  // namespace tbdsim
