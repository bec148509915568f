#include "hwspecs/base/file.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace fs = std::filesystem;

namespace {

std::string reason() { return errno == 0 ? "unknown reason" : std::strerror(errno); }

}  // namespace

bool is_device(const fs::path& path) {
  const std::string text = path.lexically_normal().string();
  return (text.starts_with("/dev/") && !text.starts_with("/dev/shm/")) || text.starts_with("/proc/");
}

fs::path behind_links(const fs::path& path) {
  std::error_code wrong;
  if (is_device(path) || !fs::is_symlink(path, wrong)) return path;
  fs::path file = fs::weakly_canonical(path, wrong);
  return wrong ? path : file;
}

std::ifstream open_input(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw UsageError(path.string() + ": is a directory; expected a file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UsageError(path.string() + ": cannot be read: " + reason());
  return in;
}

std::string read_file(const fs::path& path, std::uintmax_t most_bytes) {
  std::ifstream in = open_input(path);
  // Reads one byte more than allowed instead of querying the size, which pipes and /proc do not have.
  std::string content;
  constexpr std::size_t kChunk = std::size_t{1} << 16U;
  errno = 0;
  while (in && content.size() <= most_bytes) {
    const std::size_t have = content.size();
    content.resize(have + kChunk);
    in.read(content.data() + have, static_cast<std::streamsize>(kChunk));
    content.resize(have + static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) throw UsageError(path.string() + ": cannot be read: " + reason());
  if (content.size() > most_bytes) {
    throw UsageError(path.string() + ": is larger than " + std::to_string(most_bytes) +
                     " bytes; expected a file written by hand");
  }
  return content;
}

AtomicFile::AtomicFile(fs::path target) : target_(behind_links(target)), written_(target_) {
  std::error_code ignored;
  const bool direct =
      is_device(target_) || (fs::exists(target_, ignored) && !fs::is_regular_file(target_, ignored));
  if (!direct) written_ += ".tmp-" + std::to_string(::getpid());
  errno = 0;
  out_.open(written_, std::ios::binary | (direct ? std::ios::app : std::ios::trunc));
  if (!out_) {
    const std::string why = reason();
    written_ = target_;  // nothing to remove
    throw UsageError(target_.string() + ": cannot be written: " + why);
  }
}

AtomicFile::~AtomicFile() {
  if (written_ == target_) return;
  out_.close();
  std::error_code ignored;
  fs::remove(written_, ignored);
}

void AtomicFile::commit() {
  if (out_) errno = 0;  // else errno is the reason why writing failed
  out_.close();
  if (!out_) throw UsageError(target_.string() + ": cannot be written: " + reason());
  if (written_ == target_) return;
  std::error_code failure;
  fs::rename(written_, target_, failure);
  if (failure) throw UsageError(target_.string() + ": cannot be written: " + failure.message());
  written_ = target_;
}

}  // namespace tbdsim
