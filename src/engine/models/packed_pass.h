#pragma once

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>

#include "engine/encoder.h"

namespace muster::engine {

/// How a pass is laid out: two batches of one shape differ in nothing but their numbers.
struct PassShape {
  std::int64_t row_count = 0;   // at least as many as there are tokens
  std::int64_t text_slots = 0;  // texts, those of padding included; more are empty
  std::int64_t longest = 0;     // no text is longer

  auto operator<=>(const PassShape&) const = default;
};

/// The tokens of the longest text.
std::int64_t longest_text(const TextBatch& batch);

/// The shape with as many text slots as the texts and those of padding take, none of which is
/// longer than `longest`.
PassShape least_shape(const TextBatch& batch, std::int64_t row_count, std::int64_t longest);

/// The numbers of one pass over packed texts, on the host or on the device.
///
/// The rows of the texts stand one behind the other. A product wants one of a few row counts, so
/// rows of padding follow: they are texts too, none longer than the longest real one, so that every
/// row is defined and attention costs little for them.
struct PackedPass {
  std::int64_t longest = 0;  // no text has more tokens
  at::Tensor ids;            // [rows] int32
  at::Tensor places;         // [rows] int32: rows of the model's table of positions
  at::Tensor offsets;        // [text slots + 1] int32: where each text begins, and the last ends
};

/// Where the places of a family's tokens are in the table of positions: row 0 is the padding id's.
struct PlaceRule {
  bool skips_padding = false;  // the padding id in a text takes row 0, and no place
  std::uint32_t padding_id = 0;
  std::uint32_t second_segment = 0;  // added for tokens of segment 1; 0: there are no segments
};

/// Arranges a checked batch, its texts first. The three lists are views of one tensor, so that they
/// travel to a device in one copy; `is_pinned` puts it into memory that a GPU copies from by
/// itself.
PackedPass arrange_pass(const TextBatch& batch, const PlaceRule& rule, const PassShape& shape,
                        bool is_pinned);

/// The same pass on `device`, in one copy that is not waited for.
PackedPass to_device(const PackedPass& pass, at::Device device);

/// The same into `to`, a pass of the same shape that is on the device already.
void copy_numbers(const PackedPass& from, const PackedPass& to);

}  // namespace muster::engine
