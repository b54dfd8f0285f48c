// What the engine's own account shows of a decoder against the formula that planner and server use.
// Each line that begins with "memory" is a row of the table that ./accept generate.4 shows.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "engine/decoder/decoder_fixture.h"
#include "engine/memory_use.h"
#include "engine/ops/decoder_kernels.h"
#include "modelfile/decoder_config.h"
#include "modelfile/gguf_writer.h"
#include "modelfile/model_description.h"
#include "spec/cpu_decoder_memory.h"

namespace muster::engine {
namespace {

constexpr DecoderPrecision kPrecisions[] = {DecoderPrecision::Fp32, DecoderPrecision::Bf16,
                                            DecoderPrecision::Own, DecoderPrecision::Int8};

/// How a decoder is loaded, and what it is then given.
struct Shape {
  std::size_t step_tokens;
  std::size_t logits;
  std::size_t threads;
  std::size_t sequences;  // each step has as many tokens of each
  std::size_t context;    // of each sequence, in the end
};

constexpr Shape kShapes[] = {
    {512, 64, 1, 1, 640},                      // longer than a step
    {512, 64, 2, 4, 128}, {16, 4, 3, 1, 200},  // scratch is outgrown several times
    {48, 40, 2, 32, 20},                       // token by token
    {33, 1, 1, 3, 50},    {1, 1, 1, 1, 17},
};

// What a precision keeps keys and values in by itself, and in 8 bits.
std::vector<KvCacheDtype> caches_of(DecoderPrecision precision) {
  return {kept_as(KvCacheDtype::Auto, precision), KvCacheDtype::Int8};
}

void compare(const std::string& model, DecoderPrecision precision, const std::string& what,
             std::uint64_t predicted, std::uint64_t measured) {
  const auto error = 100 * (static_cast<double>(predicted) / static_cast<double>(measured) - 1);
  fmt::print("memory {} {} {} {} {} {:+.3f}\n", model, decoder_precision_name(precision), what,
             predicted, measured, error);
  EXPECT_EQ(predicted, measured) << model << " in " << decoder_precision_name(precision) << ": "
                                 << what;
}

/// The weights of all units, as planned.
CpuDecoderWeights weights_of(const ModelDescription& model, DecoderPrecision precision) {
  CpuDecoderWeights sum;
  for (const auto& unit : model.units) {
    const auto weights = cpu_decoder_weights(model, unit, precision);
    EXPECT_TRUE(weights) << unit.name;
    if (!weights) continue;
    sum.panels += weights->panels;
    sum.biases += weights->biases;
  }
  return sum;
}

std::size_t blocks_for(std::size_t tokens) {
  return (tokens + kKvBlockTokens - 1) / kKvBlockTokens;
}

/// Continues all sequences to the end of their context, in steps of `chunk` tokens of each.
void run(Decoder& decoder, const Shape& shape, std::size_t chunk) {
  const std::size_t blocks = blocks_for(shape.context);
  std::vector<std::vector<std::uint32_t>> blocks_of(shape.sequences);
  for (std::size_t s = 0; s < shape.sequences; ++s) {
    for (std::size_t b = 0; b < blocks; ++b) {
      blocks_of[s].push_back(static_cast<std::uint32_t>(s * blocks + b));
    }
  }
  const std::vector<std::uint32_t> tokens(chunk, 5);
  const bool wants_logits = shape.logits >= shape.sequences;
  std::vector<float> logits(wants_logits ? shape.sequences * decoder.vocab_size() : 0);
  for (std::size_t at = 0; at < shape.context; at += chunk) {
    std::vector<StepSequence> steps;
    for (const auto& its : blocks_of) {
      steps.push_back({.tokens = std::span(tokens).first(std::min(chunk, shape.context - at)),
                       .position = static_cast<std::uint32_t>(at),
                       .blocks = its,
                       .logit_count = wants_logits ? 1U : 0U});
    }
    const auto done = decoder.step(steps, logits);
    ASSERT_TRUE(done) << done.error().message;
  }
}

/// Loads and runs a decoder in one shape, and compares what it takes. The name of a cache that
/// another is asked for in stands before the shape.
void compare_one(const std::string& name, const ModelDescription& model, DecoderOptions options,
                 Shape shape) {
  // Turned positions have no table that ends.
  if (options.spec.rope.style != RopeStyle::None) options.spec.length_max = 1024;
  shape.context = std::min(shape.context, decoder_length_max(options.spec));
  const std::size_t chunk = std::max<std::size_t>(1, shape.step_tokens / shape.sequences);
  const auto precision = options.precision;
  options.step_tokens_max = shape.step_tokens;
  options.logits_max = shape.logits;
  options.thread_count = shape.threads;
  options.block_count = shape.sequences * blocks_for(shape.context);

  const auto before = memory_use().live_bytes;
  restart_memory_peak();
  auto decoder = Decoder::load(options);
  ASSERT_TRUE(decoder) << decoder.error().message;
  const auto loaded = memory_use().live_bytes - before;
  run(**decoder, shape, chunk);
  const auto peak = memory_use().peak_bytes - before;

  const auto weights = weights_of(model, precision);
  const auto cache = cpu_decoder_cache(options.spec, options.kv_cache_dtype, options.block_count);
  const auto step =
      cpu_decoder_step(model, {.precision = precision,
                               .step_tokens = shape.step_tokens,
                               .logits_rows = shape.logits,
                               .threads = shape.threads,
                               .context = shape.context,
                               .chunk_tokens = chunk,
                               .attention_rows = best_decoder_kernels().attention_rows});
  const bool is_in_8_bits = options.kv_cache_dtype == KvCacheDtype::Int8;
  const auto what = fmt::format("{}{}-rows-{}x{}", is_in_8_bits ? "kv8-" : "", shape.step_tokens,
                                shape.sequences, shape.context);
  EXPECT_EQ(weights.panels, (*decoder)->weights_bytes());
  compare(name, precision, "load-" + what, weights.counted() + cache + step.pass, loaded);
  compare(name, precision, "peak-" + what, weights.counted() + cache + step.counted_peak(), peak);
}

/// The same in every shape, precision and cache.
void compare_all(const std::string& name, const DecoderOptions& loading) {
  const auto model = describe_model(loading.source);
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_TRUE(model->decoder);
  auto options = loading;
  for (const auto precision : kPrecisions) {
    options.precision = precision;
    for (const auto cache : caches_of(precision)) {
      options.kv_cache_dtype = cache;
      for (const auto& shape : kShapes) compare_one(name, *model, options, shape);
    }
  }
}

class DecoderMemoryTest : public testing::TestWithParam<const char*> {};

TEST_P(DecoderMemoryTest, TheFormulaIsWhatTheEngineTakes) {
  compare_all(GetParam(), DecoderFixture(GetParam()).options);
}

INSTANTIATE_TEST_SUITE_P(All, DecoderMemoryTest,
                         testing::Values("llama", "llama_biased", "llama3", "mistral", "qwen2",
                                         "qwen3", "phi3", "gemma2", "gpt2", "opt", "gpt_neox",
                                         "gpt_neox_plain"),
                         [](const auto& model) { return std::string(model.param); });

/// A GGUF file of a Llama whose matrices are of several types; the numbers do not matter.
class MixedFile {
 public:
  // head: ggml's number of its type; nullopt: tied. head_size: of attention.
  MixedFile(const std::string& name, std::optional<std::uint32_t> head,
            std::uint32_t head_size = 16)
      : path_(std::filesystem::path(testing::TempDir()) /
              (name + "." + std::to_string(::getpid()) + ".gguf")),
        keys_(std::max<std::uint64_t>(32, head_size)) {
    add("token_embd.weight", {kWidth, kVocab}, kQ4_1);
    for (const auto* layer : {"blk.0.", "blk.1."}) add_layer(layer);
    add("output_norm.weight", {kWidth}, kF32);
    if (head) add("output.weight", {kWidth, kVocab}, *head);
    GgufWriter writer;
    writer.header(count_, 12)
        .key("general.architecture", "llama")
        .key("llama.context_length", std::uint32_t{1024})
        .key("llama.embedding_length", static_cast<std::uint32_t>(kWidth))
        .key("llama.block_count", std::uint32_t{2})
        .key("llama.feed_forward_length", static_cast<std::uint32_t>(kFeedForward))
        .key("llama.attention.head_count", static_cast<std::uint32_t>(kWidth / head_size))
        .key("llama.attention.head_count_kv", static_cast<std::uint32_t>(keys_ / head_size))
        .key("llama.attention.key_length", head_size)
        .key("llama.attention.value_length", head_size)
        .key("llama.attention.layer_norm_rms_epsilon", 1e-5F)
        .key("llama.rope.freq_base", 10000.0F)
        .key("llama.rope.dimension_count", head_size);
    for (const auto& tensor : tensors_) {
      writer.tensor(tensor.name, tensor.shape, tensor.type, tensor.offset);
    }
    EXPECT_TRUE(write_file_atomically(path_, writer.data(size_)));
  }
  ~MixedFile() { std::filesystem::remove(path_); }

  DecoderOptions options() const {
    DecoderOptions loading;
    loading.source = path_;
    const auto spec = read_decoder_spec(path_);
    EXPECT_TRUE(spec) << spec.error().message;
    if (spec) loading.spec = *spec;
    return loading;
  }

  // ggml's numbers of the types.
  static constexpr std::uint32_t kF32 = 0;
  static constexpr std::uint32_t kQ4_0 = 2;
  static constexpr std::uint32_t kQ4_1 = 3;
  static constexpr std::uint32_t kQ8_0 = 8;
  static constexpr std::uint32_t kBf16 = 30;

 private:
  static constexpr std::uint64_t kWidth = 64;
  static constexpr std::uint64_t kFeedForward = 96;
  static constexpr std::uint64_t kVocab = 90;  // no multiple of 16

  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> shape;  // ggml's order
    std::uint32_t type;
    std::uint64_t offset;
  };

  void add_layer(const std::string& layer) {
    add(layer + "attn_norm.weight", {kWidth}, kF32);
    add(layer + "attn_q.weight", {kWidth, kWidth}, kQ4_0);
    add(layer + "attn_k.weight", {kWidth, keys_}, kQ4_1);
    add(layer + "attn_v.weight", {kWidth, keys_}, kBf16);
    add(layer + "attn_output.weight", {kWidth, kWidth}, kBf16);
    add(layer + "ffn_norm.weight", {kWidth}, kF32);
    add(layer + "ffn_gate.weight", {kWidth, kFeedForward}, kQ8_0);
    add(layer + "ffn_up.weight", {kWidth, kFeedForward}, kQ4_0);
    add(layer + "ffn_down.weight", {kFeedForward, kWidth}, kQ8_0);
  }

  void add(const std::string& name, std::vector<std::uint64_t> shape, std::uint32_t type) {
    std::uint64_t elements = 1;
    for (const auto extent : shape) elements *= extent;
    tensors_.push_back({name, std::move(shape), type, size_});
    ++count_;
    size_ = (size_ + bytes_of(type, elements) + 31) / 32 * 32;
  }

  static std::uint64_t bytes_of(std::uint32_t type, std::uint64_t elements) {
    switch (type) {
      case kQ4_0:
        return elements / 32 * 18;
      case kQ4_1:
        return elements / 32 * 20;
      case kQ8_0:
        return elements / 32 * 34;
      case kBf16:
        return elements * 2;
      default:
        return elements * 4;
    }
  }

  const std::filesystem::path path_;
  const std::uint64_t keys_;
  std::vector<Tensor> tensors_;
  std::uint64_t count_ = 0;
  std::uint64_t size_ = 0;
};

// Each kind of rows is made in the forms that its own products read, and in no other.
TEST(DecoderMemory, MatricesOfSeveralTypesAreCountedEachInItsOwn) {
  compare_all("mixed", MixedFile("decoder_memory_mixed", MixedFile::kF32).options());
}

// What attention gives of a head of 32, in int8 of 64, is put into a product's blocks at once.
TEST(DecoderMemory, HeadsOfWholeBlocksAreNotKeptInFloat32) {
  for (const std::uint32_t head_size : {32U, 64U}) {
    compare_all(fmt::format("mixed-{}", head_size),
                MixedFile("decoder_memory_heads", MixedFile::kF32, head_size).options());
  }
}

TEST(DecoderMemory, ATiedHeadIsPackedBesideItsTable) {
  compare_all("mixed-tied", MixedFile("decoder_memory_tied", std::nullopt).options());
}

// By hand: up16(90) x 64 inputs of Q4_1 in blocks of 32, each 20 bytes.
TEST(DecoderMemory, AHeadIsPaddedToWholePanels) {
  const MixedFile file("decoder_memory_head", std::nullopt);
  const auto model = describe_model(file.options().source);
  ASSERT_TRUE(model) << model.error().message;
  const auto own = cpu_decoder_weights(*model, model->units.back(), DecoderPrecision::Own);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->panels, 96U * 2 * 20);
  EXPECT_EQ(own->norms, 64U * 8);
  const auto bf16 = cpu_decoder_weights(*model, model->units.back(), DecoderPrecision::Bf16);
  ASSERT_TRUE(bf16);
  EXPECT_EQ(bf16->panels, 96U * 64 * 2);
  const auto table = cpu_decoder_weights(*model, model->units.front(), DecoderPrecision::Bf16);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->tables, 90U * 2 * 20);
  EXPECT_EQ(table->counted(), 0U);
}

// By hand: of 2 layers with 2 heads of keys of 16 values, a block has 2 x 2 x 2 x 16 vectors of 16
// bytes and a scale of 4; 16 more elements are read ahead.
TEST(DecoderMemory, AScaleIsCountedWithEachVectorOf8Bits) {
  const MixedFile file("decoder_memory_scales", std::nullopt);
  const auto options = file.options();
  EXPECT_EQ(cpu_decoder_cache(options.spec, KvCacheDtype::Int8, 3), 3U * 128 * 20 + 16);
  EXPECT_EQ(cpu_decoder_cache(options.spec, KvCacheDtype::Fp16, 3), 3U * 128 * 32 + 32);
  EXPECT_EQ(cpu_decoder_cache(options.spec, KvCacheDtype::Fp32, 3), 3U * 128 * 64 + 64);
}

class RealDecoderMemoryTest : public testing::TestWithParam<DecoderPrecision> {};

// A step of a token each, far into contexts whose keys are not computed: what is allocated is the
// same. The sequences share all blocks but their last.
TEST_P(RealDecoderMemoryTest, TheFormulaIsWhatSmolLm2Takes) {
  const auto source = smollm2_file();
  if (source.empty()) GTEST_SKIP() << "SmolLM2 is not there: set MUSTER_SMOLLM2";
  const auto model = describe_model(source);
  ASSERT_TRUE(model) << model.error().message;
  constexpr std::uint32_t kSequences = 32;
  constexpr std::uint32_t kPositionsMost = 65'536;  // of a step: each takes time
  DecoderOptions options;
  options.source = source;
  options.spec = *model->decoder;
  options.precision = GetParam();
  options.thread_count = 2;
  options.block_count = blocks_for(options.spec.length_max) + kSequences;
  const auto before = memory_use().live_bytes;
  auto decoder = Decoder::load(options);
  ASSERT_TRUE(decoder) << decoder.error().message;
  const auto lasting =
      weights_of(*model, GetParam()).counted() +
      cpu_decoder_cache(options.spec, kept_as(KvCacheDtype::Auto, GetParam()), options.block_count);
  for (const std::uint32_t context : {128U, 512U, 2048U, 8192U}) {
    const auto shared = static_cast<std::uint32_t>(blocks_for(context) - 1);
    for (const std::uint32_t sequences : {1U, 8U, kSequences}) {
      if (sequences * context > kPositionsMost) continue;
      std::vector<std::vector<std::uint32_t>> blocks(sequences);
      std::vector<StepSequence> steps;
      const std::vector<std::uint32_t> token{5};
      for (std::uint32_t s = 0; s < sequences; ++s) {
        for (std::uint32_t b = 0; b < shared; ++b) blocks[s].push_back(b);
        blocks[s].push_back(shared + s);
        steps.push_back(
            {.tokens = token, .position = context - 1, .blocks = blocks[s], .logit_count = 1});
      }
      std::vector<float> logits(sequences * (*decoder)->vocab_size());
      const auto done = (*decoder)->step(steps, logits);
      ASSERT_TRUE(done) << done.error().message;
      const auto step =
          cpu_decoder_step(*model, {.precision = GetParam(),
                                    .step_tokens = options.step_tokens_max,
                                    .logits_rows = options.logits_max,
                                    .threads = options.thread_count,
                                    .context = context,
                                    .attention_rows = best_decoder_kernels().attention_rows});
      compare("SmolLM2-135M", GetParam(), fmt::format("{}x{}", sequences, context),
              lasting + step.counted(), memory_use().live_bytes - before);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RealDecoderMemoryTest, testing::ValuesIn(kPrecisions),
                         [](const auto& tested) {
                           return std::string(decoder_precision_name(tested.param));
                         });

}  // namespace
}  // namespace muster::engine
