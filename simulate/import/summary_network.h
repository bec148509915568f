// Networks of which only a printed summary is there: Keras's model.summary(), torchinfo.
#pragma once

#include <string>

#include "simulate/import/imported_file.h"

namespace tbdsim {

// Windows, strides and pads follow from shapes and numbers of parameters; where several would do, the
// smallest window and, of pads, those that keep an image's sides. `given` may hold "input", the sides of a
// Keras model that does not show its input, as "28x28x1". Throws SpecError for what the summary does not say
// (names that were cut, columns, layers between which something is not shown) and for layers that tbd-sim has
// not, with their counts.
[[nodiscard]] ImportedFile keras_network(const std::string& text, const std::string& file,
                                         const GivenValues& given);
[[nodiscard]] ImportedFile torchinfo_network(const std::string& text, const std::string& file);

}  // namespace tbdsim
