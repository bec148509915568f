#include "simulate/import/trace_events.h"

#include <algorithm>
#include <cmath>
#include <istream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "simulate/import/unpacked_file.h"

namespace tbdsim {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 64;
constexpr std::uint64_t kLongestText = std::uint64_t{1} << 26U;
constexpr double kNanosecondsPerMicrosecond = 1'000;
constexpr double kLongestTrace = 9e18;  // ns, within 63 bits

std::int64_t whole(double value) {
  return std::abs(value) < kLongestTrace ? static_cast<std::int64_t>(std::llround(value)) : 0;
}

// Follows the document's nesting: events are the maps of the list "traceEvents" of the root, or of the root
// itself; devices those of the list "deviceProperties". Keys of an event's map "args" count like its own.
class Reader : public nlohmann::json_sax<Json> {
 public:
  Reader(std::string file, UnpackedFile& bytes, const TraceVisitor& visitor)
      : file_(std::move(file)), bytes_(bytes), visitor_(visitor) {
    bytes_.expect_at_most(kLongestText);
  }

  bool null() override { return item("null"); }
  bool boolean(bool value) override { return item(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool binary(binary_t&) override { return false; }

  bool string(string_t& value) override {
    if (list_ != nullptr) return item(Json(value).dump(-1, ' ', true, Json::error_handler_t::replace));
    if (in_event()) set_text(value);
    if (in_device() && key_ == "name") device_.name = value;
    return next();
  }

  bool key(string_t& value) override {
    key_ = value;
    if (depth_ == 1) section_ = value;
    return next();
  }

  bool start_object(std::size_t) override {
    list_ = nullptr;  // no list of an operator holds a map
    if (depth_ == 0) root_is_map_ = true;
    if (depth_ == list_depth()) {
      event_ = {};
      device_ = {};
      in_args_ = false;
    }
    if (depth_ == list_depth() + 1) in_args_ = key_ == "args";
    return deeper();
  }

  bool end_object() override {
    --depth_;
    if (depth_ == list_depth()) {
      if (of_events()) visitor_.event(event_);
      if (section_ == "deviceProperties") visitor_.device(device_);
    }
    if (depth_ == list_depth() + 1) in_args_ = false;
    return next();
  }

  bool start_array(std::size_t) override {
    if (list_ == nullptr && in_event() && in_args_) begin_list();
    if (list_ != nullptr) *list_ += '[';
    return deeper();
  }
  bool end_array() override {
    --depth_;
    if (list_ == nullptr) return next();
    if (list_->ends_with(',')) list_->pop_back();
    *list_ += ']';
    if (depth_ == list_begins_) {
      list_ = nullptr;
    } else {
      *list_ += ',';
    }
    return next();
  }

  bool parse_error(std::size_t position, const std::string& token, const Json::exception&) override {
    // Kineto writes the result of a division by 0 as it is.
    constexpr std::string_view kNoNumbers[] = {"na", "-n", "i", "N", "I"};  // where the parser stops
    const bool cut_off =
        token.starts_with('"') && token.find('"', 1) == token.npos;  // a text without its end
    if (!cut_off &&
        std::ranges::any_of(kNoNumbers, [&](std::string_view text) { return token.ends_with(text); }))
      fail("nan or inf at byte " + std::to_string(position) +
           ", which JSON has not; expected 0 in its place, as sed -E 's/: *-?(nan|inf)/: 0/Ig' writes it");
    fail("no JSON at byte " + std::to_string(position) + "; expected a trace of the PyTorch profiler");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw SpecError({.file = std::make_shared<const std::string>(file_)}, what);
  }

 private:
  // Nesting of the list that holds events: 1 where it is the root, 2 where it is a value of the root.
  [[nodiscard]] int list_depth() const { return root_is_map_ ? 2 : 1; }
  [[nodiscard]] bool of_events() const { return !root_is_map_ || section_ == "traceEvents"; }
  [[nodiscard]] bool in_event() const {
    return of_events() && (depth_ == list_depth() + 1 || (in_args_ && depth_ == list_depth() + 2));
  }
  [[nodiscard]] bool in_device() const {
    return section_ == "deviceProperties" && depth_ == list_depth() + 1;
  }

  bool next() {
    bytes_.expect_at_most(kLongestText);
    return true;
  }
  bool deeper() {
    if (++depth_ > kDeepest) fail("nests deeper than 64; expected a trace of the PyTorch profiler");
    return next();
  }

  // One more value of the list at hand, if there is one.
  bool item(const std::string& value) {
    if (list_ != nullptr) *list_ += value + ',';
    return next();
  }

  void begin_list() {
    list_ = key_ == "Input Dims"        ? &event_.shapes
            : key_ == "Input Strides"   ? &event_.strides
            : key_ == "Input type"      ? &event_.types
            : key_ == "Concrete Inputs" ? &event_.values
                                        : nullptr;
    list_begins_ = depth_;
    if (list_ != nullptr) list_->clear();
  }

  void set_text(const std::string& value) {
    if (in_args_) return;
    if (key_ == "ph") event_.phase = value;
    if (key_ == "cat") event_.category = value;
    if (key_ == "name") event_.name = value;
    if (key_ == "tid") event_.thread = value;
  }

  bool number(double value) {
    if (list_ != nullptr) return item(std::to_string(whole(value)));
    if (depth_ == 1 && root_is_map_ && visitor_.number) visitor_.number(key_, value);
    if (in_device() && key_ == "id") device_.id = whole(value);
    if (in_event()) set_number(value);
    return next();
  }

  void set_number(double value) {
    if (!in_args_) {
      if (key_ == "ts") event_.start = whole(value * kNanosecondsPerMicrosecond);
      if (key_ == "dur") event_.duration = whole(value * kNanosecondsPerMicrosecond);
      if (key_ == "tid") event_.thread = std::to_string(whole(value));
      return;
    }
    if (key_ == "device" || key_ == "Device Id") event_.device = whole(value);
    if (key_ == "correlation") event_.correlation = whole(value);
    if (key_ == "External id" || key_ == "external id") event_.operation = whole(value);
    if (key_ == "Device Type") event_.device_type = whole(value);
    if (key_ == "Bytes") event_.bytes = whole(value);
    if (key_ == "Total Allocated") event_.allocated = whole(value);
  }

  std::string file_;
  UnpackedFile& bytes_;
  const TraceVisitor& visitor_;
  int depth_ = 0;
  bool root_is_map_ = false;
  bool in_args_ = false;
  std::string* list_ = nullptr;  // of the event, while one of its lists is read
  int list_begins_ = 0;          // depth around it
  std::string section_;
  std::string key_;
  TraceEvent event_;
  TraceDevice device_;
};

}  // namespace

void visit_trace(const std::filesystem::path& file, const TraceVisitor& visitor) {
  UnpackedFile bytes(file);
  std::istream in(&bytes);
  Reader reader(file.string(), bytes, visitor);
  // The parser swallows no exception of the stream's buffer: it reads that without the stream around it.
  if (!Json::sax_parse(in, &reader)) reader.fail("no JSON; expected a trace of the PyTorch profiler");
}

}  // namespace tbdsim
