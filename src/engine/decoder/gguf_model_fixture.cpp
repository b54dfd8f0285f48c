// A converter from a folder to a GGUF file that knows nothing of the engine's own reading of
// either: names by a table, orders of rows by the reshapes of the converter in Python.

#include "engine/decoder/gguf_model_fixture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/ops/float16.h"
#include "modelfile/gguf_writer.h"
#include "modelfile/safetensors.h"

namespace muster::engine {
namespace {

// ggml's numbers of the types.
constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kQ8_0 = 8;

constexpr std::size_t kBlock = 32;      // values of a block of Q8_0
constexpr std::size_t kAlignment = 32;  // of each tensor, unless a key states another
using Names = std::vector<std::pair<std::string_view, std::string_view>>;

/// A tensor [rows, columns], or a vector as rows of one column, or several of the former.
struct Tensor {
  std::string name;
  std::size_t count = 0;  // 0: not a stack
  std::size_t rows = 0;
  std::size_t columns = 1;
  bool is_vector = false;
  std::vector<float> values;
};

// Whose entries go before those that all relatives of Llama share.
const Names kGemma2{{"post_attention_layernorm", "post_attention_norm"},
                    {"pre_feedforward_layernorm", "ffn_norm"},
                    {"post_feedforward_layernorm", "post_ffw_norm"}};
const Names kShared{{"embed_tokens", "token_embd"},
                    {"norm", "output_norm"},
                    {"lm_head", "output"},
                    {"input_layernorm", "attn_norm"},
                    {"post_attention_layernorm", "ffn_norm"},
                    {"self_attn.q_proj", "attn_q"},
                    {"self_attn.k_proj", "attn_k"},
                    {"self_attn.v_proj", "attn_v"},
                    {"self_attn.qkv_proj", "attn_qkv"},
                    {"self_attn.o_proj", "attn_output"},
                    {"self_attn.q_norm", "attn_q_norm"},
                    {"self_attn.k_norm", "attn_k_norm"},
                    {"mlp.gate_proj", "ffn_gate"},
                    {"mlp.up_proj", "ffn_up"},
                    {"mlp.gate_up_proj", "ffn_up"},
                    {"mlp.down_proj", "ffn_down"},
                    // Mixtral
                    {"block_sparse_moe.gate", "ffn_gate_inp"},
                    {"w1", "ffn_gate"},
                    {"w2", "ffn_down"},
                    {"w3", "ffn_up"},
                    // GPT-2
                    {"wte", "token_embd"},
                    {"wpe", "position_embd"},
                    {"ln_f", "output_norm"},
                    {"ln_1", "attn_norm"},
                    {"ln_2", "ffn_norm"},
                    {"attn.c_attn", "attn_qkv"},
                    {"attn.c_proj", "attn_output"},
                    {"mlp.c_fc", "ffn_up"},
                    {"mlp.c_proj", "ffn_down"},
                    // GPT-NeoX
                    {"embed_in", "token_embd"},
                    {"embed_out", "output"},
                    {"final_layer_norm", "output_norm"},
                    {"attention.query_key_value", "attn_qkv"},
                    {"attention.dense", "attn_output"},
                    {"mlp.dense_h_to_4h", "ffn_up"},
                    {"mlp.dense_4h_to_h", "ffn_down"}};

std::string_view architecture_of(DecoderFamily family) {
  switch (family) {
    case DecoderFamily::Llama:
    case DecoderFamily::Mistral:
    case DecoderFamily::Mixtral:
      return "llama";
    case DecoderFamily::Qwen2:
      return "qwen2";
    case DecoderFamily::Qwen3:
      return "qwen3";
    case DecoderFamily::Phi3:
      return "phi3";
    case DecoderFamily::Gemma2:
      return "gemma2";
    case DecoderFamily::Gpt2:
      return "gpt2";
    case DecoderFamily::GptNeox:
      return "gptneox";
    default:
      MUSTER_CHECK(false);
  }
}

/// "model.layers.1.mlp.up_proj.weight" as "blk.1.ffn_up.weight"; of an expert, "w3" of the seventh
/// as "blk.1.ffn_up.6.weight".
std::string gguf_name(std::string_view name, DecoderFamily family) {
  for (const std::string_view prefix : {"model.", "transformer.", "gpt_neox."}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  std::string block;
  for (const std::string_view list : {"layers.", "h."}) {
    if (!name.starts_with(list)) continue;
    name.remove_prefix(list.size());
    const auto dot = name.find('.');
    block = "blk." + std::string(name.substr(0, dot)) + ".";
    name.remove_prefix(dot + 1);
  }
  const auto dot = name.rfind('.');
  auto part = name.substr(0, dot);
  std::string expert;
  if (constexpr std::string_view kExperts = "block_sparse_moe.experts.";
      part.starts_with(kExperts)) {
    part.remove_prefix(kExperts.size());
    expert = "." + std::string(part.substr(0, part.find('.')));
    part.remove_prefix(expert.size());
  }
  const auto find_in = [&](const Names& names) {
    const auto found = std::find_if(names.begin(), names.end(),
                                    [&](const auto& entry) { return entry.first == part; });
    return found == names.end() ? std::string_view() : found->second;
  };
  auto to = family == DecoderFamily::Gemma2 ? find_in(kGemma2) : std::string_view();
  if (to.empty()) to = find_in(kShared);
  MUSTER_CHECK(!to.empty());
  return block + std::string(to) + expert + std::string(name.substr(dot));
}

/// Row r becomes what was row `from(r)`.
void order_rows(const std::function<std::size_t(std::size_t)>& from, Tensor& tensor) {
  const auto old = tensor.values;
  for (std::size_t row = 0; row < tensor.rows; ++row) {
    const auto* begin = old.data() + from(row) * tensor.columns;
    std::copy_n(begin, tensor.columns, tensor.values.data() + row * tensor.columns);
  }
}

// reshape(heads, 2, size / 2, ...).swapaxes(1, 2): element i of either half of a head stands beside
// that of the other.
void put_into_pairs(std::size_t head_size, Tensor& tensor) {
  order_rows(
      [head_size](std::size_t row) {
        const std::size_t in_head = row % head_size;
        return row - in_head + in_head % 2 * (head_size / 2) + in_head / 2;
      },
      tensor);
}

// reshape(heads, 3, size, ...), and then all queries, all keys and all values behind each other.
void part_queries_keys_values(std::size_t heads, std::size_t head_size, Tensor& tensor) {
  order_rows(
      [heads, head_size](std::size_t row) {
        const std::size_t part = row / (heads * head_size);
        const std::size_t head = row / head_size % heads;
        return (head * 3 + part) * head_size + row % head_size;
      },
      tensor);
}

void turn_round(Tensor& tensor) {
  const auto old = tensor.values;
  for (std::size_t i = 0; i < old.size(); ++i) {
    tensor.values[i % tensor.columns * tensor.rows + i / tensor.columns] = old[i];
  }
  std::swap(tensor.rows, tensor.columns);
}

/// What `modify_tensors` does to a tensor, by its new name.
void modify(const DecoderSpec& spec, Tensor& tensor) {
  const auto is = [&](std::string_view part) {
    return tensor.name.find("." + std::string(part) + ".") != std::string::npos;
  };
  switch (spec.family) {
    case DecoderFamily::Llama:
    case DecoderFamily::Mistral:
    case DecoderFamily::Mixtral:
      if (is("attn_q") || is("attn_k")) put_into_pairs(spec.head_size, tensor);
      break;
    case DecoderFamily::Gemma2:
      if (tensor.name.ends_with("norm.weight")) {
        for (auto& value : tensor.values) value += 1.0F;
      }
      break;
    case DecoderFamily::Gpt2:
      if (tensor.name.starts_with("blk.") && !tensor.is_vector) turn_round(tensor);
      break;
    case DecoderFamily::GptNeox:
      if (is("attn_qkv")) part_queries_keys_values(spec.head_count, spec.head_size, tensor);
      break;
    default:
      break;
  }
}

// The experts of a layer on top of each other, in order: "blk.1.ffn_up.6.weight" is the seventh
// matrix of "blk.1.ffn_up_exps.weight". The fixture has fewer than eleven.
void put_on_stacks(std::vector<Tensor>& tensors) {
  std::vector<Tensor> stacked;
  for (auto& tensor : tensors) {
    const auto end = tensor.name.rfind('.');
    const auto begin = tensor.name.rfind('.', end - 1);
    const auto number = tensor.name.substr(begin + 1, end - begin - 1);
    if (number.find_first_not_of("0123456789") != std::string::npos) {
      stacked.push_back(std::move(tensor));
      continue;
    }
    tensor.name.replace(begin, number.size() + 1, "_exps");
    auto stack = std::find_if(stacked.begin(), stacked.end(),
                              [&](const Tensor& each) { return each.name == tensor.name; });
    if (stack == stacked.end()) {
      tensor.count = 1;
      stacked.push_back(std::move(tensor));
      continue;
    }
    MUSTER_CHECK(std::stoul(number) == stack->count);
    stack->values.insert(stack->values.end(), tensor.values.begin(), tensor.values.end());
    ++stack->count;
  }
  tensors = std::move(stacked);
}

/// In ggml's order: the fastest dimension first.
std::vector<std::uint64_t> shape_of(const Tensor& tensor) {
  if (tensor.is_vector) return {tensor.rows};
  if (tensor.count == 0) return {tensor.columns, tensor.rows};
  return {tensor.columns, tensor.rows, tensor.count};
}

/// Llama 3's scaling as divisors of each frequency.
Tensor frequency_divisors(const RopeSpec& rope) {
  Tensor tensor{
      .name = "rope_freqs.weight", .rows = rope.size / 2, .is_vector = true, .values = {}};
  const auto trained = static_cast<float>(rope.original_length);
  const auto low = static_cast<float>(rope.low_frequency_factor);
  const auto high = static_cast<float>(rope.high_frequency_factor);
  const auto factor = static_cast<float>(rope.factor);
  for (std::size_t i = 0; i < tensor.rows; ++i) {
    const double turn = std::pow(rope.base, static_cast<double>(2 * i) / rope.size);
    const auto wave = static_cast<float>(2 * std::numbers::pi * turn);
    if (wave < trained / high) {
      tensor.values.push_back(1);
    } else if (wave > trained / low) {
      tensor.values.push_back(factor);
    } else {
      const float smooth = (trained / wave - low) / (high - low);
      tensor.values.push_back(1 / ((1 - smooth) / factor + smooth));
    }
  }
  return tensor;
}

std::vector<Tensor> converted_tensors(const std::filesystem::path& folder,
                                      const DecoderSpec& spec) {
  const auto weights = ModelWeights::open(folder);
  MUSTER_CHECK(weights.has_value());
  std::vector<Tensor> tensors;
  for (const auto& [name, view] : weights->tensors()) {
    MUSTER_CHECK(view.type == TensorType::F32 && view.shape.size() <= 2);
    Tensor tensor{.name = gguf_name(name, spec.family),
                  .rows = static_cast<std::size_t>(view.shape[0]),
                  .columns = view.shape.size() == 2 ? static_cast<std::size_t>(view.shape[1]) : 1,
                  .is_vector = view.shape.size() == 1,
                  .values = std::vector<float>(view.data.size() / sizeof(float))};
    std::memcpy(tensor.values.data(), view.data.data(), view.data.size());
    modify(spec, tensor);
    tensors.push_back(std::move(tensor));
  }
  if (spec.rope.scaling == RopeScaling::Llama3) tensors.push_back(frequency_divisors(spec.rope));
  return tensors;
}

/// The keys of a file, counted.
class Keys {
 public:
  explicit Keys(std::string_view architecture) : architecture_(architecture) {
    writer_.key("general.architecture", architecture_);
  }
  template <typename T>
  void add(const std::string& name, T value) {
    writer_.key(architecture_ + "." + name, value);
    ++count_;
  }
  std::uint64_t count() const { return count_; }
  const std::string& bytes() const { return writer_.bytes(); }

 private:
  std::string architecture_;
  GgufWriter writer_;
  std::uint64_t count_ = 1;
};

Keys keys_of(const DecoderSpec& spec) {
  Keys keys(architecture_of(spec.family));
  keys.add("context_length", spec.length_max);
  keys.add("embedding_length", spec.hidden_size);
  keys.add("block_count", spec.layer_count);
  keys.add("feed_forward_length", spec.intermediate_size);
  keys.add("attention.head_count", spec.head_count);
  const auto epsilon = static_cast<float>(spec.norm_epsilon);
  if (spec.norm == NormKind::Layer) {
    keys.add("attention.layer_norm_epsilon", epsilon);
  } else {
    keys.add("attention.layer_norm_rms_epsilon", epsilon);
    keys.add("attention.head_count_kv", spec.kv_head_count);
    keys.add("attention.key_length", spec.head_size);
    keys.add("attention.value_length", spec.head_size);
    keys.add("rope.freq_base", static_cast<float>(spec.rope.base));
  }
  if (spec.rope.style != RopeStyle::None) keys.add("rope.dimension_count", spec.rope.size);
  switch (spec.family) {
    case DecoderFamily::Gemma2:
      keys.add("attn_logit_softcapping", static_cast<float>(spec.attention_cap));
      keys.add("final_logit_softcapping", static_cast<float>(spec.logit_cap));
      keys.add("attention.sliding_window", spec.windows.front());
      break;
    case DecoderFamily::Phi3:
      keys.add("rope.scaling.original_context_length", spec.length_max);
      keys.add("attention.sliding_window", std::uint32_t{0});
      break;
    case DecoderFamily::Mixtral:
      keys.add("expert_count", spec.expert_count);
      keys.add("expert_used_count", spec.experts_per_token);
      break;
    case DecoderFamily::GptNeox:
      keys.add("use_parallel_residual", spec.is_parallel);
      break;
    default:
      break;
  }
  return keys;
}

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/// The blocks of Q8_0 nearest to a matrix, which becomes what they stand for.
std::string put_into_blocks(Tensor& tensor) {
  MUSTER_CHECK(tensor.columns % kBlock == 0);
  std::string blocks;
  for (std::size_t begin = 0; begin < tensor.values.size(); begin += kBlock) {
    float* values = tensor.values.data() + begin;
    float most = 0;
    for (std::size_t i = 0; i < kBlock; ++i) most = std::max(most, std::abs(values[i]));
    const Float16 half = to_float16(most / 127);
    const float scale = to_float(half);
    blocks.append(reinterpret_cast<const char*>(&half), sizeof half);
    for (std::size_t i = 0; i < kBlock; ++i) {
      const float quant = scale == 0 ? 0.0F : std::round(values[i] / scale);
      blocks += static_cast<char>(static_cast<std::int8_t>(quant));
      values[i] = quant * scale;
    }
  }
  return blocks;
}

void pad(std::string& file) {
  file.resize((file.size() + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

std::string gguf_of_folder(const std::filesystem::path& folder, const DecoderSpec& spec,
                           FileNumbers numbers, GgufExperts experts) {
  auto tensors = converted_tensors(folder, spec);
  if (experts == GgufExperts::Stacked) put_on_stacks(tensors);
  const auto keys = keys_of(spec);
  GgufWriter described;
  std::string data;
  for (auto& tensor : tensors) {
    const bool is_exact = tensor.is_vector || numbers == FileNumbers::Fp32;
    const auto blocks = is_exact ? std::string() : put_into_blocks(tensor);
    const bool has_blocks = !is_exact && numbers == FileNumbers::Q8_0;
    described.tensor(tensor.name, shape_of(tensor), has_blocks ? kQ8_0 : kF32, data.size());
    data += has_blocks ? blocks : bytes_of(tensor.values);
    pad(data);
  }
  auto file = GgufWriter().header(tensors.size(), keys.count()).bytes();
  file += keys.bytes() + described.bytes();
  pad(file);
  return file + data;
}

}  // namespace muster::engine
