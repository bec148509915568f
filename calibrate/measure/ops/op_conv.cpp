// Every algorithm cuDNN finds for a convolution within four workspace limits.
#include <algorithm>
#include <array>

#include "calibrate/measure/ops/conv_algorithms.h"
#include "calibrate/measure/ops/ops.h"
#include "calibrate/measure/ops/timing.h"

namespace tbdsim::measure {
namespace {
// Workspace limits of frameworks in bytes: PyTorch and small cards, MXNet's variants, MXNet's default 1024
// MB, TensorFlow's 1 << 32.
constexpr std::array<std::size_t, 4> kCaps{std::size_t{4} << 30U, std::size_t{1} << 30U,
                                           std::size_t{512} << 20U, std::size_t{64} << 20U};
constexpr double kUsableShare = 0.9;  // of the free memory
constexpr double kSlow =
    4;  // slower algorithms than this, relative to the fastest, are timed by one short burst

bool known(const std::vector<ConvAlgorithm>& all, const ConvAlgorithm& one) {
  return std::any_of(all.begin(), all.end(), [&](const ConvAlgorithm& a) {
    return a.name == one.name && a.workspace == one.workspace;
  });
}

// Searches under each limit, from the largest; a smaller limit is only searched when it excludes something.
std::vector<ConvAlgorithm> all_algorithms(Convolution& convolution, const DeviceBuffer& workspace) {
  std::vector<ConvAlgorithm> all;
  std::size_t searched = 0;
  for (const std::size_t cap : kCaps) {
    const std::size_t bytes = std::min(cap, workspace.bytes());
    const bool excludes =
        std::any_of(all.begin(), all.end(), [&](const ConvAlgorithm& a) { return a.workspace > bytes; });
    if (bytes == searched || (searched > 0 && !excludes)) continue;
    searched = bytes;
    for (ConvAlgorithm& one : convolution.find(workspace, bytes)) {
      if (!known(all, one)) all.push_back(std::move(one));
    }
  }
  return all;
}
}  // namespace

std::vector<Record> run_conv(Session& session, const PlanPoint& point) {
  Convolution convolution(session, point);
  const auto usable = static_cast<std::size_t>(kUsableShare * static_cast<double>(Session::free_memory()));
  const DeviceBuffer workspace(std::min(kCaps.front(), usable));
  const std::vector<ConvAlgorithm> algorithms = all_algorithms(convolution, workspace);
  if (algorithms.empty()) throw PointError("cuDNN finds no algorithm");
  double fastest = algorithms.front().found_s;
  for (const ConvAlgorithm& a : algorithms) fastest = std::min(fastest, a.found_s);
  StoppingRule brief;
  brief.warm_up = 1;
  brief.first_burst = brief.most_samples = brief.fewest_samples;
  std::vector<std::function<Record()>> attempts;
  for (const ConvAlgorithm& a : algorithms) {
    attempts.emplace_back([&, a] {
      Record record = record_of(point);
      record.algorithm = a.name;
      record.workspace_bytes = static_cast<std::int64_t>(a.workspace);
      convolution.set_math(a.math);
      time_call(
          session, record, [&] { convolution.run(a, workspace); },
          a.found_s > kSlow * fastest ? brief : StoppingRule{});
      return record;
    });
  }
  return those_that_work(attempts);
}

}  // namespace tbdsim::measure
