#include "simulate/sweep/resumable_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace fs = std::filesystem;
namespace {

constexpr std::uintmax_t kLongestDescription = std::uintmax_t{1} << 24U;

fs::path with_ending(const fs::path& file, const char* ending) { return fs::path(file.string() + ending); }

// True where the open file is still the one at `path`: another process may have renamed it meanwhile.
bool is_at(int descriptor, const fs::path& path) {
  struct stat open {};
  struct stat there {};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open.st_ino == there.st_ino && open.st_dev == there.st_dev;
}

// FILE.part, where neither it nor FILE is anything but a regular file or not there yet.
const fs::path& regular(const fs::path& file, const fs::path& part) {
  std::error_code ignored;
  for (const fs::path& used : {file, part}) {
    if (is_device(used) || (fs::exists(used, ignored) && !fs::is_regular_file(used, ignored)))
      throw UsageError(used.string() + " is no regular file; expected the name of a file, or no -o");
  }
  return part;
}

// The first line in which two texts differ, as each has it.
std::pair<std::string, std::string> first_difference(const std::string& before, const std::string& now) {
  std::istringstream a(before);
  std::istringstream b(now);
  std::string line_a;
  std::string line_b;
  while (true) {
    const bool more_a = static_cast<bool>(std::getline(a, line_a));
    const bool more_b = static_cast<bool>(std::getline(b, line_b));
    if (!more_a) line_a = "nothing";
    if (!more_b) line_b = "nothing";
    if (line_a != line_b || (!more_a && !more_b)) return {line_a, line_b};
  }
}

}  // namespace

FileLock::FileLock(const fs::path& path) {
  constexpr mode_t kReadableByAll = 0644;
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kReadableByAll);
    if (descriptor_ < 0) throw UsageError(path.string() + ": cannot be written: " + std::strerror(errno));
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      ::close(descriptor_);
      throw UsageError(path.string() + " is being written by another process; expected another -o");
    }
  } while (!is_at(descriptor_, path));
}

FileLock::~FileLock() { ::close(descriptor_); }

SweepFile::SweepFile(const fs::path& file, const std::string& description, const IsLine& is_line)
    : file_(behind_links(file)),
      part_(with_ending(file_, ".part")),
      description_(with_ending(file_, ".part.sweep")),
      lock_(regular(file_, part_)) {
  if (fs::file_size(part_) > 0) {
    require_description(description);
    keep_whole_lines(is_line);
  } else {
    AtomicFile written(description_);
    written.stream() << description;
    written.commit();
  }
  out_.open(part_, std::ios::binary | std::ios::app);
  if (!out_) throw UsageError(part_.string() + ": cannot be written: " + std::strerror(errno));
}

void SweepFile::require_description(const std::string& description) const {
  std::error_code ignored;
  const std::string advice = "; expected what it was begun with, another -o, or the file removed";
  if (!fs::exists(description_, ignored))
    throw UsageError(part_.string() + " is half of another sweep: " + description_.string() + " is missing" +
                     advice);
  const std::string before = read_file(description_, kLongestDescription);
  if (before == description) return;
  const auto [was, is] = first_difference(before, description);
  throw UsageError(part_.string() + " is half of another sweep: it was begun with " + in_quotes(was) +
                   ", now it is " + in_quotes(is) + advice);
}

// A crash may have left half a line, which is cut off.
void SweepFile::keep_whole_lines(const IsLine& is_line) {
  std::ifstream in(part_, std::ios::binary);
  std::uintmax_t whole = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    line += '\n';
    if (!is_line(lines_, line)) {
      throw UsageError(part_.string() + ":" + std::to_string(lines_ + 1) +
                       ": is no row of this sweep; expected the file as the sweep left it, or removed");
    }
    ++lines_;
    whole += line.size();
  }
  fs::resize_file(part_, whole);
}

void SweepFile::append(const std::string& lines) {
  out_ << lines << std::flush;
  if (!out_) {
    throw UsageError(part_.string() + ": cannot be written: " + std::strerror(errno) +
                     "; with more room the same command goes on from there");
  }
  lines_ += std::count(lines.begin(), lines.end(), '\n');
}

void SweepFile::commit() {
  out_.close();
  std::error_code failure;
  fs::rename(part_, file_, failure);
  if (failure) throw UsageError(file_.string() + ": cannot be written: " + failure.message());
  fs::remove(description_, failure);
}

}  // namespace tbdsim
