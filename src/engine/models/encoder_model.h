#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "engine/encoder.h"
#include "engine/ops/classification_head.h"
#include "engine/ops/lane_team.h"

namespace muster::engine {

/// What becomes of the token rows of a text.
struct RowForm {
  Pooling pooling = Pooling::Mean;
  bool normalize = false;
  const ClassificationHead* head = nullptr;  // of a cross-encoder: its scores, and no pooling
};

/// The layers of an encoder on one kind of device.
///
/// Threads: immutable after construction.
class EncoderModel {
 public:
  virtual ~EncoderModel() = default;

  /// The last hidden state of a checked batch, on the CPU: a contiguous float32 tensor whose first
  /// rows are those of the tokens; more may follow. A CPU's model shares its work by the seat; of
  /// how many lanes compute it no bit depends.
  virtual at::Tensor last_hidden_state(const TextBatch& batch, LaneSeat& seat) const = 0;

  /// A row for each text of a checked batch: pooled, or its scores. Here from the last hidden state
  /// by loops on the CPU.
  ///
  /// Shapes: rows [texts, dim].
  virtual void make_rows(const TextBatch& batch, const RowForm& form, std::span<float> rows,
                         LaneSeat& seat) const;

  /// The allowed row counts, ascending; none: any.
  virtual std::span<const std::uint32_t> row_counts() const = 0;

  /// Bytes of the tensors that are read in place from the mapped weight files.
  virtual std::uint64_t mapped_bytes() const = 0;

  /// Bytes of the weights in a memory of the device's own.
  virtual std::uint64_t device_bytes() const { return 0; }

  /// How many tokens to hand over at once, give or take a text: fewer where memory was short.
  virtual std::size_t tokens_per_pass() const = 0;
};

}  // namespace muster::engine
