// Frames follow each other as the members of gzip do. The window that a frame asks for is memory of
// this process, so zstd's default limit of 128 MiB stands: a file packed with a larger one is
// refused with the reason. Output may wait inside the decoder after all input is taken, so a full
// buffer is asked about again before more input is read.

#include <fmt/format.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <utility>
#include <vector>

#include "dataset/compressed_source.h"

namespace muster {
namespace {

class ZstdSource final : public ByteSource {
 public:
  ZstdSource(std::unique_ptr<ByteSource> compressed, std::string name)
      : compressed_(std::move(compressed)),
        name_(std::move(name)),
        input_(ZSTD_DStreamInSize()),
        stream_(ZSTD_createDStream()) {}
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

  bool is_started() const { return stream_ != nullptr; }

  Result<std::size_t> read(std::span<char> buffer) override {
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size && !may_hold_output_) {
        const auto count = MUSTER_TRY(compressed_->read(input_));
        if (count == 0) {
          if (is_inside_frame_) return broken("it ends early");
          return std::size_t{0};
        }
        in_ = {input_.data(), count, 0};
      }
      MUSTER_TRY(decompress_into(out));
    }
    return out.pos;
  }

  std::uint64_t size_consumed() const override { return compressed_->size_consumed(); }

 private:
  Error broken(std::string_view why) const {
    return Error{ErrorKind::Corrupt, fmt::format("{}: broken zstd stream: {}", name_, why)};
  }

  Status decompress_into(ZSTD_outBuffer& out) {
    const std::size_t outcome = ZSTD_decompressStream(stream_, &out, &in_);
    if (ZSTD_isError(outcome) != 0) {
      switch (ZSTD_getErrorCode(outcome)) {
        case ZSTD_error_frameParameter_windowTooLarge:
          return Error{ErrorKind::Unsupported,
                       name_ + ": zstd window above 128 MiB (it was packed with --long)"};
        case ZSTD_error_memory_allocation:
          return Error{ErrorKind::ResourceExhausted, name_ + ": no memory to unpack zstd"};
        default:
          return broken(ZSTD_getErrorName(outcome));
      }
    }
    is_inside_frame_ = outcome != 0;
    may_hold_output_ = outcome != 0 && out.pos == out.size;
    return Done{};
  }

  std::unique_ptr<ByteSource> compressed_;
  std::string name_;
  std::vector<char> input_;
  ZSTD_DStream* stream_;
  ZSTD_inBuffer in_{};
  bool is_inside_frame_ = false;
  bool may_hold_output_ = false;  // the last call filled its buffer: more may wait inside
};

}  // namespace

Result<std::unique_ptr<ByteSource>> make_zstd_source(std::unique_ptr<ByteSource> compressed,
                                                     std::string name) {
  auto source = std::make_unique<ZstdSource>(std::move(compressed), name);
  if (!source->is_started()) {
    return Error{ErrorKind::ResourceExhausted, name + ": no memory to unpack zstd"};
  }
  return std::unique_ptr<ByteSource>(std::move(source));
}

}  // namespace muster
