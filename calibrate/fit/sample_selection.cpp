#include "calibrate/fit/sample_selection.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "costmodel/families/families.h"
#include "costmodel/profile/generation.h"

namespace tbdsim {
namespace {

// "cudnn6/fp32" -> {"cudnn", 6}.
Generation library_of(std::string_view block) { return generation_of(block.substr(0, block.find('/'))); }

}  // namespace

std::string precision_of(std::string_view block) { return std::string(block.substr(block.find('/') + 1)); }

template <class Family>
Samples<Family> same_architecture(const Sample<Family>& held_out, const Samples<Family>& all) {
  constexpr double kOtherArchitecture = 2;
  const auto [library, version] = library_of(held_out.block);
  std::map<std::string, double> difference_of;  // by block
  for (const Sample<Family>& s : all) {
    const auto [other_library, other_version] = library_of(s.block);
    if (s.gpu == held_out.gpu || other_library != library ||
        precision_of(s.block) != precision_of(held_out.block))
      continue;
    const double difference =
        std::abs(version - other_version) +
        (architecture_of(s.hardware) == architecture_of(held_out.hardware) ? 0 : kOtherArchitecture);
    const auto [it, added] = difference_of.emplace(s.block, difference);
    it->second = std::min(it->second, difference);
  }
  if (difference_of.empty()) return {};
  const auto nearest = std::min_element(difference_of.begin(), difference_of.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return where(all,
               [&](const Sample<Family>& s) { return s.block == nearest->first && s.gpu != held_out.gpu; });
}

template <class Family>
Samples<Family> most_alike(double compute_capability, const Samples<Family>& samples) {
  std::map<std::string, bool> is_alike;  // by GPU
  for (const Sample<Family>& s : samples)
    is_alike[s.gpu] = s.hardware.compute_capability == compute_capability;
  const auto alike = std::ranges::count_if(is_alike, [](const auto& gpu) { return gpu.second; });
  if (alike == 0 || 2 * alike > std::ssize(is_alike)) return samples;
  return where(samples, [&](const Sample<Family>& s) { return is_alike.at(s.gpu); });
}

template <class Family>
Samples<Family> other_gpus(const Sample<Family>& held_out, const Samples<Family>& all) {
  const std::string library = library_of(held_out.block).library;
  return where(all, [&](const Sample<Family>& s) {
    return s.gpu != held_out.gpu && library_of(s.block).library == library &&
           precision_of(s.block) == precision_of(held_out.block);
  });
}

template <class Family>
Samples<Family> informative(const Sample<Family>& held_out, const Samples<Family>& samples) {
  return where(samples, [&](const Sample<Family>& s) {
    return s.block == held_out.block || architecture_of(s.hardware) == architecture_of(held_out.hardware);
  });
}

#define TBDSIM_INSTANTIATE(Family)                                                                   \
  template Samples<Family> same_architecture<Family>(const Sample<Family>&, const Samples<Family>&); \
  template Samples<Family> most_alike<Family>(double, const Samples<Family>&);                       \
  template Samples<Family> other_gpus<Family>(const Sample<Family>&, const Samples<Family>&);        \
  template Samples<Family> informative<Family>(const Sample<Family>&, const Samples<Family>&);
TBDSIM_FOR_EACH_FAMILY(TBDSIM_INSTANTIATE)
#undef TBDSIM_INSTANTIATE

}  // namespace tbdsim
