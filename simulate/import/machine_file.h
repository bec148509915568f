// The file of a machine (docs/extending.md) from how its GPUs are joined.
#pragma once

#include <string>

#include "hwspecs/base/catalog.h"
#include "simulate/import/imported_file.h"
#include "simulate/import/machine_facts.h"

namespace tbdsim {

// `gpu`: a name or file of the GPU where the facts do not name one of the catalogue; empty: another of as
// many NVLinks stands for it, which a note says. `given` may say cpu, memory_size, peer_access and title.
// Throws UsageError for NVLinks that the GPU does not have.
[[nodiscard]] ImportedFile machine_file(const MachineFacts& facts, const std::string& file,
                                        const std::string& gpu, const GivenValues& given,
                                        const Catalog& catalog);

}  // namespace tbdsim
