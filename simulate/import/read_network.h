// Any file that becomes a model.
#pragma once

#include <filesystem>

#include "simulate/import/imported_file.h"
#include "simulate/import/recognise.h"

namespace tbdsim {

// The model of a file whose format's kind is ImportKind::model. Throws UsageError for a file that cannot be
// read or holds more than 64 MiB of text, SpecError for what its format does not have or tbd-sim has no layer
// for.
[[nodiscard]] ImportedFile read_network(FileFormat format, const std::filesystem::path& file,
                                        const GivenValues& given);

}  // namespace tbdsim
