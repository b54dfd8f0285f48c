// A feed-forward part's first product, piece by piece, each with its activation.

#include "engine/decoder/gated_product.h"

#include <algorithm>

namespace muster::engine {

static_assert(GatedProduct::kColumns % kBlockInputs == 0);

GatedProduct::GatedProduct(const DecoderSpec& spec, ThreadTeam& team, std::size_t row_count_max)
    : spec_(spec), team_(team), kernels_(best_decoder_kernels()) {
  const std::size_t size = std::min(row_count_max, kRows) * kRoomColumns;
  for (std::size_t i = 0; i < team.size(); ++i) {
    rooms_.emplace_back(spec.is_gated ? 2 * size : size);
  }
}

void GatedProduct::run(const PanelMatrix& up, const RowBuffer& x, std::size_t row_count,
                       RowBuffer& out, CacheFetches* fetches) {
  const std::size_t pieces = (spec_.intermediate_size + kColumns - 1) / kColumns;
  const RowShares shares(row_count, team_.size());
  team_.share(shares.count() * pieces, [&](std::size_t index, std::size_t member) {
    run_piece(up, x,
              {.range = shares.range(index / pieces),
               .column = index % pieces * kColumns,
               .member = member,
               .runs = fetches == nullptr ? nullptr : fetches->of(member)},
              out);
  });
}

void GatedProduct::run_piece(const PanelMatrix& up, const RowBuffer& x, const Piece& piece,
                             RowBuffer& out) {
  const auto& [range, column, member, runs] = piece;
  const std::size_t size = spec_.intermediate_size;
  const std::size_t end = std::min(column + kColumns, size);
  float* gate_room = rooms_[member].get();
  for (std::size_t row = range.begin; row < range.end; row += kRows) {
    const std::size_t count = std::min(kRows, range.end - row);
    auto rows = x.rows(row, count);
    rows.runs = runs;
    // A member takes pieces in their order; the next rows of this piece meet the same panels.
    const std::size_t next = column + kColumns;
    const bool is_last = row + count == range.end;
    const auto* next_piece = is_last && next < size ? up.panel_of(next) : nullptr;
    rows.next_panels = spec_.is_gated ? up.panel_of(size + column) : next_piece;
    float* gate = gate_room + up.multiply_outputs(kernels_, rows, column, end,
                                                  {gate_room, kRoomColumns, false});
    float* wide = nullptr;
    if (spec_.is_gated) {
      float* room = gate_room + count * kRoomColumns;
      rows.next_panels = next_piece;
      wide = room + up.multiply_outputs(kernels_, rows, size + column, size + end,
                                        {room, kRoomColumns, false});
    }
    for (std::size_t i = 0; i < count; ++i) {
      float* values = gate + i * kRoomColumns;
      kernels_.gate(spec_.activation, end - column, values,
                    wide == nullptr ? nullptr : wide + i * kRoomColumns);
      out.put(kernels_, row + i, column, end - column, values);
    }
  }
}

}  // namespace muster::engine
