#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "dataset/byte_source.h"

namespace muster {

/// Vectors that were read from text.
struct JsonlVectors {
  std::vector<float> values;  // [rows, dim]
  std::uint32_t dim = 0;      // at least 1
};

/// Reads an array of numbers a line, alone or as the value of "embedding" in an object, all of the
/// same length. Numbers are read straight as float32,
/// so that what the writer wrote comes back bit for bit.
///
/// Errors: Corrupt, naming `name` and the line; those of the source.
Result<JsonlVectors> read_jsonl_vectors(std::unique_ptr<ByteSource> source,
                                        const std::string& name);

}  // namespace muster
