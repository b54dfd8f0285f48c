#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/decoder/panel_matrix.h"
#include "engine/decoder/tensor_source.h"
#include "spec/decoder_spec.h"
#include "spec/generation.h"

namespace muster::engine {

/// Shapes: weight [size]; bias [size], zeros where the family has none.
struct NormVectors {
  std::vector<float> weight, bias;
  bool is_there() const { return !weight.empty(); }
};

/// One layer; what a family does not have is empty.
struct DecoderLayer {
  NormVectors attention_norm;        // before attention
  PanelMatrix qkv;                   // heads of queries, of keys, of values
  NormVectors query_norm, key_norm;  // of each head
  PanelMatrix attention_out;
  NormVectors attention_post_norm;
  NormVectors feed_forward_norm;
  PanelMatrix up;  // gated: gate and up side by side
  PanelMatrix down;
  NormVectors feed_forward_post_norm;
};

/// The weights of a decoder, packed, whatever its family and file: halves of a head are turned
/// together (`RopeStyle::Halves`), norm weights have the family's offset added.
struct DecoderWeights {
  SourceMatrix embedding;                 // [vocab, hidden], read in place, a row a token
  std::optional<SourceMatrix> positions;  // [rows, hidden], likewise: learned ones
  std::vector<DecoderLayer> layers;
  NormVectors final_norm;
  PanelMatrix head;  // [vocab, hidden]

  std::uint64_t bytes() const;  // of what is packed
};

/// Where the families' loaders get everything from.
struct WeightLoading {
  const DecoderSpec& spec;
  const TensorSource& source;
  DecoderPrecision precision;
  ThreadTeam& team;
};

/// Packs the weights of the spec's family, layer by layer: beside what is packed, no more than one
/// panel a thread is held. The source must outlive the weights.
///
/// Errors: Corrupt (a missing or misshapen tensor, by name); Unsupported (a family that is not
/// computed, a type of tensor); ResourceExhausted.
Result<DecoderWeights> load_decoder_weights(const WeightLoading& loading);

}  // namespace muster::engine
