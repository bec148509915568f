// The kind of work a kernel does, by the name that profilers print.
#pragma once

#include <string_view>

namespace tbdsim {

// Kinds beside kKernelKindNames (graphs/kernel.h).
inline constexpr std::string_view kCommunication = "communication";
inline constexpr std::string_view kOtherKernel = "other";

// One of kKernelKindNames, or of the two above: "void cudnn::bn_bw_1C11_kernel_new<...>" -> "batch_norm".
[[nodiscard]] std::string_view kernel_kind(std::string_view name);

}  // namespace tbdsim
