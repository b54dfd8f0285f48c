#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "dataset/byte_source.h"

namespace muster {

enum class Compression : std::uint8_t { None, Gzip, Zstd };

/// How many first bytes `compression_of` and `check_readable` want to see.
inline constexpr std::size_t kMagicSize = 10;

/// Whether a stream that begins with `head` must be read on, up to kMagicSize bytes, to know what
/// it is. Whoever types into a pipe does not wait for that: four bytes tell that it is text.
bool wants_more_magic(std::string_view head);

/// What a stream that begins with `head` is.
///
/// Source: RFC 1952 section 2.3.1 (1f 8b), RFC 8878 sections 3.1.1 and 3.1.2 (little-endian
/// 0xFD2FB528, and 0x184D2A50 to 0x184D2A5F for a skippable frame).
Compression compression_of(std::string_view head);

/// Errors: InvalidArgument for what is neither text nor anything that is unpacked here (xz, bzip2,
/// zip, Parquet), with what makes text of it. `input` is for the message.
///
/// Source: the .xz file format 1.2.1, section 2.1.1.1; bzip2's "BZh", level, and the digits of pi
/// of a block; PKWARE APPNOTE, section 4.3.7; Parquet, "File Format".
Status check_readable(std::string_view head, const std::string& input);

/// Errors: ResourceExhausted when the library has no memory for its state.
Result<std::unique_ptr<ByteSource>> make_gzip_source(std::unique_ptr<ByteSource> compressed,
                                                     std::string name);
Result<std::unique_ptr<ByteSource>> make_zstd_source(std::unique_ptr<ByteSource> compressed,
                                                     std::string name);

}  // namespace muster
