#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace muster {

/// How long the base64 of so many bytes is, with its padding.
constexpr std::size_t base64_size(std::size_t bytes) { return (bytes + 2) / 3 * 4; }

/// Writes the base64 of the bytes, padded, and returns the end. `out` must have room for
/// base64_size of them.
///
/// Source: RFC 4648 section 4; with AVX2 the method of Muła and Lemire, "Faster Base64 Encoding and
/// Decoding Using AVX2 Instructions" (ACM Transactions on the Web, 2018), section 3.
/// Cost: by table 19 instructions for three bytes.
char* put_base64(std::span<const std::byte> bytes, char* out);

using PutBase64 = char* (*)(std::span<const std::byte>, char*);

/// put_base64 for each instruction set that this CPU has, the quickest last.
std::vector<PutBase64> put_base64_available();

}  // namespace muster
