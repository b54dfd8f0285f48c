#pragma once

#include <span>
#include <string>

#include "server/embedding_format.h"

namespace muster {

/// Appends a row in fewer bits, as JSON's whole numbers with commas between them.
///
/// Ubinary: bit 7 - i % 8 of byte i / 8 is 1 where value i is above 0; what is left of the last
/// byte is 0. Binary: the same bytes less 128.
///
/// Uint8: 255 steps between the ends of a range, below and above which values stay at the end:
///
///   uint8 = clamp(floor((value + range) / (2 range / 255)), 0, 255)    int8 = uint8 - 128
///
/// The range is 4 times the row's own root mean square, so that a row's numbers depend on nothing
/// but the row: not on the batch it came in, and not on texts that someone calibrated with. The
/// row's length is lost, its direction is kept, and products of rows of one model compare as
/// cosines do. A row of zeros gives 127 (int8: -1).
///
/// format: Int8, Uint8, Binary or Ubinary. Cost: some nanoseconds a value.
/// Source: sentence-transformers 6, util/quantization.py, quantize_embeddings (numpy.packbits, and
/// the formula with `ranges` that are given). 4: of the 24,576 values of all-MiniLM-L6-v2 for 64
/// package descriptions three are beyond it (./accept house.3).
void append_quantized(std::span<const float> row, EmbeddingFormat format, std::string& out);

}  // namespace muster
