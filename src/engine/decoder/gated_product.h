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

/// The first product of a feed-forward part and what follows it, a piece of 64 columns at a time:
///
///   out = activation(x W_gate^T + b) (x W_up^T + b), or activation(x W^T + b)
///
/// The product's own result, the widest of a decoder, stays in the cache and is never kept whole.
/// A row has the same bits in any company: pieces are whole blocks of the forms.
///
/// Threads: owned by one; it shares work out over the team.
class GatedProduct {
 public:
  static constexpr std::size_t kColumns = 64;  // of a piece
  static constexpr std::size_t kRows = 128;
  /// A piece of a matrix, with what shares its first panel.
  static constexpr std::size_t kRoomColumns = kColumns + kPanelOutputs;

  /// Makes room for each thread, counted: min(rows, 128) x 80 floats, twice where it is gated.
  GatedProduct(const DecoderSpec& spec, ThreadTeam& team, std::size_t row_count_max);

  /// up: outputs of the gate and behind them, where it is gated, as many of the other matrix.
  /// Shapes: x [rows, hidden]; out [rows, intermediate]. fetches: what each member may fetch
  /// meanwhile.
  void run(const PanelMatrix& up, const RowBuffer& x, std::size_t row_count, RowBuffer& out,
           CacheFetches* fetches = nullptr);

 private:
  /// A piece of 64 columns for some of the rows, by a member of the team.
  struct Piece {
    RowRange range;
    std::size_t column = 0;
    std::size_t member = 0;
    FetchRuns* runs = nullptr;
  };

  void run_piece(const PanelMatrix& up, const RowBuffer& x, const Piece& piece, RowBuffer& out);

  const DecoderSpec& spec_;
  ThreadTeam& team_;
  const DecoderKernels& kernels_;
  std::vector<CountedArray<float>> rooms_;  // one a thread
};

}  // namespace muster::engine
