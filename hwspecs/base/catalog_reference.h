// A file of the catalogue that another file names: a machine's GPU, its links.
#pragma once

#include <filesystem>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

// The file of the name the node holds. A path ("./my_card.yaml") counts from the folder of the file it stands
// in. Throws SpecError with "did you mean" for an unknown name.
[[nodiscard]] std::filesystem::path file_named(const SpecNode& node, Kind kind, const Catalog& catalog);

}  // namespace tbdsim
