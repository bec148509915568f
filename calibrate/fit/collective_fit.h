// Measured all-reduce curves -> what collective operations cost over a link (CollectiveCost). The machine's
// topology says how wide its rings are for each number of GPUs; four numbers are fitted to all of them
// together (five where a switch reduces), by relative errors, so that other numbers of GPUs are predicted and
// not looked up.
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

// Rows of one machine of a table of all-reduces. Columns: gpus, ngpu or num_gpus; bytes or size_bytes; one of
// time_ms, median_ms, latency_us, time_out_of_place_ns. Rows of another `op` or `collective`, of several
// `machines`, of an `algorithm` that is not NCCL's and those in which a column of `only` differs are left
// out. Throws SpecError.
[[nodiscard]] std::vector<MeasuredCollective> read_collectives(
    std::istream& in, const std::string& file, const std::map<std::string, std::string>& only);

struct CommunicationFit {
  CollectiveCost cost;
  double error = 0;                // mean of |predicted / measured - 1| over numbers of GPUs
  std::map<int, double> errors;    // of each number of GPUs
  std::map<int, double> held_out;  // the same, fitted without that number; none where there is only one
  int rows = 0;
};

// Throws UsageError where there is nothing to fit to, or more GPUs than the machine has.
[[nodiscard]] CommunicationFit fit_communication(const MachineSpec& machine, const GpuSpec& gpu,
                                                 const std::vector<MeasuredCollective>& measured);

}  // namespace tbdsim
