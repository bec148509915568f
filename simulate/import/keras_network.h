// Networks of Keras in JSON as model files of tbd-sim.
#pragma once

#include <string>

#include "simulate/import/imported_file.h"

namespace tbdsim {

// `given` may hold the sides of an input that the file leaves open, by the input's name or, of the first, by
// "input", as "224x224x3". Throws SpecError for another text, for sides that nothing tells, and for layers
// that tbd-sim has not, with their counts.
[[nodiscard]] ImportedFile keras_json_network(const std::string& text, const std::string& file,
                                              const GivenValues& given);

}  // namespace tbdsim
