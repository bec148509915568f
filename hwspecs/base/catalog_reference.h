// A file of the catalogue that another file names: a machine's GPU, its links.
#pragma once

#include <filesystem>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

// The file of the name the node holds. A path ("./my_card.yaml") counts from the folder of the file it stands
// in. Throws SpecError with "did you mean" for an unknown name.
[[nodiscard]] std::filesystem::path file_named(const SpecNode& node, Kind kind, const Catalog& catalog);

// The file that `based_on` of `file` names: one beside `file` or in `catalogue`, the catalogue's folder of
// that kind. A file that has the name itself is not meant. Throws
// SpecError, with "did you mean", for a path and where there is no such file.
[[nodiscard]] std::filesystem::path base_named(const SpecNode& node, Kind kind,
                                               const std::filesystem::path& file,
                                               const std::filesystem::path& catalogue);

}  // namespace tbdsim
