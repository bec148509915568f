// One parameter that a sweep varies, and its values: a list of "8,16,32", ranges "1:200", "1:200:10" (step),
// "1:512:x2" (factor), "100GB/s:1099GB/s:1GB/s" (one unit), or both; text_list.h says how a value with a
// comma is quoted. A range is stored as its ends and step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tbdsim {

class SweepAxis {
 public:
  // Throws UsageError for an empty list, a range that goes nowhere and units that differ.
  SweepAxis(std::string key, const std::string& values);

  [[nodiscard]] const std::string& key() const { return key_; }    // "batch", "gpu.memory_bandwidth"
  [[nodiscard]] double size() const;                               // may be beyond 64 bits
  [[nodiscard]] std::string value(std::int64_t i) const;           // "8", "100 GB/s"
  [[nodiscard]] std::vector<std::string> ends() const;             // every value but those inside ranges
  [[nodiscard]] const std::string& text() const { return text_; }  // as given

 private:
  struct Stretch {
    std::string text;  // of a single value
    double first = 0;
    double step = 0;
    double count = 1;
    bool by_factor = false;
    std::string unit;
  };
  [[nodiscard]] Stretch range(const std::vector<std::string>& parts) const;

  std::string key_, text_;
  std::vector<Stretch> stretches_;
};

}  // namespace tbdsim
