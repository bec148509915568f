// A machine of which one word is known: how its GPUs, or it and others, are joined. Tables of measured runs
// have such a word in their column `network`, and who asks for several GPUs without a machine means one.
#pragma once

#include <string>

#include "hwspecs/gpu_spec.h"
#include "hwspecs/machine_spec.h"

namespace tbdsim {

// The machine server_pcie3 (4, 5) of the catalogue, which says what is assumed of the rest, with `gpus` GPUs
// of that sort, spread over its root ports, and what the word says:
//
//   pcie3, pcie4, pcie5   slots; every GPU reaches every other
//   nvlink                each GPU can use all its NVLinks with any other; boards that are only made for
//                         machines with wires between pairs (`mesh` of the GPU's file): the first of those
//   nvlink_pairs          GPUs 0 and 1, 2 and 3, ... are joined by all their NVLinks
//   ..._host              no peer access over PCIe: copies are staged in host memory
//   ..._1root             all GPUs below one socket, four below each root port
//   a network's link      machines of the sort that an empty word means, joined by it
//   (empty)               nvlink where boards join GPUs of this sort, else the slots the GPU has
//
// Throws UsageError for another word, for NVLink a GPU does not have and for more GPUs than such a server
// has. Changes are as of read_machine(); `gpu` has its own already.
[[nodiscard]] MachineSpec synthesize_machine(const GpuSpec& gpu, int gpus, const std::string& word,
                                             const Catalog& catalog, const SpecChanges& changes = {});

// Throws UsageError, with "did you mean", for a word that synthesize_machine() knows of no GPU.
void require_interconnect(const std::string& word, const Catalog& catalog);

}  // namespace tbdsim
