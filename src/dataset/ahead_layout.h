#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dataset/byte_source.h"

namespace muster {

/// A row that was computed before its turn, and what the index will say of its text.
struct AheadRow {
  std::uint64_t record = 0;  // which record of the input it is of, from 0
  std::string text_hash;     // Hash128 of the text
  std::uint32_t token_count = 0;
  bool is_truncated = false;
  std::vector<float> values;  // [dim]
};

/// Where `x.npy.ahead` holds the row of a record.
struct AheadEntry {
  std::uint64_t record = 0;
  std::string text_hash;
  std::uint64_t slot = 0;  // from 0
};

/// What such a file holds.
struct AheadContent {
  std::string run;  // identity_hash of the run whose rows they are
  std::uint32_t dim = 0;
  std::vector<AheadEntry> entries;  // in the order of their slots
  std::uint64_t slot_count = 0;     // those that hold no sound row are among them
};

/// Layout: a head of 56 bytes, then slots of one size. Little-endian.
///
///   head: "MSTAHEAD", u32 version, u32 dim, 32 hexadecimal digits of the run, u64 sum
///   slot: u64 record, 32 hexadecimal digits of the text, u32 tokens, u32 truncated, f32[dim],
///         u64 sum
///
/// A sum is the XXH3 (64 bits) of the bytes before it; that of a slot also covers the digits of the
/// run, put in front.
/// Source: docs/formats/vectors.md.
constexpr std::uint64_t kAheadHeaderSize = 56;

/// Rows of more values are no model's: a head that says so is not taken at its word.
constexpr std::uint32_t kAheadDimMost = 1 << 20;

/// Bytes of a slot.
std::uint64_t ahead_slot_size(std::uint32_t dim);

/// The head. run: 32 hexadecimal digits.
std::string ahead_header(std::string_view run, std::uint32_t dim);

/// Writes the slot of a row over `out`. values: [dim]; those of `row` are not read.
void encode_ahead_row(const AheadRow& row, std::span<const float> values, std::string_view run,
                      std::string& out);

/// The row of a slot; nullopt when it is torn, damaged, of another run, or not finite.
std::optional<AheadRow> decode_ahead_row(std::string_view slot, std::string_view run);

/// Reads such a file, a slot at a time. A slot that was being written when the run ended is none; a
/// head that was, nullopt.
///
/// Errors: InvalidArgument for a file that is none of these; Unsupported for one of another
/// version; those of `source`. name: for messages.
Result<std::optional<AheadContent>> read_ahead(ByteSource& source, const std::string& name);

}  // namespace muster
