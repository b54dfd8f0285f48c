#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/decoder/cache_fetches.h"
#include "engine/decoder/decoder_tensors.h"
#include "engine/decoder/row_forms.h"
#include "engine/ops/decoder_kernels.h"
#include "engine/ops/panel_weight.h"
#include "engine/ops/thread_team.h"
#include "spec/generation.h"

namespace muster::engine {

/// One dense layer, or several that read the same rows, side by side: query, key and value; gate
/// and up. Each part keeps the numbers of its own tensor. A last block of 8 bits that its inputs do
/// not fill has zeros behind them, as the rows of a `RowBuffer` have.
///
/// Threads: immutable once its parts are there.
class PanelMatrix {
 public:
  /// Packs another part on the right, shared out over the team, which is to multiply as well: items
  /// of a product are cut for its size.
  ///
  /// Errors: Unsupported for Own and a type that is not multiplied in its own bits, by name;
  /// ResourceExhausted.
  Status add(const DensePart& part, DecoderPrecision precision, ThreadTeam& team);

  std::size_t in_size() const { return in_size_; }
  std::size_t out_size() const { return out_size_; }
  std::uint64_t bytes() const;

  /// The forms of its input rows that the products read.
  RowForms forms() const { return forms_; }

  /// out = x W^T + b (or out += that), shared out over the team by panels and rows. fetches: what
  /// each member may fetch meanwhile.
  void multiply(const DecoderKernels& kernels, ThreadTeam& team, const RowBuffer& x,
                std::size_t row_count, const ProductOut& out,
                CacheFetches* fetches = nullptr) const;

  /// Where the panel of an output begins; null behind the last one.
  const std::byte* panel_of(std::size_t output) const;

  /// The outputs [begin, end) alone, which are of one part, by the caller. What else is of their
  /// panels is computed as well: returns how many columns of `out` stand before `begin`.
  std::size_t multiply_outputs(const DecoderKernels& kernels, const ProductRows& x,
                               std::size_t begin, std::size_t end, const ProductOut& out) const;

 private:
  std::vector<PanelWeight> parts_;
  std::size_t in_size_ = 0;
  std::size_t out_size_ = 0;
  std::size_t item_panels_ = 1;  // of an item of `multiply`
  RowForms forms_;
};

/// In which format a tensor's rows are packed.
///
/// Errors: Unsupported for Own and a type that is not multiplied in its own bits, with those that
/// are.
Result<WeightFormat> weight_format(const SourceMatrix& matrix, DecoderPrecision precision);

}  // namespace muster::engine
