#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "modelfile/transformer_config.h"
#include "spec/model_weights.h"

namespace muster {

/// The tensors that transformers would create for a config and load into, in the order of
/// computation, under the names of its state_dict, each tied one once.
///
/// Errors: Unsupported (a dtype, a task's head or quantised weights that a config does not
/// determine, by name); InvalidArgument (more bytes than any machine has).
/// Source: transformers 5.17, modeling_*.py of each family.
Result<std::vector<WeightTensor>> config_tensors(const TransformerConfig& config);

/// Collects tensors under module names; sizes are bounded once, by finish().
class TensorBuilder {
 public:
  /// `dtype` in the words of safetensors: "F32", "BF16".
  TensorBuilder(std::string dtype, std::uint64_t element_bytes)
      : dtype_(std::move(dtype)), element_bytes_(element_bytes) {}

  /// Names from here on begin with `prefix`, which ends with a dot or is empty.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  const std::string& prefix() const { return prefix_; }

  void add(std::string_view name, std::initializer_list<std::uint64_t> shape);
  /// A tensor that stays in float32 whatever the dtype.
  void add_float32(std::string_view name, std::initializer_list<std::uint64_t> shape);
  /// torch.nn.Linear: `name`.weight [out, in] and `name`.bias [out].
  void linear(std::string_view name, std::uint64_t out, std::uint64_t in, bool has_bias);
  /// torch.nn.LayerNorm; an RMS norm has no bias.
  void norm(std::string_view name, std::uint64_t size, bool has_bias);

  /// Errors: InvalidArgument when the bytes pass 2^50.
  Result<std::vector<WeightTensor>> finish() &&;

 private:
  void add_as(std::string_view name, std::initializer_list<std::uint64_t> shape, std::string dtype,
              std::uint64_t element_bytes);

  std::string dtype_;
  std::uint64_t element_bytes_;
  std::string prefix_;
  std::vector<WeightTensor> tensors_;
  std::uint64_t bytes_ = 0;
  bool is_too_large_ = false;
};

/// The layers and what stands around them, per group of families; all names relative to the
/// builder's prefix at entry, the base model's.
void add_encoder_tensors(const TransformerConfig& config, TensorBuilder& builder);
void add_gpt_tensors(const TransformerConfig& config, TensorBuilder& builder);
void add_llama_tensors(const TransformerConfig& config, TensorBuilder& builder);
void add_t5_tensors(const TransformerConfig& config, TensorBuilder& builder);
/// Gemma 3's image encoder and projector, which stand beside its language model.
void add_vision_tensors(const TransformerConfig& config, TensorBuilder& builder);

}  // namespace muster
