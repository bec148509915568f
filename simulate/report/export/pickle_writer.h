// Values written in Python's pickle format (protocol 4), in the few opcodes that unpicklers outside Python
// have too: dictionaries, lists, texts, whole numbers, booleans.
#pragma once

#include <cstdint>
#include <ostream>
#include <string_view>

namespace tbdsim {

class PickleWriter {
 public:
  explicit PickleWriter(std::ostream& out) : out_(out) { out_ << "\x80\x04"; }

  void begin_map() { out_ << "}("; }  // then keys and values in turn
  void end_map() { out_ << 'u'; }
  void begin_list() { out_ << "]("; }
  void end_list() { out_ << 'e'; }
  void text(std::string_view text);  // UTF-8; cut after 255 bytes
  void number(std::int64_t number);
  void flag(bool flag) { out_ << (flag ? '\x88' : '\x89'); }
  void pair(std::int64_t first, std::int64_t second);
  void end() { out_ << '.'; }

 private:
  void bytes(std::uint64_t value, int count);
  std::ostream& out_;
};

}  // namespace tbdsim
