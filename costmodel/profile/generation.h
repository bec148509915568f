// Names of library generations, as profiles and records write them: "cudnn6" is major version 6 of cuDNN.
#pragma once

#include <string>
#include <string_view>

namespace tbdsim {

struct Generation {
  std::string library;  // "cublas", "cudnn", "torch"
  int version = 0;      // major; 0: the name has none
};

// "cudnn6" -> {"cudnn", 6}.
[[nodiscard]] Generation generation_of(std::string_view name);

}  // namespace tbdsim
