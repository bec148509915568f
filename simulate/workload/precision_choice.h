// The precision that a name means for a model, a framework and a GPU.
#pragma once

#include <string>
#include <string_view>

#include "graphs/model.h"
#include "graphs/precision.h"
#include "hwspecs/gpu_spec.h"
#include "simulate/framework/framework_spec.h"

namespace tbdsim {

// Stands for what a framework does with numbers in fp32 where a program does not say.
inline constexpr std::string_view kDefaultPrecision = "default";

// The precision of that name, "fp32" -> Precision. Throws UsageError with "did you mean" for another name.
[[nodiscard]] const Precision& find_precision(const std::string& name);

// The precision of that name for this model; where the name is empty or `default` the one in which the model
// was captured, fp32 for a model that was not. Throws UsageError as find_precision, and for a precision in
// which a captured step does not run.
[[nodiscard]] const Precision& precision_for(const ModelFile& file, const std::string& name);

// The same, where `default` is the framework's default on this GPU: TF32 where both have it.
[[nodiscard]] const Precision& precision_on(const ModelFile& file, const std::string& name,
                                            const Framework& framework, const GpuSpec& gpu);

}  // namespace tbdsim
