#include "calibrate/samples/samples.h"

#include <algorithm>
#include <cmath>

#include "calibrate/samples/call_of_record.h"
#include "costmodel/families/families.h"
#include "costmodel/hardware.h"
#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

constexpr double kLeastSigma = 0.04;  // repeats of one call on one card differ by as much (DeepBench)

const GpuSpec& spec_of(const GpuSpecs& gpus, const Record& record) {
  const auto found = gpus.find(record.gpu);
  if (found == gpus.end())
    throw UsageError("no GPU '" + record.gpu + "' in the catalogue (" + record.source + ")");
  return found->second;
}

bool offers(const GpuSpec& gpu, MathType math) {
  return gpu.math[index_of(math)].has_value() || gpu.computes_in[index_of(math)].has_value();
}

// Data sets are named "owner/repository:file@revision".
std::string set_of(const Record& record) { return record.source.substr(0, record.source.find(':')); }

// True for convolutions of NCHW images on tensor cores whose kernels were counted: the time of a call holds
// the copies to NHWC and back, which are kernels of their own in a step, but for groups
// (convolution_groups.h, copies_around_groups). Tables without a count (DeepBench) are of cuDNN 7, whose
// kernels take NCHW.
bool holds_copies(const Record& record) {
  const bool on_tensor_cores = record.layout == "NCHW" && record.precision != "fp32" && record.kernels > 0;
  return record.op == "conv" && on_tensor_cores && record.shape.groups <= 1;
}

// True for the family of the kernel that the record is of: where tbd-measure names the algorithm of a
// recurrent layer, it says whether one persistent kernel ran. Calls of that kernel which PyTorch does not run
// by it are of no family.
template <class Family>
bool describes(const Record& record, const typename Family::Call& call) {
  if constexpr (std::is_same_v<typename Family::Call, RecurrentCall>) {
    if (record.algorithm == "STANDARD") return !Family::persistent;
    if (record.algorithm == "PERSIST_STATIC") return Family::persistent && fits_persistent_kernel(call);
  }
  return belongs_to<Family>(call);
}

}  // namespace

template <class Family>
std::vector<Sample<Family>> samples_of(std::span<const Record> records, const GpuSpecs& gpus) {
  std::vector<Sample<Family>> samples;
  for (const Record& record : records) {
    const auto call = call_of(record);
    const auto* mine = call ? std::get_if<typename Family::Call>(&*call) : nullptr;
    if (mine == nullptr || !describes<Family>(record, *mine) || holds_copies(record)) continue;
    const GpuSpec& gpu = spec_of(gpus, record);
    const MathType math = *math_of(record);
    if (!offers(gpu, math)) continue;
    Sample<Family> s;
    s.call = *mine;
    s.hardware = hardware_of(gpu, math);
    if (math == MathType::tf32) s.hardware.across_k = tf32_across_k(gpu);
    s.unmeasured = limit_of_unmeasured(gpu, math);
    s.gpu = record.gpu;
    s.block = record.generation + "/" + record.precision;
    s.set = set_of(record);
    s.shape = record.op + " " + to_text(record.shape) + " " + record.layout;
    RecordShape any_batch = record.shape;
    any_batch.batch = 1;
    s.layer = record.op + " " + to_text(any_batch) + " " + record.layout;
    s.phase = record.phase.empty() ? record.op : record.phase;
    s.time_s = record.time_s;
    s.sigma = std::hypot(kLeastSigma, record.spread);
    s.floor = record.timer == "event";
    s.op = record.phase.empty() || record.phase == "forward" ? record.op : record.op + " " + record.phase;
    s.features = Family::features(s.call);
    samples.push_back(std::move(s));
  }
  return samples;
}

template <class Family>
std::vector<Sample<Family>> stratified(std::vector<Sample<Family>> samples, std::size_t most) {
  std::stable_sort(samples.begin(), samples.end(), [](const Sample<Family>& a, const Sample<Family>& b) {
    return std::tie(a.gpu, a.block, a.phase) < std::tie(b.gpu, b.block, b.phase) ||
           (std::tie(a.gpu, a.block, a.phase) == std::tie(b.gpu, b.block, b.phase) &&
            Family::flops(a.call) + Family::bytes(a.call) < Family::flops(b.call) + Family::bytes(b.call));
  });
  std::vector<Sample<Family>> kept;
  for (std::size_t begin = 0; begin < samples.size();) {
    std::size_t end = begin;
    while (end < samples.size() && samples[end].gpu == samples[begin].gpu &&
           samples[end].block == samples[begin].block)
      ++end;
    const std::size_t count = end - begin;
    const std::size_t take = std::min(count, most);
    for (std::size_t i = 0; i < take; ++i) kept.push_back(samples[begin + i * count / take]);
    begin = end;
  }
  return kept;
}

#define TBDSIM_INSTANTIATE(Family)                                                                   \
  template std::vector<Sample<Family>> samples_of<Family>(std::span<const Record>, const GpuSpecs&); \
  template std::vector<Sample<Family>> stratified<Family>(std::vector<Sample<Family>>, std::size_t);
TBDSIM_FOR_EACH_FAMILY(TBDSIM_INSTANTIATE)
#undef TBDSIM_INSTANTIATE

}  // namespace tbdsim
