#pragma once

#include <cstddef>
#include <vector>

#include "engine/decoder/panel_matrix.h"
#include "engine/decoder/row_forms.h"
#include "engine/decoder/row_sharing.h"
#include "engine/ops/counted_array.h"
#include "engine/ops/decoder_kernels.h"
#include "engine/ops/thread_team.h"
#include "spec/decoder_spec.h"

namespace muster::engine {

/// The first product of a feed-forward part and what follows it, a piece of columns at a time:
///
///   out = activation(x W_gate^T + b) (x W_up^T + b), or activation(x W^T + b)
///
/// The product's own result, the widest of a decoder, stays in the cache and is never kept whole.
/// A row has the same bits in any company: pieces are whole blocks of the forms.
///
/// Threads: owned by one; it shares work out over the team.
class GatedProduct {
 public:
  /// Makes room for each thread, counted: min(rows, 128) x 80 floats, twice where it is gated.
  GatedProduct(const DecoderSpec& spec, ThreadTeam& team, std::size_t row_count_max);

  /// up: outputs of the gate and behind them, where it is gated, as many of the other matrix.
  /// Shapes: x [rows, hidden]; out [rows, intermediate]. fetches: what each member may fetch
  /// meanwhile.
  void run(const PanelMatrix& up, const RowBuffer& x, std::size_t row_count, RowBuffer& out,
           CacheFetches* fetches = nullptr);

 private:
  /// How large pieces are.
  struct PieceSize {
    std::size_t columns = 0;
    std::size_t rows = 0;  // that meet its panels at once

    /// Of a row of a matrix, with what shares the first panel.
    constexpr std::size_t room_columns() const { return columns + kPanelOutputs; }
    constexpr std::size_t room() const { return rows * room_columns(); }
  };
  /// Few columns where members divide them, more where they divide rows: values become blocks of 8
  /// bits four at a time, of int8 two.
  static constexpr PieceSize kDividedColumns{.columns = 64, .rows = 128};
  static constexpr PieceSize kDividedRows{.columns = 128, .rows = 64};
  static_assert(kDividedColumns.columns % kTransformedInputs == 0 &&
                kDividedRows.columns % kTransformedInputs == 0);

  /// Columns for some of the rows, by a member of the team.
  struct Piece {
    RowRange range;
    PieceSize size;
    std::size_t column = 0;
    std::size_t member = 0;
    FetchRuns* runs = nullptr;
  };

  void run_piece(const PanelMatrix& up, const RowBuffer& x, const Piece& piece, RowBuffer& out);

  PieceSize piece_size(std::size_t share_count) const;

  const DecoderSpec& spec_;
  ThreadTeam& team_;
  const DecoderKernels& kernels_;
  std::vector<CountedArray<float>> rooms_;  // one a thread
};

}  // namespace muster::engine
