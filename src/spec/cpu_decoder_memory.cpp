// The sizes of the engine's arrays, taken from where they are made. Which product reads which rows
// is told by a tensor's name, as nothing else in a file says it; all else follows from shapes.

#include "spec/cpu_decoder_memory.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace muster {
namespace {

constexpr std::uint64_t kFloat = 4;
constexpr std::uint64_t kHalf = 2;  // bytes of bfloat16 and float16
constexpr std::uint64_t kBlockInputs = 32;
constexpr std::uint64_t kTransformedInputs = 64;  // of a block of int8
constexpr std::uint64_t kScaledBlocks = 4;        // of int8, with one scale
constexpr std::uint64_t kPanelOutputs = 16;
constexpr std::uint64_t kCacheBlockTokens = 16;
constexpr std::uint64_t kReadAhead = 16;
// Source: src/engine/decoder/gated_product.h, kDividedColumns.
constexpr std::uint64_t kGatedRows = 128;
constexpr std::uint64_t kGatedColumns = 80;
constexpr std::uint64_t kAttentionItemRows = 24;  // decoder_pass.cpp, kAttentionRows
constexpr std::uint64_t kCandidate = 8;           // a token and its weight
constexpr std::uint64_t kTokenId = 4;

constexpr std::string_view kWeight = ".weight";

std::uint64_t up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// What the numbers of a packed matrix are: `WeightFormat` of the engine.
enum class Packed : std::uint8_t { Fp32, Bf16, Q4_0, Q4_1, Q8_0, Int8 };

// Source: src/engine/decoder/panel_matrix.cpp, weight_format.
std::optional<Packed> packed_as(const WeightTensor& tensor, DecoderPrecision precision) {
  if (precision == DecoderPrecision::Fp32) return Packed::Fp32;
  if (precision == DecoderPrecision::Bf16) return Packed::Bf16;
  if (precision == DecoderPrecision::Int8) return Packed::Int8;
  if (tensor.dtype == "F32") return Packed::Fp32;
  if (tensor.dtype == "BF16") return Packed::Bf16;
  if (tensor.dtype == "Q4_0") return Packed::Q4_0;
  if (tensor.dtype == "Q4_1") return Packed::Q4_1;
  if (tensor.dtype == "Q8_0") return Packed::Q8_0;
  return std::nullopt;
}

std::uint64_t parts(std::uint64_t value, std::uint64_t size) { return up(value, size) / size; }

std::uint64_t panel_bytes(Packed packed, std::uint64_t inputs) {
  const std::uint64_t blocks = parts(inputs, kBlockInputs);
  const std::uint64_t transformed = parts(inputs, kTransformedInputs);
  switch (packed) {
    case Packed::Fp32:
      return inputs * kPanelOutputs * kFloat;
    case Packed::Bf16:
      return up(inputs, 2) * kPanelOutputs * kHalf;
    case Packed::Q4_0:
      return blocks * (kPanelOutputs * kHalf + 4 * 64);
    case Packed::Q4_1:
      return blocks * (2 * kPanelOutputs * kHalf + 4 * 64);
    case Packed::Q8_0:
      return blocks * (kPanelOutputs * kHalf + 8 * 64);
    case Packed::Int8:
      return parts(transformed, kScaledBlocks) * kPanelOutputs * kFloat +
             transformed * kPanelOutputs * kTransformedInputs;
  }
  return 0;
}

struct Matrix {
  const WeightTensor* tensor = nullptr;
  std::uint64_t outputs = 0;
  std::uint64_t inputs = 0;
};

bool is_matrix(const WeightTensor& tensor) {
  return tensor.shape.size() == 2 && tensor.name.ends_with(kWeight);
}

// GPT-2's folder has the matrices of its blocks the other way round.
Matrix matrix_of(const DecoderSpec& spec, const WeightTensor& tensor, UnitKind kind) {
  const auto size = [&](std::size_t dimension) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, tensor.shape[dimension]));
  };
  const bool is_transposed = kind == UnitKind::Block && spec.family == DecoderFamily::Gpt2 &&
                             spec.naming == TensorNaming::HuggingFace;
  return is_transposed ? Matrix{&tensor, size(1), size(0)} : Matrix{&tensor, size(0), size(1)};
}

const ModelUnit* embedding_of(const ModelDescription& model) {
  const auto unit = std::find_if(model.units.begin(), model.units.end(),
                                 [](const auto& one) { return one.kind == UnitKind::Embedding; });
  return unit == model.units.end() ? nullptr : &*unit;
}

const WeightTensor* vocabulary_matrix(const ModelDescription& model, const ModelUnit& unit) {
  for (const auto index : unit.tensors) {
    const auto& tensor = model.tensors[index];
    const bool has_its_rows =
        is_matrix(tensor) &&
        tensor.shape[0] == static_cast<std::int64_t>(model.decoder->vocab_size);
    if (has_its_rows) return &tensor;
  }
  return nullptr;
}

/// What a unit's products multiply.
std::vector<Matrix> matrices_of(const ModelDescription& model, const ModelUnit& unit) {
  const auto& spec = *model.decoder;
  std::vector<Matrix> matrices;
  if (unit.kind == UnitKind::Block) {
    for (const auto index : unit.tensors) {
      const auto& tensor = model.tensors[index];
      if (is_matrix(tensor)) matrices.push_back(matrix_of(spec, tensor, unit.kind));
    }
  } else if (unit.kind == UnitKind::Head) {
    const auto* place = spec.has_tied_head ? embedding_of(model) : &unit;
    const auto* table = place == nullptr ? nullptr : vocabulary_matrix(model, *place);
    if (table != nullptr) matrices.push_back(matrix_of(spec, *table, unit.kind));
  }
  return matrices;
}

bool has_bias(const ModelDescription& model, const ModelUnit& unit, const Matrix& matrix) {
  const std::string_view weight = matrix.tensor->name;
  const auto name = std::string(weight.substr(0, weight.size() - kWeight.size())) + ".bias";
  return std::any_of(unit.tensors.begin(), unit.tensors.end(),
                     [&](std::uint32_t index) { return model.tensors[index].name == name; });
}

std::uint64_t norm_elements(const DecoderSpec& spec, UnitKind kind) {
  switch (kind) {
    case UnitKind::Embedding:
      return 0;
    case UnitKind::Block: {
      const std::uint64_t of_states = spec.has_post_norms ? 4 : 2;
      return of_states * spec.hidden_size + (spec.has_qk_norm ? 2U : 0U) * spec.head_size;
    }
    case UnitKind::Head:
      return spec.has_final_norm ? spec.hidden_size : 0;
  }
  return 0;
}

/// The forms of rows that some product of theirs reads.
struct Forms {
  bool fp32 = false;
  bool bf16 = false;
  bool blocks = false;
  bool transformed = false;

  void add(Packed packed) {
    fp32 = fp32 || packed == Packed::Fp32;
    bf16 = bf16 || packed == Packed::Bf16;
    blocks = blocks || (packed >= Packed::Q4_0 && packed <= Packed::Q8_0);
    transformed = transformed || packed == Packed::Int8;
  }

  /// What a head's piece of a row has to be a multiple of.
  std::uint64_t block_inputs() const { return transformed ? kTransformedInputs : kBlockInputs; }
};

std::uint64_t row_bytes(std::uint64_t size, const Forms& forms) {
  std::uint64_t bytes = forms.fp32 ? size * kFloat : 0;
  if (forms.bf16) bytes += up(size, 2) * kHalf;
  if (forms.blocks) bytes += parts(size, kBlockInputs) * (kBlockInputs + 4 * kFloat);
  if (forms.transformed) {
    bytes += parts(size, kTransformedInputs) * (kTransformedInputs + 2 * kFloat);
  }
  return bytes;
}

/// The rows that go into products, by what they are.
struct InputForms {
  Forms normed;    // into queries, keys and values, and the feed-forward part
  Forms attended;  // into the output product of attention
  Forms gated;     // into the last product
  Forms last;      // into the head

  Forms& of(UnitKind kind, std::string_view name);
};

bool ends_with_any(std::string_view name, std::span<const std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [name](std::string_view ending) { return name.ends_with(ending); });
}

// Source: src/engine/decoder/{llama,gpt2,gpt_neox,opt}_family.cpp.
constexpr std::array<std::string_view, 5> kOfAttended{
    "o_proj.weight", "out_proj.weight", "attn.c_proj.weight", "attention.dense.weight",
    "attn_output.weight"};
constexpr std::array<std::string_view, 5> kOfGated{"down_proj.weight", "fc2.weight",
                                                   "mlp.c_proj.weight", "dense_4h_to_h.weight",
                                                   "ffn_down.weight"};

Forms& InputForms::of(UnitKind kind, std::string_view name) {
  if (kind == UnitKind::Head) return last;
  if (ends_with_any(name, kOfAttended)) return attended;
  return ends_with_any(name, kOfGated) ? gated : normed;
}

InputForms input_forms(const ModelDescription& model, DecoderPrecision precision) {
  InputForms forms;
  for (const auto& unit : model.units) {
    for (const auto& matrix : matrices_of(model, unit)) {
      const auto packed = packed_as(*matrix.tensor, precision);
      if (packed) forms.of(unit.kind, matrix.tensor->name).add(*packed);
    }
  }
  return forms;
}

std::uint64_t pass_bytes(const ModelDescription& model, const CpuDecoderRun& run) {
  const auto& spec = *model.decoder;
  auto forms = input_forms(model, run.precision);
  // Heads that are no whole blocks come as float32.
  if (spec.head_size % forms.attended.block_inputs() != 0) forms.attended.fp32 = true;
  const std::uint64_t hidden = spec.hidden_size;
  const std::uint64_t queries = std::uint64_t{spec.head_count} * spec.head_size;
  const std::uint64_t keys = std::uint64_t{spec.kv_head_count} * spec.head_size;
  const std::uint64_t wide = spec.intermediate_size;
  const std::uint64_t pairs = spec.rope.style == RopeStyle::None ? 0 : spec.rope.size / 2;
  const std::uint64_t states =
      hidden + (queries + 2 * keys) + 2 * pairs + (spec.has_post_norms ? hidden : 0);
  const std::uint64_t row = states * kFloat +
                            (spec.is_parallel ? 2U : 1U) * row_bytes(hidden, forms.normed) +
                            row_bytes(queries, forms.attended) + row_bytes(wide, forms.gated);
  const std::uint64_t room =
      std::min(run.step_tokens, kGatedRows) * kGatedColumns * (spec.is_gated ? 2U : 1U) * kFloat;
  const std::uint64_t row_room =
      std::max(hidden, kAttentionItemRows * std::uint64_t{spec.head_size}) * kFloat;
  return run.step_tokens * row + run.logits_rows * row_bytes(hidden, forms.last) +
         run.threads * (room + row_room);
}

/// Positions that a thread's scratch holds, and held before that.
struct ScratchSizes {
  std::uint64_t now = 0;
  std::uint64_t before = 0;
};

// Of any sequences: the scratch before it was outgrown, so it was less than what was needed then.
ScratchSizes scratch_positions(const CpuDecoderRun& run) {
  if (run.chunk_tokens == 0) {
    const auto needed = up(run.context, kCacheBlockTokens);
    return {needed + needed / 2, needed};
  }
  ScratchSizes sizes;
  for (auto end = std::min(run.chunk_tokens, run.context);;) {
    const auto needed = up(end, kCacheBlockTokens);
    if (needed > sizes.now) sizes = {needed + needed / 2, sizes.now};
    if (end >= run.context) return sizes;
    // The first step that outgrows it ends behind the last whole block that it holds.
    const auto held = sizes.now / kCacheBlockTokens * kCacheBlockTokens;
    end = std::min(run.context, (held / run.chunk_tokens + 1) * run.chunk_tokens);
  }
}

}  // namespace

bool is_cpu_decoder(const DecoderSpec& spec) {
  if (spec.family == DecoderFamily::Mixtral) return false;
  return spec.family != DecoderFamily::Opt ||
         (spec.is_norm_before && spec.embedding_size == spec.hidden_size);
}

std::optional<CpuDecoderWeights> cpu_decoder_weights(const ModelDescription& model,
                                                     const ModelUnit& unit,
                                                     DecoderPrecision precision) {
  MUSTER_CHECK(model.decoder.has_value());
  CpuDecoderWeights weights;
  for (const auto& matrix : matrices_of(model, unit)) {
    const auto packed = packed_as(*matrix.tensor, precision);
    if (!packed) return std::nullopt;
    const auto panels = up(matrix.outputs, kPanelOutputs) / kPanelOutputs;
    weights.panels += panels * panel_bytes(*packed, matrix.inputs);
    // A head has none.
    const bool is_biased = unit.kind == UnitKind::Block && has_bias(model, unit, matrix);
    if (is_biased) weights.biases += panels * kPanelOutputs * kFloat;
  }
  weights.norms = 2 * norm_elements(*model.decoder, unit.kind) * kFloat;
  if (unit.kind != UnitKind::Embedding) return weights;
  for (const auto index : unit.tensors) {
    const auto& tensor = model.tensors[index];
    if (is_matrix(tensor)) weights.tables += tensor.bytes;
  }
  return weights;
}

CpuDecoderStep cpu_decoder_step(const ModelDescription& model, const CpuDecoderRun& run) {
  MUSTER_CHECK(model.decoder.has_value());
  const auto positions = scratch_positions(run);
  const auto of_position = run.attention_rows * kFloat;
  const std::uint64_t vocab = model.decoder->vocab_size;
  return {.pass = pass_bytes(model, run),
          .scratch = run.threads * of_position * positions.now,
          .scratch_growth = of_position * positions.before,
          .logits = run.logits_rows * vocab * kFloat,
          .sampling =
              std::min(run.threads, run.logits_rows) * vocab * (kCandidate + kTokenId + kFloat)};
}

std::uint64_t cpu_decoder_cache(const DecoderSpec& spec, KvCacheDtype kept, std::uint64_t blocks) {
  const std::uint64_t vectors =
      2 * std::uint64_t{spec.layer_count} * spec.kv_head_count * kCacheBlockTokens;
  // Of no values a vector in 8 bits has its scale, which is not read ahead.
  const auto element = kv_vector_bytes(kept, 1) - kv_vector_bytes(kept, 0);
  return blocks * vectors * kv_vector_bytes(kept, spec.head_size) + kReadAhead * element;
}

}  // namespace muster
