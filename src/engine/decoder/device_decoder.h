#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/decoder/decoder.h"
#include "engine/decoder/decoder_model.h"
#include "engine/decoder/device_weights.h"
#include "engine/decoder/step_layout.h"
#include "engine/decoder/tensor_source.h"
#include "engine/ops/cached_attention.h"

namespace muster::engine {

/// A decoder in ATen operators on any device of torch: the one for GPUs.
///
/// Matrices, the rows that meet them, keys and values are in the precision asked for; the residual
/// stream, norms, rotations and logits are float32. A product gets one of the row counts that the
/// self-test at load found to give a row the same bits, so a token's logits do not depend on the
/// company. One copy brings a step's numbers, one takes the logits back.
class DeviceDecoder final : public DecoderModel {
 public:
  /// Copies the weights to the open device (gpu.h) and runs the self-tests there.
  ///
  /// Errors: those of `find_decoder_tensors`; Unsupported (a file's own bits, a cache by name,
  /// capped attention, a GPU without the kernel of attention). Throws what torch throws.
  static Result<std::unique_ptr<DecoderModel>> load(const DecoderOptions& options,
                                                    const TensorSource& source);

  void run(std::span<const StepSequence> sequences, std::span<float> logits) override;
  void share(std::size_t count, const std::function<void(std::size_t)>& item) override;
  std::uint64_t weights_bytes() const override;
  std::uint64_t block_bytes() const override;

 private:
  /// A step's lists on the device.
  struct Numbers {
    /// Sequences that attend at once.
    struct Group {
      std::int64_t first_row = 0;
      std::int64_t row_count = 0;
      at::Tensor key_slots;
      AttentionSpans spans;
    };

    at::Tensor ids, positions, logit_rows;
    at::Tensor slots;  // int64, as copies by index want them
    std::vector<Group> groups;
    at::Tensor cosines, sines;  // [rows, 1, pairs]; undefined without rotation
  };

  DeviceDecoder(const DecoderOptions& options, const DecoderTensors& tensors, at::Device device);

  void make_rotations();
  void find_row_counts(const DecoderOptions& options);
  void try_attention();
  std::int64_t window_of(std::size_t layer) const;  // 0: none
  StepRows rows_for(std::span<const StepSequence> sequences) const;
  Numbers to_device(const StepLayout& layout) const;

  at::Tensor embed(const Numbers& numbers) const;
  void compute_layer(std::size_t index, at::Tensor& hidden, const Numbers& numbers);
  at::Tensor attend(std::size_t index, const at::Tensor& x, const Numbers& numbers);
  at::Tensor attend_to(const at::Tensor& cache, const at::Tensor& query, const Numbers& numbers,
                       const AttentionRule& rule) const;
  at::Tensor place(const DeviceLayer& layer, const at::Tensor& heads, const Numbers& numbers) const;
  at::Tensor feed_forward(const DeviceLayer& layer, const at::Tensor& x) const;
  at::Tensor logits_of(const at::Tensor& hidden, const Numbers& numbers) const;

  at::Tensor normed(const at::Tensor& rows, const DeviceNorm& norm) const;
  at::Tensor into_product(const at::Tensor& rows, const DeviceNorm& norm) const;
  void add_part(at::Tensor& hidden, const at::Tensor& x, const DeviceLinear& linear,
                const DeviceNorm& post_norm) const;
  at::Tensor head_of(const at::Tensor& x) const;

  const DecoderSpec spec_;
  at::ScalarType type_;       // of the precision
  at::TensorOptions floats_;  // of that type, on the device
  DeviceWeights weights_;
  at::Tensor rotations_;  // [length, 2 x pairs]: cosines, then sines; undefined without rotation
  at::Tensor cache_;      // [layers, 2 (keys, values), slots + the spare one, kv heads, head size]
  std::uint32_t spare_slot_ = 0;
  std::vector<std::uint32_t> row_counts_;        // ascending
  std::vector<std::uint32_t> logit_row_counts_;  // ascending
};

}  // namespace muster::engine
