// Fits the CollectiveCost of a link to measured all-reduce curves. The bandwidth of the rings comes from the
// machine's topology for each number of GPUs. Four constants (five where a switch reduces) are fitted to all
// numbers of GPUs together, by relative errors, so that they hold for other numbers of GPUs too.
#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "costmodel/communication/all_reduce.h"
#include "hwspecs/gpu_spec.h"
#include "hwspecs/machine_spec.h"

namespace tbdsim {

struct MeasuredCollective {
  int gpus = 0;
  Bytes bytes;
  Seconds time;
};

// The rows of a table of all-reduces that were measured in one machine. Columns: gpus, ngpu or num_gpus;
// bytes or size_bytes; one of time_ms, median_ms, latency_us, time_out_of_place_ns. Rows of another `op` or
// `collective`, of several `machines`, of an `algorithm` that is not NCCL's and those in which a column of
// `only` differs are left out. Throws SpecError.
[[nodiscard]] std::vector<MeasuredCollective> read_collectives(
    std::istream& in, const std::string& file, const std::map<std::string, std::string>& only);

struct CommunicationFit {
  CollectiveCost cost;
  double error = 0;                // mean of |predicted / measured - 1| over numbers of GPUs
  std::map<int, double> errors;    // mean |predicted / measured - 1| by number of GPUs
  std::map<int, double> held_out;  // the same, fitted without that number; none where there is only one
  int rows = 0;
};

// Throws UsageError where `measured` is empty or has more GPUs than the machine.
[[nodiscard]] CommunicationFit fit_communication(const MachineSpec& machine, const GpuSpec& gpu,
                                                 const std::vector<MeasuredCollective>& measured);

}  // namespace tbdsim
