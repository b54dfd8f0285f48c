#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// How SentencePiece writes a space within a token: U+2581.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

/// How it writes a byte that no other token covers: "<0x0A>".
std::string byte_token(std::uint8_t byte);

/// The byte of such a token; nullopt for any other text. As the library reads them: six bytes, two
/// digits of either case, or a plus sign and one digit.
/// Source: decoders/byte_fallback.rs of huggingface/tokenizers 0.23 and Rust's u8::from_str_radix.
std::optional<std::uint8_t> byte_of_byte_token(std::string_view token);

}  // namespace muster
