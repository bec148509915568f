#include "calibrate/measure/statistics/spans.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <cxxabi.h>

namespace tbdsim::measure {
namespace {
CallSpans summed(std::span<const Span> spans) {
  CallSpans call;
  const Span* longest = nullptr;
  std::uint64_t busy = 0;
  std::uint64_t covered_to = 0;
  for (const Span& span : spans) {  // sorted by start
    const std::uint64_t from = std::max(span.start, covered_to);
    if (span.end > from) busy += span.end - from;
    covered_to = std::max(covered_to, span.end);
    if (longest == nullptr || span.end - span.start > longest->end - longest->start) longest = &span;
  }
  constexpr double kNanosecond = 1e-9;
  call.busy_s = static_cast<double>(busy) * kNanosecond;
  call.spans = static_cast<std::int64_t>(spans.size());
  if (longest != nullptr) {
    call.kernel = readable_name(longest->name);
    call.grid = longest->grid;
  }
  return call;
}
}  // namespace

std::vector<CallSpans> calls_of(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  std::vector<CallSpans> calls;
  constexpr std::size_t kOutside = static_cast<std::size_t>(-1);
  std::size_t begin = kOutside;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].name == kBeginMark) {
      begin = i + 1;
    } else if (spans[i].name == kEndMark && begin != kOutside) {
      calls.push_back(summed(std::span(spans).subspan(begin, i - begin)));
      begin = kOutside;
    }
  }
  return calls;
}

std::string readable_name(const std::string& mangled) {
  constexpr std::size_t kLongest = 120;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  // __cxa_demangle also reads "i" as the type int: only names that start as symbols do are meant.
  std::string name = status == 0 && mangled.starts_with("_Z") ? plain.get() : mangled;
  if (name.size() > kLongest) name.resize(kLongest);
  return name;
}

}  // namespace tbdsim::measure
