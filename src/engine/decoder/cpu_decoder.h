#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "base/result.h"
#include "engine/decoder/decoder.h"
#include "engine/decoder/decoder_model.h"
#include "engine/decoder/decoder_pass.h"
#include "engine/decoder/decoder_weights.h"
#include "engine/decoder/kv_pool.h"
#include "engine/decoder/tensor_source.h"
#include "engine/ops/thread_team.h"

namespace muster::engine {

/// A decoder on the cores of a CPU device, by our own kernels.
class CpuDecoder final : public DecoderModel {
 public:
  /// Errors: those of `pack_decoder`.
  static Result<std::unique_ptr<DecoderModel>> load(const DecoderOptions& options,
                                                    TensorSource source);

  void run(std::span<const StepSequence> sequences, std::span<float> logits) override;
  void share(std::size_t count, const std::function<void(std::size_t)>& item) override;
  std::uint64_t weights_bytes() const override { return packed_bytes(weights_); }
  std::uint64_t block_bytes() const override { return pool_.block_bytes(); }

 private:
  CpuDecoder(const DecoderOptions& options, TensorSource source);

  const DecoderSpec spec_;
  TensorSource source_;  // embeddings are read from it
  ThreadTeam team_;
  DecoderWeights weights_;
  KvPool pool_;
  std::unique_ptr<DecoderPass> pass_;
};

}  // namespace muster::engine
