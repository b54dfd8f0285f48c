// A gzip file is a sequence of members, and `cat a.gz b.gz` makes one of two: after the end of one
// member the next one is looked for. An input that ends within a member is broken, and is reported
// as such rather than read as a shorter text. Source: RFC 1952, section 2.2.

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "dataset/compressed_source.h"

namespace muster {
namespace {

constexpr std::size_t kInputSize = 256 * 1024;  // one read per 256 KiB: the system call is noise
constexpr int kGzipOnly = 15 + 16;              // zlib.h: window of 32 KiB, gzip header demanded

class GzipSource final : public ByteSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> compressed, std::string name)
      : compressed_(std::move(compressed)), name_(std::move(name)), input_(kInputSize) {}
  ~GzipSource() override { ::inflateEnd(&stream_); }

  bool start() { return ::inflateInit2(&stream_, kGzipOnly) == Z_OK; }

  Result<std::size_t> read(std::span<char> buffer) override {
    stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream_.avail_out = static_cast<uInt>(std::min(buffer.size(), std::size_t{1} << 30));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room && !is_at_end_) {
      if (stream_.avail_in == 0) {
        const auto count = MUSTER_TRY(compressed_->read(input_));
        stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
        stream_.avail_in = static_cast<uInt>(count);
        if (count == 0) {
          if (!is_between_) return broken("it ends early");
          is_at_end_ = true;
          break;
        }
      }
      if (is_between_) {
        MUSTER_TRY(begin_member());
      } else {
        MUSTER_TRY(inflate_some());
      }
    }
    return room - stream_.avail_out;
  }

  std::uint64_t size_consumed() const override { return compressed_->size_consumed(); }

 private:
  Error broken(std::string_view why) const {
    return Error{ErrorKind::Corrupt, fmt::format("{}: broken gzip stream: {}", name_, why)};
  }

  // Zero bytes may follow a member (tapes and block devices pad with them); anything else is a
  // member.
  Status begin_member() {
    while (stream_.avail_in > 0 && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
    }
    if (stream_.avail_in > 0) {
      ::inflateReset(&stream_);
      is_between_ = false;
    }
    return Done{};
  }

  Status inflate_some() {
    const int outcome = ::inflate(&stream_, Z_NO_FLUSH);
    if (outcome == Z_STREAM_END) {
      is_between_ = true;
    } else if (outcome == Z_MEM_ERROR) {
      return Error{ErrorKind::ResourceExhausted, name_ + ": no memory to unpack gzip"};
    } else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
      return broken(stream_.msg != nullptr ? stream_.msg : "a preset dictionary");
    }
    return Done{};
  }

  std::unique_ptr<ByteSource> compressed_;
  std::string name_;
  std::vector<char> input_;
  z_stream stream_{};
  bool is_between_ = false;  // a member has ended, the next has not begun
  bool is_at_end_ = false;
};

}  // namespace

Compression compression_of(std::string_view head) {
  if (head.starts_with("\x1f\x8b")) {
    return Compression::Gzip;
  }
  if (head.starts_with("\x28\xb5\x2f\xfd")) {
    return Compression::Zstd;
  }
  // A zstd file may begin with a skippable frame, 0x184D2A50 to 0x184D2A5F. Source: RFC 8878,
  // section 3.1.2.
  const bool is_skippable = head.size() >= 4 &&
                            (static_cast<unsigned char>(head[0]) & 0xF0) == 0x50 &&
                            head.substr(1, 3) == "\x2a\x4d\x18";
  return is_skippable ? Compression::Zstd : Compression::None;
}

Result<std::unique_ptr<ByteSource>> make_gzip_source(std::unique_ptr<ByteSource> compressed,
                                                     std::string name) {
  auto source = std::make_unique<GzipSource>(std::move(compressed), name);
  if (!source->start()) {
    return Error{ErrorKind::ResourceExhausted, name + ": no memory to unpack gzip"};
  }
  return std::unique_ptr<ByteSource>(std::move(source));
}

}  // namespace muster
