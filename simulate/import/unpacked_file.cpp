#include "simulate/import/unpacked_file.h"

#include <algorithm>
#include <istream>
#include <limits>
#include <system_error>

#include <zlib.h>

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

constexpr std::size_t kBuffer = 1U << 18U;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 35U;  // unpacked bytes, 32 GiB

}  // namespace

// zlib's file, which is read as it is where it is not compressed.
struct UnpackedFile::Unzip {
  explicit Unzip(const std::string& path) : file(gzopen(path.c_str(), "rb")) {
    if (file != nullptr) gzbuffer(file, kBuffer);
  }
  ~Unzip() {
    if (file != nullptr) gzclose_r(file);
  }
  Unzip(const Unzip&) = delete;
  Unzip& operator=(const Unzip&) = delete;
  gzFile file;
};

UnpackedFile::UnpackedFile(const std::filesystem::path& file, std::uint64_t beginning)
    : file_(file.string()),
      buffer_(kBuffer),
      end_(beginning == 0 ? kLargest : beginning),
      allowed_(std::numeric_limits<std::uint64_t>::max()) {
  std::error_code wrong;
  const auto status = std::filesystem::status(file, wrong);
  if (!std::filesystem::exists(status)) throw UsageError(file_ + ": cannot be read: there is no such file");
  if (!std::filesystem::is_regular_file(status)) throw UsageError(file_ + ": is no regular file");
  unzip_ = std::make_unique<Unzip>(file_);
  if (unzip_->file == nullptr) throw UsageError(file_ + ": cannot be read");
}

UnpackedFile::~UnpackedFile() = default;

UnpackedFile::int_type UnpackedFile::underflow() {
  const Mark whole{.file = std::make_shared<const std::string>(file_)};
  if (read_ > allowed_)
    throw SpecError(whole, "a value of so many bytes that it cannot be meant; expected shorter texts");
  if (read_ >= end_) {
    if (end_ == kLargest) throw SpecError(whole, "holds more than 32 GiB; expected a shorter trace");
    return traits_type::eof();
  }
  const auto most = static_cast<unsigned>(std::min<std::uint64_t>(buffer_.size(), end_ - read_));
  const int count = gzread(unzip_->file, buffer_.data(), most);
  if (count < 0) throw SpecError(whole, "is no whole gzip file; expected one that unpacks");
  if (count == 0) {
    int state = Z_OK;
    (void)gzerror(unzip_->file, &state);
    if (state != Z_OK && state != Z_STREAM_END)
      throw SpecError(whole, "is no whole gzip file; expected one that unpacks");
    return traits_type::eof();
  }
  const std::string_view bytes = decoded({buffer_.data(), static_cast<std::size_t>(count)});
  read_ += static_cast<std::uint64_t>(count);
  // A stream buffer that is only read from writes nothing to its characters.
  auto* const first = const_cast<char*>(bytes.data());
  setg(first, first, first + bytes.size());
  return bytes.empty() ? underflow() : traits_type::to_int_type(*gptr());
}

std::string_view UnpackedFile::decoded(std::string_view bytes) {
  if (read_ == 0 && begins_as_utf16(bytes)) {
    utf16_.emplace(bytes.front() == '\xfe');
    bytes.remove_prefix(2);
  }
  if (!utf16_) return bytes;
  utf8_.clear();
  utf16_->append(bytes, utf8_);
  return utf8_;
}

std::string unpacked_text(const std::filesystem::path& file, std::uint64_t most_bytes) {
  UnpackedFile unpacked(file, most_bytes + 1);
  std::istream in(&unpacked);
  in.exceptions(std::ios::badbit);  // what the buffer throws goes through
  std::string text;
  constexpr std::size_t kPart = std::size_t{1} << 20U;
  while (in) {
    const std::size_t have = text.size();
    text.resize(have + kPart);
    in.read(text.data() + have, static_cast<std::streamsize>(kPart));
    text.resize(have + static_cast<std::size_t>(in.gcount()));
  }
  if (std::max<std::uint64_t>(text.size(), unpacked.bytes_taken()) > most_bytes)  // UTF-16 may become less
    throw UsageError(file.string() + ": holds more than " + std::to_string(most_bytes >> 20U) +
                     " MiB; expected a shorter file");
  return text;
}

}  // namespace tbdsim
