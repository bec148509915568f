#include "calibrate/measure/device/activity.h"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <utility>

#include <cupti.h>

namespace tbdsim::measure {
namespace {
// CUPTI's records are read through the oldest layouts with these fields: later ones only append (CUDA 9 to
// 13).
static_assert(offsetof(CUpti_ActivityKernel4, start) == 16 &&
              offsetof(CUpti_ActivityKernel4, deviceId) == 40 && offsetof(CUpti_ActivityKernel4, end) == 24 &&
              offsetof(CUpti_ActivityKernel4, gridX) == 52 && offsetof(CUpti_ActivityKernel4, blockX) == 64 &&
              offsetof(CUpti_ActivityKernel4, name) == 104);
static_assert(offsetof(CUpti_ActivityMemset, deviceId) == 32 && offsetof(CUpti_ActivityMemset, start) == 16 &&
              offsetof(CUpti_ActivityMemset, end) == 24);
static_assert(offsetof(CUpti_ActivityMemcpy, deviceId) == 32 && offsetof(CUpti_ActivityMemcpy, start) == 16 &&
              offsetof(CUpti_ActivityMemcpy, end) == 24);

constexpr std::size_t kBufferBytes = std::size_t{8} << 20U;
constexpr std::size_t kAlignment = 8;  // asked for by CUPTI

struct Collected {
  std::mutex mutex;
  std::vector<Span> spans;
  unsigned device = 0;
};
// Process-wide because the callbacks take no user argument.
Collected& collected() {
  static Collected all;
  return all;
}

std::string grid_text(const CUpti_ActivityKernel4& k) {
  const auto triple = [](int x, int y, int z) {
    return std::to_string(x) + 'x' + std::to_string(y) + 'x' + std::to_string(z);
  };
  return triple(k.gridX, k.gridY, k.gridZ) + '/' + triple(k.blockX, k.blockY, k.blockZ);
}

void collect(const CUpti_Activity& record, Collected& all) {
  if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record.kind == CUPTI_ACTIVITY_KIND_KERNEL) {
    const auto& k = reinterpret_cast<const CUpti_ActivityKernel4&>(record);
    if (k.deviceId != all.device) return;
    all.spans.push_back({k.name == nullptr ? "" : k.name, k.start, k.end, grid_text(k)});
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto& m = reinterpret_cast<const CUpti_ActivityMemset&>(record);
    if (m.deviceId == all.device) all.spans.push_back({"memset", m.start, m.end, ""});
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto& m = reinterpret_cast<const CUpti_ActivityMemcpy&>(record);
    if (m.deviceId == all.device) all.spans.push_back({"memcpy", m.start, m.end, ""});
  }
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  Collected& all = collected();
  {
    const std::scoped_lock lock(all.mutex);
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) collect(*record, all);
  }
  std::free(buffer);
}

std::string text_of(CUptiResult status) {
  const char* text = nullptr;
  return cuptiGetResultString(status, &text) == CUPTI_SUCCESS && text != nullptr ? text
                                                                                 : "unknown CUPTI error";
}

constexpr std::array kKinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMSET,
                            CUPTI_ACTIVITY_KIND_MEMCPY};
}  // namespace

void Tracer::start() {
  if (!usable()) return;
  if (!enabled_) {
    CUptiResult status = cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    collected().device = static_cast<unsigned>(device_);
    // Enabled once and left on: switching per burst would cost more than the records of what runs between
    // bursts.
    for (const CUpti_ActivityKind kind : kKinds) {
      if (status == CUPTI_SUCCESS) status = cuptiActivityEnable(kind);
    }
    if (status != CUPTI_SUCCESS) return refuse(text_of(status));
    enabled_ = true;
  }
  static_cast<void>(stop());  // throws away what ran since the last burst
}

std::vector<Span> Tracer::stop() {
  if (!usable()) return {};
  // Forced: every kernel has ended, so half-filled buffers are complete.
  const CUptiResult flushed = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  if (flushed != CUPTI_SUCCESS) {
    refuse(text_of(flushed));
    return {};
  }
  const std::scoped_lock lock(collected().mutex);
  return std::exchange(collected().spans, {});
}

void Tracer::refuse(const std::string& why) {
  refusal_ = why;
  if (!enabled_) return;
  for (const CUpti_ActivityKind kind : kKinds) static_cast<void>(cuptiActivityDisable(kind));
  enabled_ = false;
}

}  // namespace tbdsim::measure
