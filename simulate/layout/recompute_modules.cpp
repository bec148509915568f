#include "simulate/layout/recompute_modules.h"

namespace tbdsim {

std::string to_text(RecomputeModules modules) {
  std::string text;
  for (std::size_t i = 0; i < kRecomputeModuleNames.size(); ++i) {
    if (!modules.has(static_cast<RecomputeModule>(i))) continue;
    if (!text.empty()) text += ',';
    text += kRecomputeModuleNames[i];
  }
  return text;
}

}  // namespace tbdsim
