// Releases of frameworks as people write them, "1.12.1+cu113", "NGC 22.06-py3", and which of a family's files
// stands for one that no file names.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "simulate/framework/framework_spec.h"

namespace tbdsim {

// NVIDIA's containers are builds of their own, named by year and month.
enum class ReleaseOf { framework, container, framework_in_container };

struct Release {
  ReleaseOf of = ReleaseOf::framework;
  int major = 0;               // of a container: the year, 22
  std::optional<int> minor;    // of a container: the month; none: any, as in "2.x"
  std::optional<int> cudnn{};  // the major version of cuDNN, where the text says it

  bool operator==(const Release&) const = default;
};

// The release that a text names: the year and month behind "NGC" or "Release"; else the first number of up
// to three digits that begins the text or follows the name of a framework; none where there is neither.
[[nodiscard]] std::optional<Release> release_in(std::string_view text);

// The family and the release of a name like "PyTorch 1.12", "torch==2.1", "tf2.4" or "PyTorch NGC 22.10",
// each as written; none for a name that does not end with a release.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> family_and_release(std::string_view name);

// The place in `family` of the file for `release`: the latest of those whose `versions` have it or an earlier
// one, else the earliest; none where no file names a release of that sort. Files that call the same cuDNN
// come before others, where the release says which.
[[nodiscard]] std::optional<std::size_t> nearest_release(const Release& release,
                                                         std::span<const Framework* const> family);

}  // namespace tbdsim
