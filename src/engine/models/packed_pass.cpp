// Lays texts out one behind the other, in the host's memory. Padding becomes texts too, so that
// every row belongs to one and no kernel sees anything undefined.

#include "engine/models/packed_pass.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace muster::engine {
namespace {

// One tensor holds ids, places and offsets in this order.
PackedPass with_lists(PackedPass pass, const at::Tensor& numbers, std::int64_t row_count) {
  pass.ids = numbers.narrow(0, 0, row_count);
  pass.places = numbers.narrow(0, row_count, row_count);
  pass.offsets = numbers.narrow(0, 2 * row_count, numbers.size(0) - 2 * row_count);
  return pass;
}

at::Tensor all_numbers(const PackedPass& pass) {
  return pass.ids.as_strided({2 * pass.ids.size(0) + pass.offsets.size(0)}, {1});
}

void write_text(const TextBatch& batch, std::size_t text, std::size_t first, const PlaceRule& rule,
                std::int32_t* ids, std::int32_t* places) {
  const bool has_segments = rule.second_segment > 0 && !batch.first_segments.empty();
  const auto first_segment = has_segments ? batch.first_segments[text] : 0;
  std::int32_t place = 0;
  for (std::uint32_t i = 0; i < batch.lengths[text]; ++i) {
    const auto id = batch.ids[first + i];
    ids[i] = static_cast<std::int32_t>(id);
    places[i] = rule.skips_padding && id == rule.padding_id ? 0 : ++place;
    if (first_segment > 0 && i >= first_segment) {
      places[i] += static_cast<std::int32_t>(rule.second_segment);
    }
  }
}

}  // namespace

std::int64_t longest_text(const TextBatch& batch) {
  return *std::max_element(batch.lengths.begin(), batch.lengths.end());
}

PassShape least_shape(const TextBatch& batch, std::int64_t row_count, std::int64_t longest) {
  const auto padding_rows = row_count - static_cast<std::int64_t>(batch.ids.size());
  const auto padding_texts = (padding_rows + longest - 1) / longest;
  return {.row_count = row_count,
          .text_slots = static_cast<std::int64_t>(batch.lengths.size()) + padding_texts,
          .longest = longest};
}

PackedPass arrange_pass(const TextBatch& batch, const PlaceRule& rule, const PassShape& shape,
                        bool is_pinned) {
  PackedPass pass;
  pass.longest = shape.longest;
  const auto row_count = shape.row_count;
  const auto numbers = at::empty({2 * row_count + shape.text_slots + 1},
                                 at::TensorOptions().dtype(at::kInt).pinned_memory(is_pinned));
  auto* ids = numbers.mutable_data_ptr<std::int32_t>();
  auto* places = ids + row_count;
  auto* offset = places + row_count;
  auto* const offsets_end = offset + shape.text_slots + 1;
  std::size_t first = 0;
  for (std::size_t text = 0; text < batch.lengths.size(); ++text) {
    *offset++ = static_cast<std::int32_t>(first);
    write_text(batch, text, first, rule, ids + first, places + first);
    first += batch.lengths[text];
  }
  std::fill(ids + first, ids + row_count, 0);
  std::fill(places + first, places + row_count, 0);
  for (auto row = static_cast<std::int64_t>(first); row < row_count; row += shape.longest) {
    *offset++ = static_cast<std::int32_t>(row);
  }
  std::fill(offset, offsets_end, static_cast<std::int32_t>(row_count));
  return with_lists(std::move(pass), numbers, row_count);
}

PackedPass to_device(const PackedPass& pass, at::Device device) {
  const auto all = all_numbers(pass);
  return with_lists(pass, all.to(device, all.scalar_type(), /*non_blocking=*/true),
                    pass.ids.size(0));
}

void copy_numbers(const PackedPass& from, const PackedPass& to) {
  all_numbers(to).copy_(all_numbers(from), /*non_blocking=*/true);
}

}  // namespace muster::engine
