#include "simulate/sweep/resumable_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"

namespace tbdsim {
namespace fs = std::filesystem;
namespace {

constexpr std::uintmax_t kLongestDescription = 1U << 20U;

fs::path with_ending(const fs::path& file, const char* ending) { return fs::path(file.string() + ending); }

}  // namespace

SweepFile::SweepFile(fs::path file, const std::string& sweep)
    : file_(std::move(file)), part_(with_ending(file_, ".part")), sweep_(with_ending(file_, ".part.sweep")) {
  std::error_code ignored;
  for (const fs::path& used : {file_, part_}) {
    if (fs::exists(used, ignored) && !fs::is_regular_file(used, ignored))
      throw UsageError(used.string() + " is no regular file; expected the name of a file, or no -o");
  }
  if (fs::exists(part_, ignored)) {
    if (!fs::exists(sweep_, ignored) || read_file(sweep_, kLongestDescription) != sweep) {
      throw UsageError(part_.string() +
                       " is half of another sweep; expected the options it was begun with, " +
                       "another -o, or the file removed");
    }
    keep_whole_lines();
  } else {
    AtomicFile description(sweep_);
    description.stream() << sweep;
    description.commit();
  }
  out_.open(part_, std::ios::binary | std::ios::app);
  if (!out_) throw UsageError(part_.string() + ": cannot be written: " + std::strerror(errno));
}

// A crash may have left half a line.
void SweepFile::keep_whole_lines() {
  std::ifstream in(part_, std::ios::binary);
  std::array<char, 65'536> block{};
  std::uintmax_t read = 0, whole = 0;
  while (in) {
    in.read(block.data(), block.size());
    const auto n = static_cast<std::size_t>(in.gcount());
    for (std::size_t i = 0; i < n; ++i) {
      if (block[i] != '\n') continue;
      ++lines_;
      whole = read + i + 1;
    }
    read += n;
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
  fs::remove(sweep_, failure);
}

}  // namespace tbdsim
