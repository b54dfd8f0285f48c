#pragma once

#include <cstdint>

namespace muster {

/// How the values of a vector are sent.
enum class EmbeddingFormat : std::uint8_t {
  Float,   // numbers in JSON, the shortest that read back as the same float32
  Base64,  // in JSON, of the float32 in little-endian order
  Raw,     // application/octet-stream: [texts, dim] float32, little-endian
  Int8,    // quantized_row.h has this one and those below
  Uint8,
  Binary,
  Ubinary,
};

}  // namespace muster
