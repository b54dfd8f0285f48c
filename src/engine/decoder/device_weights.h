#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/decoder/decoder_tensors.h"
#include "spec/decoder_spec.h"

namespace muster::engine {

/// Float32, as norms are computed in it. Shapes: [size] each; undefined where a family has none.
struct DeviceNorm {
  at::Tensor weight, bias;
  bool is_there() const { return weight.defined(); }
};

/// Shapes: weight [out, in]; bias [out], undefined where there is none.
struct DeviceLinear {
  at::Tensor weight, bias;
};

/// As DecoderLayerOf, without experts.
struct DeviceLayer {
  DeviceNorm attention_norm;
  DeviceLinear qkv;
  DeviceNorm query_norm, key_norm;
  DeviceLinear attention_out;
  DeviceNorm attention_post_norm;
  DeviceNorm feed_forward_norm;
  DeviceLinear up;
  DeviceLinear down;
  DeviceNorm feed_forward_post_norm;
};

/// A decoder's weights in the memory of a device of torch's.
struct DeviceWeights {
  at::Tensor embedding;  // [vocab, hidden]
  at::Tensor positions;  // [rows, hidden]: learned ones; else undefined
  std::vector<DeviceLayer> layers;
  DeviceNorm final_norm;
  at::Tensor head;  // [vocab, hidden]: the embedding itself where the spec ties them

  std::uint64_t bytes() const;
};

/// Copies a decoder to a device, matrix by matrix, each in parts: beside what is copied the host
/// holds one part, and pages of the file that it may drop. What is not copied as it is, such as
/// blocks of a GGUF file, is made floats of by up to eight threads. The caller is a lane.
///
/// floats: the device, and the type that matrices are kept in. Errors: throws what torch throws.
DeviceWeights copy_to_device(const DecoderTensors& tensors, const DecoderSpec& spec,
                             const at::TensorOptions& floats);

}  // namespace muster::engine
