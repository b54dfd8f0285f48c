#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "dataset/byte_source.h"

namespace muster {

/// The name that `iconv -f` knows of the encoding that an input's first bytes show and that is not
/// UTF-8: "UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE"; nullopt: none of them.
///
/// By a byte order mark, or without one by NUL bytes: of Latin text in UTF-16 every second byte is
/// NUL. Every one of those bytes alone is valid UTF-8, so nothing later would notice.
///
/// Source: The Unicode Standard, section 23.8 ("Byte Order Mark (BOM)").
std::optional<std::string_view> look_for_wide_encoding(std::string_view head);

/// Bytes of an input that are looked at for that: a line or so.
inline constexpr std::size_t kEncodingHead = 64;

/// What is said of it: InvalidArgument, with the words that make UTF-8 of the input.
Error wide_encoding_refusal(const std::string& input, std::string_view encoding);

/// `source`, whose reading ends with that error as soon as its first bytes show one of them. It
/// never waits for more bytes than its reader does.
std::unique_ptr<ByteSource> refuse_wide_encoding(std::unique_ptr<ByteSource> source,
                                                 std::string input);

}  // namespace muster
