#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/decoder_spec.h"
#include "spec/model_shape.h"

namespace muster {

/// One stored tensor, to the byte.
struct WeightTensor {
  std::string name;   // "model.layers.0.mlp.up_proj.weight"
  std::string dtype;  // the file format's own word: "BF16", "Q4_K"
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;   // stored, padding of the format excluded
  bool is_floating = false;  // plain float of 16 bits or more: what a load dtype converts
  bool is_blocked = false;   // ggml's quantised blocks: a load dtype makes floats of them, too
};

/// A part of a model that is never cut over two devices (tensor parallelism aside).
enum class UnitKind : std::uint8_t { Embedding, Block, Head };

struct ModelUnit {
  UnitKind kind = UnitKind::Block;
  std::string name;                    // the module: "model.layers.3"; Head: "lm_head"
  std::vector<std::string> modules;    // all modules it covers, for an `hf_device_map`
  std::uint32_t layer = 0;             // Block: index into ModelShape::layers
  std::vector<std::uint32_t> tensors;  // indices into ModelDescription::tensors
  std::uint64_t stored_bytes = 0;      // of its tensors
};

enum class WeightSource : std::uint8_t {
  Headers,  // read from the weight files: exact
  Config,   // computed from config.json alone, in its dtype: what transformers would create
};

/// A model as the planner sees it: a chain of units in the order of computation.
///
/// Every tensor belongs to exactly one unit. A tied head has a Head unit of the final
/// normalisation; `tied_bytes` is what another copy of the embedding costs on a device that has the
/// head without the embedding.
struct ModelDescription {
  std::string name;
  std::string source_file;  // "config.json", "x.gguf": for messages
  ModelShape shape;
  WeightSource weight_source = WeightSource::Headers;
  std::vector<WeightTensor> tensors;
  std::vector<ModelUnit> units;
  std::uint64_t tied_bytes = 0;
  std::uint32_t text_length = 0;  // tokens that an encoder's texts are cut to; 0: not stated
  std::string origin;             // where it was read, for people: "models/llama-3-8b"
  /// What it is computed with; nullopt: it is no decoder, or one that can only be planned.
  std::optional<DecoderSpec> decoder;

  std::uint64_t stored_bytes() const;  // of all tensors
};

}  // namespace muster
