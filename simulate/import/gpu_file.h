// The file of a GPU (docs/extending.md) from what a driver says of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hwspecs/base/catalog.h"
#include "simulate/import/gpu_facts.h"
#include "simulate/import/imported_file.h"

namespace tbdsim {

// The catalogue's name of a GPU as drivers and lspci print it; none for one that the catalogue does not have.
[[nodiscard]] std::optional<std::string> known_gpu(std::string_view called, const Catalog& catalog);

// A card of the catalogue, recognised by its name, keeps what the facts do not say; notes name the
// differences. For any other card the rates of an SM are those of the catalogue's cards of the same compute
// capability and range, and UsageError names what neither the facts nor `given` say. `file` is named as the
// source.
[[nodiscard]] ImportedFile gpu_file(const GpuFacts& facts, const std::string& file, const GivenValues& given,
                                    const Catalog& catalog);

}  // namespace tbdsim
