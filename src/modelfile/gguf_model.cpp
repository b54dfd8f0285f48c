// The shape and the units of a GGUF model, for planning. Metadata gives the shape, tensors show
// what metadata leaves out: a gate, the rows of the table, a head of its own. Where a file is
// silent the answer errs on the side of more memory, such as full attention for a pattern that
// is not known.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "modelfile/gguf.h"
#include "modelfile/gguf_file.h"
#include "modelfile/gguf_keys.h"
#include "modelfile/model_limits.h"
#include "modelfile/shown_name.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// Hybrid models state no heads for their recurrent or convolutional layers.
Error no_attention(std::string_view architecture) {
  return Error{ErrorKind::Unsupported,
               fmt::format("general.architecture has layers without attention, whose state is not "
                           "known: {}",
                           architecture)};
}

bool has_gate(const GgufHeader& header, const std::string& architecture) {
  // Phi-3 keeps gate and up projection in one tensor.
  if (architecture == "phi3") return true;
  return std::any_of(header.tensors.begin(), header.tensors.end(), [](const GgufTensor& tensor) {
    return tensor.name.find(".ffn_gate") != std::string::npos &&
           tensor.name.find("ffn_gate_inp") == std::string::npos;
  });
}

/// The window of a layer, 0 for full attention. Layers of an architecture whose pattern neither the
/// file nor this list states count as full, which is never too little. The first conversions of
/// Gemma 2 do not state its window.
/// Source: llama.cpp, llama-model.cpp, set_swa_pattern of gemma2 (2) and gemma3 (6); n_swa of
/// gemma2.
Result<std::uint32_t> window_of(const GgufKeys& keys, std::size_t layer) {
  const std::uint32_t unstated = keys.architecture() == "gemma2" ? 4096 : 0;
  const auto window =
      MUSTER_TRY(keys.number("attention.sliding_window", kRowsMax, unstated, 0, /*min=*/0));
  if (window == 0) return 0U;
  if (const auto* pattern = keys.find("attention.sliding_window_pattern")) {
    if (const auto* list = std::get_if<GgufList>(pattern)) {
      return layer < list->numbers.size() && list->numbers[layer] != 0 ? window : 0U;
    }
    const auto period = MUSTER_TRY(keys.number("attention.sliding_window_pattern", kLayersMax));
    return (layer + 1) % period != 0 ? window : 0U;
  }
  const std::size_t period = keys.architecture() == "gemma2"   ? 2
                             : keys.architecture() == "gemma3" ? 6
                                                               : 1;
  return (layer + 1) % period != 0 ? window : 0U;
}

Status read_attention(const GgufKeys& keys, std::uint32_t hidden, std::size_t index,
                      LayerShape& layer) {
  layer.head_count = MUSTER_TRY(keys.number("attention.head_count", kHeadsMax, {}, index, 0));
  layer.kv_head_count =
      MUSTER_TRY(keys.number("attention.head_count_kv", kHeadsMax, layer.head_count, index, 0));
  if (layer.head_count == 0 || layer.kv_head_count == 0) return no_attention(keys.architecture());
  const auto split = std::max<std::uint32_t>(1, hidden / layer.head_count);
  layer.head_size = MUSTER_TRY(keys.number("attention.key_length", kHeadWidthMax, split));
  layer.value_head_size = MUSTER_TRY(keys.number("attention.value_length", kHeadWidthMax, split));
  if (keys.find("attention.kv_lora_rank") != nullptr) {
    // Newer files state the sizes of the cached latent under the plain keys and the heads' own
    // under *_mla.
    layer.attention = AttentionKind::Latent;
    layer.latent_size = MUSTER_TRY(keys.number("attention.kv_lora_rank", kWidthMax));
    layer.rope_size = MUSTER_TRY(keys.number("rope.dimension_count", kHeadWidthMax));
    layer.head_size =
        MUSTER_TRY(keys.number("attention.key_length_mla", kHeadWidthMax, layer.head_size));
    layer.value_head_size =
        MUSTER_TRY(keys.number("attention.value_length_mla", kHeadWidthMax, layer.value_head_size));
    layer.kv_head_count = layer.head_count;
    return Done{};
  }
  layer.window = MUSTER_TRY(window_of(keys, index));
  if (layer.window > 0) layer.attention = AttentionKind::SlidingWindow;
  return Done{};
}

Status read_feed_forward(const GgufKeys& keys, std::size_t index, LayerShape& layer) {
  layer.intermediate_size =
      MUSTER_TRY(keys.number("feed_forward_length", kWidthMax, 0, index, /*min=*/0));
  const auto experts = MUSTER_TRY(keys.number("expert_count", kExpertsMax, 0, 0, /*min=*/0));
  const auto dense =
      MUSTER_TRY(keys.number("leading_dense_block_count", kLayersMax, 0, 0, /*min=*/0));
  if (experts == 0 || index < dense) return Done{};
  layer.expert_count = experts;
  layer.experts_per_token = MUSTER_TRY(keys.number("expert_used_count", experts));
  layer.shared_expert_count =
      MUSTER_TRY(keys.number("expert_shared_count", kExpertsMax, 0, 0, /*min=*/0));
  layer.intermediate_size = MUSTER_TRY(
      keys.number("expert_feed_forward_length", kWidthMax, layer.intermediate_size, index));
  return Done{};
}

// The rows of the table count before the list of tokens: some models pad their table, and the
// padding takes memory.
Result<std::uint32_t> vocabulary(const GgufKeys& keys, const GgufHeader& header) {
  std::uint64_t rows = 0;
  if (const auto* table = find_gguf_tensor(header, "token_embd.weight");
      table != nullptr && table->shape.size() == 2) {
    rows = static_cast<std::uint64_t>(table->shape[1]);
  }
  const auto tokens = header.metadata.find("tokenizer.ggml.tokens");
  if (rows == 0 && tokens != header.metadata.end()) {
    if (const auto* list = std::get_if<GgufList>(&tokens->second)) rows = list->count;
  }
  if (rows == 0 || rows > kRowsMax) return keys.number("vocab_size", kRowsMax);
  return static_cast<std::uint32_t>(rows);
}

// An encoder says that its attention is not causal, or is known by its name alone.
ModelKind kind_of(const std::string& architecture, bool is_causal) {
  if (architecture == "t5") return ModelKind::EncoderDecoder;
  const bool is_encoder =
      !is_causal || architecture == "t5encoder" || architecture.find("bert") != std::string::npos;
  return is_encoder ? ModelKind::Encoder : ModelKind::Decoder;
}

/// Whether a name is "blk.N.…" of a layer that is not among the first `blocks`.
bool is_behind_layers(std::string_view name, std::uint32_t blocks) {
  constexpr std::string_view kStart = "blk.";
  if (!name.starts_with(kStart)) return false;
  name.remove_prefix(kStart.size());
  std::uint32_t layer = 0;
  const auto* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, layer);
  if (error == std::errc::invalid_argument || rest == end || *rest != '.') return false;
  return error == std::errc::result_out_of_range || layer >= blocks;
}

// A count that is too small gives a model that runs without its last layers, and talks nonsense.
// Layers that predict further tokens (nextn_predict_layers) are counted in it. Source: llama.cpp,
// convert_hf_to_gguf.py, Glm4MoeModel.
Status check_layer_count(const GgufKeys& keys, const GgufHeader& header, std::uint32_t blocks) {
  const auto behind = std::find_if(
      header.tensors.begin(), header.tensors.end(),
      [blocks](const GgufTensor& tensor) { return is_behind_layers(tensor.name, blocks); });
  if (behind == header.tensors.end()) return Done{};
  return corrupt_error(fmt::format("{}.block_count is {}, and {} is of a layer behind them",
                                   keys.architecture(), blocks, shown_name(behind->name)));
}

Status read_layers(const GgufKeys& keys, const GgufHeader& header, ModelShape& shape) {
  const auto blocks = MUSTER_TRY(keys.number("block_count", kLayersMax));
  MUSTER_TRY(check_layer_count(keys, header, blocks));
  const bool is_gated = has_gate(header, keys.architecture());
  for (std::uint32_t i = 0; i < blocks; ++i) {
    LayerShape layer;
    layer.is_encoder = shape.kind != ModelKind::Decoder;
    layer.is_gated = is_gated;
    MUSTER_TRY(read_attention(keys, shape.hidden_size, i, layer));
    MUSTER_TRY(read_feed_forward(keys, i, layer));
    shape.layers.push_back(layer);
  }
  if (shape.kind != ModelKind::EncoderDecoder) return Done{};
  auto decoder = shape.layers.front();
  decoder.is_encoder = false;
  decoder.has_cross_attention = true;
  const auto count = MUSTER_TRY(keys.number("decoder_block_count", kLayersMax, blocks));
  shape.layers.insert(shape.layers.end(), count, decoder);
  return Done{};
}

// --- units ---

bool is_before_blocks(std::string_view name) {
  for (const std::string_view module : {"token_embd", "token_types", "position_embd", "rope_freqs",
                                        "rope_factors_long", "rope_factors_short"}) {
    if (name.starts_with(module)) return true;
  }
  return false;
}

/// The unit of a tensor: its index in the chain of Embedding, blocks, Head.
std::size_t unit_index(const ModelShape& shape, std::string_view name) {
  if (is_before_blocks(name)) return 0;
  const auto encoders =
      static_cast<std::size_t>(std::count_if(shape.layers.begin(), shape.layers.end(),
                                             [](const auto& layer) { return layer.is_encoder; }));
  const auto head = shape.layers.size() + 1;
  const bool is_pair = shape.kind == ModelKind::EncoderDecoder;
  if (is_pair && name.starts_with("enc.output_norm")) return encoders;
  std::size_t first = 0;
  if (name.starts_with("dec.")) first = encoders;
  if (name.starts_with("enc.") || name.starts_with("dec.")) name.remove_prefix(4);
  if (!name.starts_with("blk.")) return head;
  std::size_t index = 0;
  const auto [rest, error] = std::from_chars(name.data() + 4, name.data() + name.size(), index);
  const bool is_whole = error == std::errc() && rest != name.data() + name.size() && *rest == '.';
  if (!is_whole || index >= shape.layers.size() - first) return head;
  return 1 + first + index;
}

std::vector<ModelUnit> make_chain(const ModelShape& shape) {
  std::vector<ModelUnit> units;
  units.push_back({UnitKind::Embedding, "token_embd", {}, 0, {}, 0});
  std::uint32_t index = 0;
  bool was_encoder = true;
  for (std::uint32_t i = 0; i < shape.layers.size(); ++i) {
    const bool is_encoder = shape.layers[i].is_encoder;
    if (shape.kind == ModelKind::EncoderDecoder && was_encoder != is_encoder) index = 0;
    was_encoder = is_encoder;
    const auto* stack = shape.kind != ModelKind::EncoderDecoder ? "" : is_encoder ? "enc." : "dec.";
    units.push_back({UnitKind::Block, fmt::format("{}blk.{}", stack, index++), {}, i, {}, 0});
  }
  units.push_back({UnitKind::Head, "output", {}, 0, {}, 0});
  return units;
}

// The name of the module: of a block's tensor the block, else the tensor's name without its last
// part.
std::string module_of(const ModelUnit& unit, const std::string& tensor) {
  if (unit.kind == UnitKind::Block && tensor.starts_with(unit.name + ".")) return unit.name;
  return tensor.substr(0, tensor.rfind('.'));
}

Status group(const GgufHeader& header, ModelDescription& model) {
  model.units = make_chain(model.shape);
  std::set<std::pair<std::size_t, std::string>> modules;  // of all units, for the look-up
  for (const auto& tensor : header.tensors) {
    const auto index = unit_index(model.shape, tensor.name);
    auto& unit = model.units[index];
    unit.tensors.push_back(static_cast<std::uint32_t>(model.tensors.size()));
    unit.stored_bytes += tensor.size;
    auto module = module_of(unit, tensor.name);
    if (modules.emplace(index, module).second) unit.modules.push_back(std::move(module));
    // The reverse of ggml's order, as everywhere else: the fastest dimension last.
    model.tensors.push_back({tensor.name, std::string(tensor.type->name),
                             std::vector<std::int64_t>(tensor.shape.rbegin(), tensor.shape.rend()),
                             tensor.size, tensor.type->is_floating,
                             tensor.type->block_elements > 1});
  }
  for (const auto& unit : model.units) {
    if (unit.kind != UnitKind::Head && unit.tensors.empty()) {
      return corrupt_error(fmt::format("the file holds no tensor of {}", unit.name));
    }
  }
  const auto* table = find_gguf_tensor(header, "token_embd.weight");
  if (model.shape.has_tied_head && table != nullptr) model.tied_bytes = table->size;
  auto& head = model.units.back();
  if (model.shape.has_tied_head && head.tensors.empty()) head.modules.emplace_back("output");
  if (head.modules.empty()) model.units.pop_back();
  return Done{};
}

}  // namespace

Result<ModelShape> parse_gguf_shape(const GgufHeader& header) {
  const auto name = MUSTER_TRY(gguf_architecture(header));
  const GgufKeys keys(header, name);
  for (const auto* recurrent : {"ssm.state_size", "wkv.head_size"}) {
    if (keys.find(recurrent) != nullptr) return no_attention(name);
  }
  ModelShape shape;
  shape.family = name;
  shape.kind = kind_of(name, MUSTER_TRY(keys.flag("attention.causal", true)));
  shape.hidden_size = MUSTER_TRY(keys.number("embedding_length", kWidthMax));
  shape.vocab_size = MUSTER_TRY(vocabulary(keys, header));
  shape.length_max = MUSTER_TRY(keys.number("context_length", kRowsMax, 0));
  MUSTER_TRY(read_layers(keys, header, shape));
  shape.has_head = shape.kind != ModelKind::Encoder;
  shape.has_tied_head = shape.has_head && find_gguf_tensor(header, "output.weight") == nullptr;
  return shape;
}

Result<ModelDescription> describe_gguf(const std::filesystem::path& path) {
  const auto file = MUSTER_TRY(GgufFile::open(path));
  const auto& header = file.header();
  const auto within = [&](const Error& error) {
    return Error{error.kind, fmt::format("{}: {}", path.string(), error.message)};
  };
  ModelDescription model;
  model.name = path.string();
  model.source_file = path.filename().string();
  auto shape = parse_gguf_shape(header);
  if (!shape) return within(shape.error());
  model.shape = *std::move(shape);
  const auto grouped = group(header, model);
  if (!grouped) return within(grouped.error());
  // A model that is not computed is described all the same.
  if (auto decoder = file.decoder()) model.decoder = *std::move(decoder);
  return model;
}

}  // namespace muster
