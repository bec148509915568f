// How replicas of a model synchronize their gradients unless a scenario overrides it: the `exchange` part
// of a framework file.
#pragma once

#include <map>
#include <string>

#include "hwspecs/base/quantity.h"
#include "hwspecs/base/sources.h"

namespace tbdsim {

class SpecNode;
struct Variant;

// Each member has the name of its key in the file.
struct SyncDefaults {
  std::string within = "all_reduce";  // method within one machine (sync_method.h)
  std::string across = "all_reduce";  // method across machines
  // Methods within one machine of programs that choose another, by the name of the variants they train.
  std::map<std::string, std::string> within_of;

  // Gradients are collected into buckets of so many bytes before they are sent; 0: each is sent by itself.
  Bytes bucket;
  Bytes first_bucket;   // of an iteration
  Bytes bucket_across;  // across machines, where a library of its own synchronizes (Horovod)
  // Interval at which a thread collects the gradients that are ready, where there is a bucket; 0: a bucket is
  // sent when it is full.
  Seconds cycle;

  bool fp32_amp = false;  // gradients of `amp` are sent in fp32, as its variables are stored
  Seconds message;        // time that each message takes beside its transfer

  // Part of the time of a synchronization by which kernels that run meanwhile take longer; 0: the share of
  // the GPU's multiprocessors that it occupies.
  double interference = 0;       // for an all-reduce staged in host memory
  double copy_interference = 0;  // where copy engines or the host synchronize

  // Tables of embeddings are cut so that all ranks look up as many rows, and their vectors are exchanged
  // beside the layers before them; else each table is whole on one rank, and the iteration waits for the
  // exchange.
  bool cut_tables = false;

  bool single_ring = false;  // NCCL 1 builds one ring, in the order of the slots
  Sources sources{};
};

// `defaults` with the values of the keys that `node` has. Throws SpecError.
[[nodiscard]] SyncDefaults override_sync_defaults(const SpecNode& node, SyncDefaults defaults);

// The name of the method within one machine of the program that trains the variant.
[[nodiscard]] const std::string& method_within(const SyncDefaults& defaults, const Variant& variant);

}  // namespace tbdsim
