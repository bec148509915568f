// Copies between host and device, and within the device.
#include <vector>

#include "calibrate/measure/ops/ops.h"
#include "calibrate/measure/ops/timing.h"

namespace tbdsim::measure {
namespace {
void* pinned(std::size_t bytes) {
  void* data = nullptr;
  check(cudaMallocHost(&data, bytes), "cudaMallocHost");
  return data;
}
using Pinned = Owned<void*, nullptr, cudaFreeHost>;

Record run_copy(Session& session, const PlanPoint& point, void* host, const DeviceBuffer& device,
                const char* algorithm) {
  const bool to_device = point.op == "copy_h2d";
  Record record = record_of(point);
  record.algorithm = algorithm;
  time_call(session, record, [&] {
    check(to_device
              ? cudaMemcpyAsync(device.get(), host, device.bytes(), cudaMemcpyHostToDevice, session.stream())
              : cudaMemcpyAsync(host, device.get(), device.bytes(), cudaMemcpyDeviceToHost, session.stream()),
          "cudaMemcpyAsync");
  });
  return record;
}
}  // namespace

std::vector<Record> run_host_copy(Session& session, const PlanPoint& point) {
  const auto bytes = static_cast<std::size_t>(point.shape.bytes);
  const DeviceBuffer device(bytes);
  check(cudaMemsetAsync(device.get(), 1, bytes, session.stream()), "cudaMemsetAsync");
  const Pinned locked(pinned(bytes));
  std::vector<char> pageable(bytes, 1);
  return {run_copy(session, point, locked.get(), device, "pinned"),
          run_copy(session, point, pageable.data(), device, "pageable")};
}

std::vector<Record> run_device_copy(Session& session, const PlanPoint& point) {
  const auto bytes = static_cast<std::size_t>(point.shape.bytes);
  const DeviceBuffer from = session.random(Type::f32, static_cast<std::int64_t>((bytes + 3) / sizeof(float)));
  const DeviceBuffer to(bytes);
  Record record = record_of(point);
  record.algorithm = "cudaMemcpyAsync";
  time_call(session, record, [&] {
    check(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice, session.stream()),
          "cudaMemcpyAsync");
  });
  return {record};
}

}  // namespace tbdsim::measure
