// A file as a stream of bytes: unpacked on the way where it is compressed by gzip, in UTF-8 where it is
// UTF-16 with a byte-order mark.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <streambuf>
#include <string>
#include <vector>

#include "simulate/import/utf16.h"

namespace tbdsim {

// Holds one buffer, whatever the size of the file.
class UnpackedFile : public std::streambuf {
 public:
  // Throws UsageError for a file that cannot be opened or is no regular file. `beginning`: bytes after which
  // the stream ends; 0: at the file's end.
  explicit UnpackedFile(const std::filesystem::path& file, std::uint64_t beginning = 0);
  ~UnpackedFile() override;
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;

  // Bytes of the file taken so far, unpacked and before they are decoded.
  [[nodiscard]] std::uint64_t bytes_taken() const { return read_; }

  // Reading throws SpecError once more than this many bytes were taken since the last call: a reader that
  // calls it for each value bounds what one value can hold.
  void expect_at_most(std::uint64_t bytes) { allowed_ = read_ + bytes; }

 protected:
  int_type underflow() override;

 private:
  // The bytes just read as the stream gives them: as they are, or decoded.
  std::string_view decoded(std::string_view bytes);

  struct Unzip;
  std::string file_;
  std::unique_ptr<Unzip> unzip_;
  std::vector<char> buffer_;
  std::optional<Utf16Decoder> utf16_;
  std::string utf8_;  // of the buffer, where the file is UTF-16
  std::uint64_t read_ = 0;
  std::uint64_t end_;
  std::uint64_t allowed_;
};

// The whole file as such a stream gives it. Throws UsageError for one of more bytes.
[[nodiscard]] std::string unpacked_text(const std::filesystem::path& file, std::uint64_t most_bytes);

}  // namespace tbdsim
