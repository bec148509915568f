// NCCL all-reduce over the GPUs of one machine, from one process; built without NCCL it refuses every point.
#include "calibrate/measure/ops/ops.h"
#include "calibrate/measure/ops/timing.h"

#ifdef TBDSIM_HAVE_NCCL
#include <nccl.h>
#endif

namespace tbdsim::measure {
#ifdef TBDSIM_HAVE_NCCL
namespace {
void check_nccl(ncclResult_t status, const char* what) {
  if (status != ncclSuccess) throw PointError(std::string(what) + ": " + ncclGetErrorString(status));
}

using Communicator = Owned<ncclComm_t, nullptr, ncclCommDestroy>;
// Buffers and stream of one rank. They belong to the device that is current when they are created.
struct Rank {
  int device = 0;
  Communicator communicator;
  Stream stream;
  DeviceBuffer data;
};

void use(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }

// The session's GPU is rank 0; the others follow in CUDA's order.
class Ring {
 public:
  Ring(Session& session, int ranks, std::size_t bytes);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  void all_reduce(ncclDataType_t type, std::size_t count);

 private:
  Session& session_;
  std::vector<Rank> ranks_;
};

Ring::Ring(Session& session, int ranks, std::size_t bytes) : session_(session) {
  std::vector<int> devices{session.device.ordinal};
  for (int i = 0; static_cast<int>(devices.size()) < ranks; ++i) {
    if (i != session.device.ordinal) devices.push_back(i);
  }
  std::vector<ncclComm_t> handles(devices.size());
  check_nccl(ncclCommInitAll(handles.data(), ranks, devices.data()), "ncclCommInitAll");
  std::vector<Communicator> communicators;
  for (ncclComm_t handle : handles) communicators.emplace_back(handle);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    use(devices[i]);
    ranks_.push_back({devices[i], std::move(communicators[i]), Stream(), DeviceBuffer(bytes)});
    check(cudaMemset(ranks_.back().data.get(), 0, bytes), "cudaMemset");  // sums of zeros cannot overflow
  }
  use(session.device.ordinal);
}

Ring::~Ring() {
  for (Rank& rank : ranks_) {
    static_cast<void>(cudaSetDevice(rank.device));
    static_cast<void>(cudaStreamSynchronize(rank.stream.get()));
  }
  static_cast<void>(cudaSetDevice(session_.device.ordinal));
}

void Ring::all_reduce(ncclDataType_t type, std::size_t count) {
  check_nccl(ncclGroupStart(), "ncclGroupStart");
  for (Rank& rank : ranks_) {
    const bool first = rank.device == session_.device.ordinal;
    check_nccl(ncclAllReduce(rank.data.get(), rank.data.get(), count, type, ncclSum, rank.communicator.get(),
                             first ? session_.stream() : rank.stream.get()),
               "ncclAllReduce");
  }
  check_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

ncclDataType_t nccl_type(Type type) {
#if NCCL_VERSION_CODE >= 21000  // bfloat16 came with 2.10
  if (type == Type::bf16) return ncclBfloat16;
#else
  if (type == Type::bf16) throw PointError("this NCCL has no bfloat16");
#endif
  return type == Type::f16 ? ncclFloat16 : ncclFloat32;
}
}  // namespace

std::vector<Record> run_all_reduce(Session& session, const PlanPoint& point) {
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  const RecordShape& s = point.shape;
  if (s.ranks < 2 || s.ranks > devices) {
    throw PointError("needs " + std::to_string(s.ranks) + " GPUs (2 or more), " + std::to_string(devices) +
                     " are here");
  }
  const Type type = type_of(point.precision);
  Ring ring(session, static_cast<int>(s.ranks), static_cast<std::size_t>(s.bytes));
  Record record = record_of(point);
  record.algorithm = "all_reduce_sum";
  const std::size_t count = static_cast<std::size_t>(s.bytes) / bytes_of(type);
  time_call(session, record, [&] { ring.all_reduce(nccl_type(type), count); });
  return {record};
}
#else
std::vector<Record> run_all_reduce(Session&, const PlanPoint&) { throw PointError("built without NCCL"); }
#endif

}  // namespace tbdsim::measure
