// A file as a stream of bytes, unpacked on the way where it is compressed by gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <streambuf>
#include <string>
#include <vector>

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

  // Reading throws SpecError once more than this many bytes were taken since the last call: a reader that
  // calls it for each value bounds what one value can hold.
  void expect_at_most(std::uint64_t bytes) { allowed_ = read_ + bytes; }

 protected:
  int_type underflow() override;

 private:
  struct Unzip;
  std::string file_;
  std::unique_ptr<Unzip> unzip_;
  std::vector<char> buffer_;
  std::uint64_t read_ = 0;
  std::uint64_t end_;
  std::uint64_t allowed_;
};

}  // namespace tbdsim
