#include "calibrate/measure/run/result_file.h"

#include <cerrno>
#include <cstring>
#include <sstream>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hwspecs/base/file.h"

namespace tbdsim::measure {
namespace {
std::string header_line() {
  std::ostringstream out;
  write_csv_row(out, record_columns());
  return out.str();
}

std::string done_key(const std::string& gpu, const std::string& generation, const std::string& point) {
  return gpu + '\n' + generation + '\n' + point;
}

std::string done_key(const Record& record) {
  return done_key(record.gpu, record.generation, point_key(record));
}
}  // namespace

ResultFile::ResultFile(std::string path) : path_(std::move(path)) {
  try {
    open_and_lock();
    read_and_repair();
  } catch (...) {
    if (file_ >= 0) ::close(file_);
    throw;
  }
}

ResultFile::~ResultFile() {
  if (file_ >= 0) ::close(file_);  // releases the lock
}

void ResultFile::open_and_lock() {
  const auto fail = [&](const std::string& why) { throw UsageError(path_ + ": cannot be written: " + why); };
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) fail(std::strerror(errno));
  struct stat status {};
  if (::fstat(file_, &status) != 0) fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail("it is no regular file, and a run must be able to continue it");
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) fail("another run is writing it");
  size_ = static_cast<std::int64_t>(status.st_size);
}

void ResultFile::read_and_repair() {
  const std::string header = header_line();
  std::ifstream in = open_input(path_);
  std::string first;
  std::getline(in, first);
  first += '\n';
  if (size_ < static_cast<std::int64_t>(header.size()) &&
      header.starts_with(first.substr(0, first.size() - 1))) {
    if (size_ > 0) notes_.push_back(path_ + ": only part of a header row; started anew");
    size_ = 0;
    if (::ftruncate(file_, 0) != 0) throw UsageError(path_ + ": cannot be written: " + std::strerror(errno));
    write_all(header);
    return;
  }
  if (first != header) {
    throw UsageError(path_ +
                     ": is no record file of this version of tbd-measure; expected its header row; give -o "
                     "another name");
  }
  in.clear();
  in.seekg(0);
  RecordReader reader(in, path_);
  std::int64_t point_starts = static_cast<std::int64_t>(header.size());  // of the last point in the file
  std::string last;
  for (Record record;;) {
    const auto row_starts = static_cast<std::int64_t>(in.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in));
    if (!reader.next(record)) break;
    const std::string point = done_key(record);
    if (point != last) point_starts = row_starts;
    last = point;
    done_.insert(point);
    ++rows_;
  }
  if (!reader.cut_last_line()) return;
  notes_.push_back(path_ + ": the last line is unfinished; its point is measured again");
  done_.erase(last);
  if (::ftruncate(file_, point_starts) != 0)
    throw UsageError(path_ + ": cannot be written: " + std::strerror(errno));
  size_ = point_starts;
}

void ResultFile::append(std::span<const Record> rows) {
  std::ostringstream text;
  for (const Record& row : rows) write_record(text, row);
  write_all(text.str());
  for (const Record& row : rows) done_.insert(done_key(row));
  rows_ += rows.size();
}

void ResultFile::write_all(const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::pwrite(file_, text.data() + written, text.size() - written,
                               static_cast<off_t>(size_) + static_cast<off_t>(written));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const std::string why = n == 0 ? "nothing more fits" : std::strerror(errno);
      const bool whole = ::ftruncate(file_, static_cast<off_t>(size_)) == 0;
      throw UsageError(path_ + ": cannot be written: " + why + "; the " + std::to_string(rows_) +
                       " rows before are " + (whole ? "safe" : "safe except for an unfinished last line") +
                       "; make room and give the same command again");
    }
    written += static_cast<std::size_t>(n);
  }
  size_ += static_cast<std::int64_t>(text.size());
}

bool ResultFile::has(const std::string& gpu, const std::string& generation, const std::string& point) const {
  return done_.count(done_key(gpu, generation, point)) > 0;
}

}  // namespace tbdsim::measure
