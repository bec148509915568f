// What a signal does to long work.
#pragma once

#include <exception>

#include "calibrate/cli/cli.h"

namespace tbdsim {

// Thrown out of the work, so that everything is cleaned up.
class CalibrateInterrupted : public std::exception {};

inline void stop_if_interrupted(const CalibrateContext& context) {
  if (context.interrupted != nullptr && context.interrupted->load()) throw CalibrateInterrupted();
}

}  // namespace tbdsim
