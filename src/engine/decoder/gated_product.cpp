// A feed-forward part's first product, piece by piece, each with its activation.

#include "engine/decoder/gated_product.h"

#include <algorithm>

namespace muster::engine {

GatedProduct::GatedProduct(const DecoderSpec& spec, ThreadTeam& team, std::size_t row_count_max)
    : spec_(spec), team_(team), kernels_(best_decoder_kernels()) {
  const std::size_t rows = std::min(row_count_max, kDividedColumns.rows);
  const std::size_t size = rows * kDividedColumns.room_columns();
  for (std::size_t i = 0; i < team.size(); ++i) {
    rooms_.emplace_back(spec.is_gated ? 2 * size : size);
  }
}

// As many rows as there is room for, in whole units of shares.
GatedProduct::PieceSize GatedProduct::piece_size(std::size_t share_count) const {
  if (share_count == 1) return kDividedColumns;
  auto size = kDividedRows;
  const std::size_t room = rooms_.front().size() / (spec_.is_gated ? 2 : 1);
  const std::size_t rows = room / size.room_columns() / RowShares::kUnit * RowShares::kUnit;
  size.rows = std::min(size.rows, rows);
  return size;
}

void GatedProduct::run(const PanelMatrix& up, const RowBuffer& x, std::size_t row_count,
                       RowBuffer& out, CacheFetches* fetches) {
  const RowShares shares(row_count, team_.size());
  const PieceSize size = piece_size(shares.count());
  const std::size_t pieces = (spec_.intermediate_size + size.columns - 1) / size.columns;
  team_.share(shares.count() * pieces, [&](std::size_t index, std::size_t member) {
    run_piece(up, x,
              {.range = shares.range(index / pieces),
               .size = size,
               .column = index % pieces * size.columns,
               .member = member,
               .runs = fetches == nullptr ? nullptr : fetches->of(member)},
              out);
  });
}

void GatedProduct::run_piece(const PanelMatrix& up, const RowBuffer& x, const Piece& piece,
                             RowBuffer& out) {
  const auto& [range, piece_size, column, member, runs] = piece;
  const std::size_t size = spec_.intermediate_size;
  const std::size_t next = column + piece_size.columns;
  const std::size_t end = std::min(next, size);
  const std::size_t stride = piece_size.room_columns();
  float* gate_room = rooms_[member].get();
  for (std::size_t row = range.begin; row < range.end; row += piece_size.rows) {
    const std::size_t count = std::min(piece_size.rows, range.end - row);
    auto rows = x.rows(row, count);
    rows.runs = runs;
    // A member takes pieces in their order; the next rows of this piece meet the same panels.
    const bool is_last = row + count == range.end;
    const auto* next_piece = is_last && next < size ? up.panel_of(next) : nullptr;
    rows.next_panels = spec_.is_gated ? up.panel_of(size + column) : next_piece;
    float* gate =
        gate_room + up.multiply_outputs(kernels_, rows, column, end, {gate_room, stride, false});
    float* wide = nullptr;
    if (spec_.is_gated) {
      float* room = gate_room + count * stride;
      rows.next_panels = next_piece;
      wide = room +
             up.multiply_outputs(kernels_, rows, size + column, size + end, {room, stride, false});
    }
    for (std::size_t i = 0; i < count; ++i) {
      out.put_gated(kernels_, spec_.activation,
                    {.row = row + i, .begin = column, .count = end - column}, gate + i * stride,
                    wide == nullptr ? nullptr : wide + i * stride);
    }
  }
}

}  // namespace muster::engine
