#include "graphs/captured/gzip.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <zlib.h>

namespace tbdsim {

bool is_gzip(std::string_view bytes) { return bytes.size() > 1 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

namespace {

constexpr int kGzipOnly = 16;  // added to the window's size: zlib.h, inflateInit2

class Inflater {
 public:
  explicit Inflater(std::string_view bytes) {
    if (bytes.size() > std::numeric_limits<uInt>::max()) throw std::runtime_error("is too large");
    // zlib reads next_in and does not write to it.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) throw std::runtime_error("no memory");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills a part of `to` from `from` on; returns the end of what it wrote.
  std::size_t read(std::string& to, std::size_t from) {
    stream_.next_out = reinterpret_cast<Bytef*>(to.data() + from);
    stream_.avail_out = static_cast<uInt>(to.size() - from);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      begin_next();
    } else if (result != Z_OK) {
      throw std::runtime_error("is no whole gzip file");
    }
    return to.size() - stream_.avail_out;
  }
  [[nodiscard]] bool done() const { return done_; }

 private:
  // Files in gzip's format may be put one behind another (RFC 1952, 2.2); blocks of tapes end in zeros.
  void begin_next() {
    const std::string_view rest(reinterpret_cast<const char*>(stream_.next_in), stream_.avail_in);
    done_ = rest.find_first_not_of('\0') == std::string_view::npos;
    if (done_) return;
    if (!is_gzip(rest)) throw std::runtime_error("holds bytes behind its end; expected gzip alone");
    inflateReset(&stream_);
  }

  z_stream stream_{};
  bool done_ = false;
};

}  // namespace

std::string decompressed(std::string_view bytes, std::size_t most) {
  constexpr std::size_t kPart = std::size_t{1} << 18U;
  Inflater inflater(bytes);
  std::string all;
  std::size_t end = 0;
  while (!inflater.done()) {
    if (end > most) throw std::runtime_error("holds too many bytes");
    if (all.size() - end < kPart) all.resize(std::max(end + kPart, std::min(2 * end, most + kPart)));
    end = inflater.read(all, end);
  }
  if (end > most) throw std::runtime_error("holds too many bytes");
  all.resize(end);
  return all;
}

}  // namespace tbdsim
