#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace muster {

/// A stream of bytes that is read once, from front to end.
///
/// Threads: not thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Fills the front of `buffer`, which is not empty; 0 only at the end.
  ///
  /// Errors: Corrupt (a broken compressed stream) and those of reading a file, with the input's
  /// name.
  virtual Result<std::size_t> read(std::span<char> buffer) = 0;

  /// Bytes taken so far from where they lie: compressed ones for a compressed file.
  virtual std::uint64_t size_consumed() const = 0;
};

/// Of the `consumed` bytes from which a source has made `made` ones, those that stand for the first
/// `given` of these: exact where nothing is compressed, else in proportion.
inline std::uint64_t consumed_share(std::uint64_t consumed, std::uint64_t made,
                                    std::uint64_t given) {
  if (given == made) return consumed;
  if (consumed == made) return given;
  const auto share = static_cast<double>(given) / static_cast<double>(made);
  return static_cast<std::uint64_t>(static_cast<double>(consumed) * share);
}

/// A file, or standard input for "-", as it lies on disk. is_interrupted: asked ten times a second
/// while standard input or a pipe is silent; when it says yes, reading ends with Cancelled. Without
/// it a signal that comes while it waits does that.
///
/// Errors: NotFound, InvalidArgument (no permission).
Result<std::unique_ptr<ByteSource>> open_raw_source(const std::string& input,
                                                    std::function<bool()> is_interrupted = {});

/// What `raw` holds after gzip or zstd is undone; a stream that begins like neither passes
/// unchanged. Several gzip members or zstd frames in a row read as one. `input` is for messages.
///
/// Errors: those of `raw`, and of check_readable (compressed_source.h).
/// Source: RFC 1952 (gzip), RFC 8878 (zstd; skippable frames too).
Result<std::unique_ptr<ByteSource>> decode_source(std::unique_ptr<ByteSource> raw,
                                                  const std::string& input);

/// `rest` with `head`, which was taken from its front, put back.
std::unique_ptr<ByteSource> with_head(std::string head, std::unique_ptr<ByteSource> rest);

/// "corpus.txt", and "standard input" for "-".
std::string input_name(const std::string& input);

}  // namespace muster
