// A machine built from one word that names the interconnect of its GPUs, or of several such machines: the
// column `network` of tables of measured runs, and --network without --machine.
#pragma once

#include <string>

#include "hwspecs/gpu_spec.h"
#include "hwspecs/machine_spec.h"

namespace tbdsim {

// The catalogue's machine server_pcie3 (4, 5) with `gpus` GPUs of that sort, spread over its root ports
// (cards: up to four below each, as servers of ten to twenty cards have them behind switches), connected as
// the word says:
//
//   pcie3, pcie4, pcie5   slots; every GPU reaches every other; where its own bus is slower, the server of that
//   nvlink                each GPU can use all its NVLinks with any other; boards that are only made for
//                         machines with wires between pairs (`mesh` of the GPU's file): the wires of that one
//   nvlink_pairs          GPUs 0 and 1, 2 and 3, ... are joined by all their NVLinks
//   ..._host              no peer access over PCIe: copies are staged in host memory
//   ..._1root             all GPUs below one socket, four below each root port
//   a network's link      the machine of an empty word, and others like it over this link
//   (empty)               nvlink where boards join GPUs of this sort, else the slots the GPU has
//
// Throws UsageError for another word, for NVLink that a GPU does not have and for more GPUs than such a
// server has. `changes` are those of read_machine(); `gpu` is changed already.
[[nodiscard]] MachineSpec synthesize_machine(const GpuSpec& gpu, int gpus, const std::string& word,
                                             const Catalog& catalog, const SpecChanges& changes = {});

// The word that an empty one stands for.
[[nodiscard]] std::string usual_interconnect(const GpuSpec& gpu);

// Throws UsageError, with "did you mean", for a word that synthesize_machine() accepts for no GPU.
void require_interconnect(const std::string& word, const Catalog& catalog);

}  // namespace tbdsim
