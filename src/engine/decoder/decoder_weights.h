#pragma once

#include <cstdint>

#include "base/result.h"
#include "engine/decoder/decoder_tensors.h"
#include "engine/decoder/panel_matrix.h"
#include "engine/ops/thread_team.h"
#include "spec/generation.h"

namespace muster::engine {

/// The weights of a decoder, packed for a CPU. Embeddings and learned positions are read in place,
/// a row a token.
using DecoderLayer = DecoderLayerOf<PanelMatrix>;
using DecoderWeights = DecoderWeightsOf<PanelMatrix>;

/// Packs a decoder layer by layer, routers of experts in float32 in every precision: beside what is
/// packed, no more than one panel a thread is held. The source of the tensors must outlive the
/// weights.
///
/// Errors: Unsupported (a type of tensor that is not multiplied in its own bits);
/// ResourceExhausted.
Result<DecoderWeights> pack_decoder(DecoderTensors tensors, DecoderPrecision precision,
                                    ThreadTeam& team);

/// Bytes of what is packed.
std::uint64_t packed_bytes(const DecoderWeights& weights);

}  // namespace muster::engine
