#include "planner/memory/memory_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "planner/memory/memory_fixture.h"
#include "spec/cpu_decoder_memory.h"

namespace muster {
namespace {

Workload generate(std::uint32_t batch, std::uint32_t context) {
  Workload workload;
  workload.batch = batch;
  workload.context = context;
  return workload;
}

Workload train(std::uint32_t batch, std::uint32_t context) {
  auto workload = generate(batch, context);
  workload.task = PlanTask::Train;
  return workload;
}

StageShare whole(const ModelDescription& model) {
  return {.last_unit = static_cast<std::uint32_t>(model.units.size())};
}

MemoryParts memory(const ModelDescription& model, const Workload& workload,
                   const StageShare& share) {
  const auto parts = stage_memory(model, workload, share);
  EXPECT_TRUE(parts) << parts.error().message;
  return parts ? *parts : MemoryParts{};
}

std::string error_of(const ModelDescription& model, const Workload& workload,
                     std::uint32_t tensor_parallel = 1) {
  auto share = whole(model);
  share.tensor_parallel = tensor_parallel;
  const auto parts = stage_memory(model, workload, share);
  return parts ? "no error" : parts.error().message;
}

TEST(StageMemory, EveryPartOfASmallLlamaIsWorkedOutByHand) {
  const auto model = llama({});  // 2 layers, hidden 16, 4 heads of 4, 2 KV heads, wide 24, vocab 50
  auto workload = generate(3, 32);
  const auto parts = memory(model, workload, whole(model));
  EXPECT_EQ(parts.weights, model.stored_bytes());
  EXPECT_EQ(parts.kv_cache, 2U * 3 * 32 * 2 * (4 + 4) * 2);
  // A block's feed-forward part: 3 states of 16 and gate and up of 24, for 96 tokens; more than the
  // head's 96 x 16 + 3 x 16 and 3 x 50 float32 logits.
  EXPECT_EQ(parts.activations, 96U * (3 * 16 + 2 * 24) * 2);
  EXPECT_EQ(parts.logits, 0U);
  EXPECT_EQ(parts.gradients + parts.optimizer, 0U);
  EXPECT_EQ(parts.workspace, 33U << 20);
  EXPECT_EQ(parts.context, 457U << 20);
  workload.all_logits = true;
  const auto all = memory(model, workload, whole(model));
  EXPECT_EQ(all.logits, 96U * 50 * 4) << "now the head is the largest moment";
  EXPECT_EQ(all.activations, 2U * 96 * 16 * 2);
}

TEST(StageMemory, IsTheSumOfItsUnitsAndTheirLargestPeak) {
  for (const bool is_tied : {false, true}) {
    const auto model = llama({.layers = 5, .is_tied = is_tied});
    for (const auto& workload : {generate(2, 40), train(2, 40)}) {
      const auto units = *unit_memory(model, workload, 2, true);
      for (std::uint32_t first = 0; first < units.size(); ++first) {
        for (auto last = first + 1; last <= units.size(); ++last) {
          std::uint64_t expected = fixed_memory(workload, true).total();
          std::uint64_t peak = 0;
          for (auto i = first; i < last; ++i) {
            expected += units[i].weights + units[i].kv_cache + units[i].states + units[i].kept;
            peak = std::max(peak, units[i].peak);
          }
          if (last == units.size() && first > 0) {
            expected += *tied_copy_bytes(model, workload, 2, true);
          }
          const StageShare share{.first_unit = first, .last_unit = last, .tensor_parallel = 2};
          EXPECT_EQ(memory(model, workload, share).total(), expected + peak);
        }
      }
    }
  }
}

TEST(StageMemory, AHeadWithoutItsEmbeddingHoldsACopy) {
  const auto tied = llama({.is_tied = true});
  auto share = whole(tied);
  const auto together = memory(tied, generate(1, 16), share).weights;
  EXPECT_EQ(together, tied.stored_bytes()) << "counted once where both are";
  share.first_unit = 1;
  EXPECT_EQ(memory(tied, generate(1, 16), share).weights,
            tied.stored_bytes() - tied.units[0].stored_bytes + 50 * 16 * 2);
  auto as_float = generate(1, 16);
  as_float.dtype = "fp32";
  EXPECT_EQ(*tied_copy_bytes(tied, as_float, 1, true), 50U * 16 * 4);
  EXPECT_EQ(*tied_copy_bytes(tied, train(1, 16), 1, true), 50U * 16 * 16) << "with its states";
  EXPECT_EQ(*tied_copy_bytes(llama({}), generate(1, 16), 1, true), 0U);
}

TEST(StageMemory, StagesTogetherHoldNoLessThanTheWhole) {
  const auto model = llama({.layers = 6, .is_tied = true});
  const auto total = memory(model, generate(4, 100), whole(model)).total();
  for (std::uint32_t cut = 1; cut < model.units.size(); ++cut) {
    auto front = whole(model);
    auto back = front;
    front.last_unit = back.first_unit = cut;
    EXPECT_GE(memory(model, generate(4, 100), front).total() +
                  memory(model, generate(4, 100), back).total(),
              total);
  }
}

TEST(StageMemory, GrowsWithBatchContextAndDtype) {
  const auto model = llama({});
  const auto total = [&](const Workload& workload) {
    return memory(model, workload, whole(model)).total();
  };
  std::uint64_t before = 0;
  for (std::uint32_t batch = 1; batch < 40; ++batch) {
    EXPECT_GT(total(generate(batch, 64)), before);
    before = total(generate(batch, 64));
  }
  before = 0;
  for (std::uint32_t context = 1; context < 400; ++context) {
    EXPECT_GE(total(generate(2, context)), before);
    before = total(generate(2, context));
  }
  auto wide = generate(2, 64);
  wide.dtype = "fp32";
  EXPECT_GT(total(wide), total(generate(2, 64)));
  auto training = train(2, 64);
  const auto kept = total(training);
  training.training.recompute = true;
  EXPECT_LT(total(training), kept) << "recomputation keeps less";
  training.training.recompute = false;
  training.training.microbatches = 2;
  EXPECT_GT(total(training), kept);
}

TEST(StageMemory, DevicesOfATensorParallelGroupCoverTheWhole) {
  const auto model = llama({.heads = 8, .kv_heads = 2});
  for (const auto& workload : {generate(2, 64), train(2, 64)}) {
    const auto alone = memory(model, workload, whole(model));
    for (const std::uint32_t t : {2U, 4U, 8U}) {
      auto share = whole(model);
      share.tensor_parallel = t;
      const auto part = memory(model, workload, share);
      EXPECT_GE(part.weights * t, alone.weights);
      EXPECT_GE(part.kv_cache * t, alone.kv_cache);
      EXPECT_GE(part.optimizer * t, alone.optimizer);
      EXPECT_LE(part.weights, alone.weights);
      EXPECT_LE(part.activations, alone.activations);
    }
  }
}

TEST(StageMemory, PrefillInChunksNeedsLess) {
  const auto model = llama({});
  auto workload = generate(1, 4096);
  workload.math_attention = true;
  const auto whole_prompt = memory(model, workload, whole(model));
  workload.prefill_tokens = 512;
  const auto chunks = memory(model, workload, whole(model));
  EXPECT_EQ(chunks.kv_cache, whole_prompt.kv_cache);
  EXPECT_EQ(chunks.activations * 8, whole_prompt.activations);
  workload.prefill_tokens = 1;  // decode
  EXPECT_EQ(memory(model, workload, whole(model)).activations * 4096, whole_prompt.activations);
}

TEST(StageMemory, TrainingTakesItsPrecisionsBytesForEveryElement) {
  const auto model = llama({});
  const auto elements = model.stored_bytes() / 2;
  auto workload = train(1, 8);
  auto parts = memory(model, workload, whole(model));
  EXPECT_EQ(parts.weights, 2 * elements);
  EXPECT_EQ(parts.gradients, 2 * elements);
  EXPECT_EQ(parts.optimizer, 12 * elements);
  EXPECT_EQ(parts.kv_cache, 0U);
  workload.training.precision = TrainingPrecision::Fp32;
  parts = memory(model, workload, whole(model));
  EXPECT_EQ(parts.weights + parts.gradients + parts.optimizer, 16 * elements);
}

TEST(StageMemory, ACpuHasNoContextAndNoWorkspace) {
  const auto model = llama({});
  auto share = whole(model);
  share.is_gpu = false;
  const auto parts = memory(model, generate(1, 16), share);
  EXPECT_EQ(parts.context + parts.workspace, 0U);
}

ModelDescription mini_lm() {
  auto shape = encoder_shape("bert", 6, 384, 12, 1536);
  shape.vocab_size = 30'522;
  shape.length_max = 512;
  MemoryFixture fixture(shape);
  fixture.unit(UnitKind::Embedding, "embeddings")
      .tensor("embeddings.word_embeddings.weight", {30'522, 384}, "F32", 4);
  for (std::uint32_t i = 0; i < 6; ++i) {
    fixture.unit(UnitKind::Block, "encoder.layer." + std::to_string(i), i);
  }
  fixture.unit(UnitKind::Head, "pooler").tensor("pooler.dense.weight", {384, 384}, "F32", 4);
  return fixture.model();
}

TEST(StageMemory, AnEncoderOnACpuIsWhatItsWorkerCounts) {
  const auto model = mini_lm();
  auto workload = generate(64, 16);
  workload.task = PlanTask::Embed;
  auto share = whole(model);
  share.is_gpu = false;
  auto parts = memory(model, workload, share);
  // Measured: all-MiniLM-L6-v2, fp32, batches of 64 x 16 tokens, one lane.
  EXPECT_EQ(parts.weights, 90'258'432U);
  EXPECT_EQ(parts.total(), 90'258'432U + 11'010'944) << "loading takes more than one lane";
  share.lanes = 2;
  EXPECT_EQ(memory(model, workload, share).activations, 2U * 7'877'760);
  workload.dtype = "bf16";
  share.lanes = 1;
  parts = memory(model, workload, share);
  EXPECT_EQ(parts.total(), 69'024'768U + 5'518'464) << "a lane takes more than loading";
}

ModelDescription tied_decoder() {
  auto model = llama({.is_tied = true});
  DecoderSpec spec;
  spec.vocab_size = 50;
  spec.hidden_size = 16;
  spec.layer_count = 2;
  spec.head_count = 4;
  spec.kv_head_count = 2;
  spec.head_size = 4;
  spec.intermediate_size = 24;
  spec.rope.style = RopeStyle::Halves;
  spec.rope.size = 4;
  spec.has_tied_head = true;
  model.decoder = spec;
  return model;
}

// A layer's matrices in bfloat16, outputs in whole panels of 16: queries, keys, values and output
// 16 x 16 each, gate and up 32 x 16, down 16 x 24; the head 64 x 16, which is packed beside the
// table of 50 x 16. Norms have 8 bytes an element. A row of the 512: the state of 16, 32 queries,
// keys and values, 2 x 2 cosines and sines; and what products read in bfloat16, 16, 16 and 24, the
// second in float32 as well, as a head of 4 is no whole block. Six rows of attention share 1.5 x 32
// positions. Each of two lanes has room for gate and up of 128 rows and 80 columns, for what
// attention gives of 24 rows, and chooses a token by 16 bytes for each of the vocabulary.
TEST(StageMemory, ADecoderOnACpuIsWhatTheEngineHolds) {
  const auto model = tied_decoder();
  auto share = whole(model);
  share.is_gpu = false;
  share.lanes = 2;
  constexpr std::uint64_t kMatrices = 2 * (4 * 16 * 16 + 2 * 32 * 16 + 16 * 24) + 64 * 16;
  constexpr std::uint64_t kTable = 50 * 16 * 2;
  constexpr std::uint64_t kNorms = 8 * (2 * 2 * 16 + 16);
  // Scratch; sampling; gate and up; results of 24 rows in heads of 4.
  constexpr std::uint64_t kBeside =
      6 * 4 * (2 * 48 + 32) + 2 * 16 * 50 + 2 * 128 * 80 * 2 * 4 + 2 * 24 * 4 * 4;
  auto workload = generate(3, 32);
  auto parts = memory(model, workload, share);
  EXPECT_EQ(parts.weights, 2 * kMatrices + kTable + kNorms);
  EXPECT_EQ(parts.kv_cache, 3U * 32 * 2 * 2 * (4 + 4) * 2);
  EXPECT_EQ(parts.activations, 512U * (52 * 4 + 16 * 4 + 56 * 2) + 64 * 16 * 2 + kBeside)
      << "in float32 what attention gives, as a head of 4 is no whole block";
  EXPECT_EQ(parts.logits, 64U * 50 * 4) << "of 32 sequences and 32 ids that are scored";
  EXPECT_EQ(parts.context + parts.workspace, 0U);
  workload.dtype = "fp32";
  parts = memory(model, workload, share);
  EXPECT_EQ(parts.weights, 4 * kMatrices + kTable + kNorms);
  EXPECT_EQ(parts.kv_cache, 3U * 32 * 2 * 2 * (4 + 4) * 4);
  EXPECT_EQ(parts.activations, 512U * (52 + 56) * 4 + 64 * 16 * 4 + kBeside);
  workload.batch = 40;
  EXPECT_EQ(memory(model, workload, share).logits, (64U + 8) * 50 * 4);
}

// By hand: in 8 bits a vector of 4 values has a scale of 4 bytes. Nothing else of it changes, and
// the engine's own formula has the same for the six blocks, but for what it reads ahead.
TEST(StageMemory, ACacheIn8BitsIsWhatTheEngineHolds) {
  const auto model = tied_decoder();
  auto share = whole(model);
  share.is_gpu = false;
  auto workload = generate(3, 32);
  const auto plain = memory(model, workload, share);
  workload.kv_dtype = "int8";
  const auto parts = memory(model, workload, share);
  EXPECT_EQ(parts.kv_cache, 3U * 32 * 2 * 2 * ((4 + 4) + (4 + 4)));
  EXPECT_EQ(parts.kv_cache + 16, cpu_decoder_cache(*model.decoder, KvCacheDtype::Int8, 6));
  EXPECT_EQ(parts.total() - parts.kv_cache, plain.total() - plain.kv_cache);
}

// Every matrix in blocks of 64 inputs of a byte each, and 4 bytes of a scale: one block where there
// are 16 or 24 inputs. Outputs are in panels of 16, as in any precision. What products read: in
// blocks of 64 + 8 bytes, and what attention gives in float32, too, since a head of 4 is no whole
// block.
TEST(StageMemory, ADecoderIn8BitsOnACpuIsWhatTheEngineHolds) {
  const auto model = tied_decoder();
  auto share = whole(model);
  share.is_gpu = false;
  constexpr std::uint64_t kMatrices = 68 * (2 * (4 * 16 + 2 * 32 + 16) + 64);
  constexpr std::uint64_t kTable = 50 * 16 * 2;
  constexpr std::uint64_t kNorms = 8 * (2 * 2 * 16 + 16);
  // Scratch; sampling; gate and up; results of 24 rows in heads of 4.
  constexpr std::uint64_t kBeside = 6 * 4 * (48 + 32) + 16 * 50 + 128 * 80 * 2 * 4 + 24 * 4 * 4;
  constexpr std::uint64_t kRows = 512 * (52 * 4 + 16 * 4 + 3 * 72) + 64 * 72;
  auto workload = generate(3, 32);
  workload.dtype = "int8";
  const auto parts = memory(model, workload, share);
  EXPECT_EQ(parts.weights, kMatrices + kTable + kNorms);
  EXPECT_EQ(parts.kv_cache, 3U * 32 * 2 * 2 * (4 + 4) * 2) << "in 16 bits";
  EXPECT_EQ(parts.activations, kRows + kBeside);
  EXPECT_FALSE(stage_memory(model, workload, whole(model))) << "no GPU computes it";
  share.tensor_parallel = 2;
  EXPECT_FALSE(stage_memory(model, workload, share)) << "nor do two CPUs together";
}

TEST(StageMemory, ADecodersHeadOnAnotherCpuHasItsOwnCopyAlready) {
  const auto model = tied_decoder();
  const auto workload = generate(1, 32);
  const StageShare tail{.first_unit = 3, .last_unit = 4, .is_gpu = false};
  EXPECT_EQ(memory(model, workload, tail).weights, 64U * 16 * 2 + 8 * 16);
  EXPECT_EQ(*tied_copy_bytes(model, workload, 1, false), 0U);
}

TEST(StageMemory, ADecoderThatNoCpuComputesIsCountedAsAnyModel) {
  auto model = tied_decoder();
  const auto plain = llama({.is_tied = true});
  auto on_cpu = whole(model);
  on_cpu.is_gpu = false;
  const auto is_plain = [&](const Workload& workload, const StageShare& share) {
    return memory(model, workload, share).total() == memory(plain, workload, share).total();
  };
  auto workload = generate(1, 32);
  EXPECT_FALSE(is_plain(workload, on_cpu));
  EXPECT_TRUE(is_plain(workload, whole(model))) << "a GPU has its own parts";
  workload.dtype = "fp16";
  EXPECT_TRUE(is_plain(workload, on_cpu)) << "no precision of a CPU";
  workload.dtype.reset();
  model.decoder->family = DecoderFamily::Mixtral;
  EXPECT_TRUE(is_plain(workload, on_cpu));
}

TEST(StageMemory, RefusesByNameWhatItCannotPlan) {
  const auto model = llama({.heads = 6, .kv_heads = 2});
  EXPECT_EQ(error_of(model, generate(0, 8)), "a batch has 1 or more sequences: 0");
  EXPECT_EQ(error_of(model, generate(1, 200'000)),
            "the context is beyond the 131072 tokens that the model allows: 200000");
  EXPECT_EQ(error_of(model, generate(1, 8), 4),
            "a tensor parallel degree must divide the 6 attention heads of layer 0: 4");
  EXPECT_EQ(error_of(model, generate(1, 8), 3),
            "a tensor parallel degree must divide the 2 KV heads of layer 0 or be a multiple of "
            "them: 3");
  auto workload = generate(1, 8);
  workload.dtype = "int4";
  EXPECT_EQ(error_of(model, workload), "weights are loaded as fp32, bf16 or fp16: int4");
  workload.dtype = "int8";
  EXPECT_EQ(error_of(model, workload),
            "int8 is planned on CPUs alone, for encoders and decoders that this build computes "
            "there; others as fp32, bf16 or fp16: " +
                model.name);
  workload = generate(1, 8);
  workload.kv_dtype = "q9";
  EXPECT_EQ(
      error_of(model, workload),
      "a cache is auto, fp32, fp16, bf16, int8, fp8, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl: q9");
  workload = generate(1, 8);
  workload.prefill_tokens = 9;
  EXPECT_EQ(error_of(model, workload),
            "the tokens of one prefill step are more than the context of 8: 9");
  workload = train(1, 8);
  workload.training.zero_stage = 4;
  EXPECT_EQ(error_of(model, workload), "a ZeRO stage is 0 to 3: 4");
  workload = train(1, 8);
  workload.dtype = "fp32";
  EXPECT_EQ(error_of(model, workload),
            "the training precision keeps weights in 2 bytes, which fp32 contradicts");
}

TEST(StageMemory, RefusesTasksThatTheModelCannotDo) {
  const auto encoder = mini_lm();
  const auto parts = stage_memory(encoder, generate(1, 16), whole(encoder));
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().kind, ErrorKind::Unsupported);
  auto workload = generate(1, 16);
  workload.task = PlanTask::Embed;
  workload.dtype = "fp16";
  auto share = whole(encoder);
  share.is_gpu = false;
  EXPECT_EQ(stage_memory(encoder, workload, share).error().kind, ErrorKind::Unsupported);
  workload.dtype = "int8";
  EXPECT_TRUE(stage_memory(encoder, workload, share));
  share.is_gpu = true;
  EXPECT_EQ(stage_memory(encoder, workload, share).error().message,
            "a GPU computes encoders in fp32, bf16 or fp16: int8");
  MemoryFixture quantised(llama({}).shape);
  quantised.unit(UnitKind::Block, "model.layers.0").tensor("w.qweight", {4, 4}, "Q4_K", 1);
  EXPECT_EQ(stage_memory(quantised.model(), train(1, 8), {.last_unit = 1}).error().message,
            "quantised weights are not trained: w.qweight is Q4_K");
}

TEST(ExplainMemory, NamesFormulaSourceAndBoundOfEveryPart) {
  const auto decoder = llama({});
  auto workload = generate(1, 16);
  for (const auto task : {PlanTask::Generate, PlanTask::Train}) {
    workload.task = task;
    const auto parts = explain_memory(decoder, workload);
    const auto names = [&](const std::string& name) {
      return std::count_if(parts.begin(), parts.end(),
                           [&](const PartExplanation& part) { return part.part == name; });
    };
    EXPECT_EQ(names("weights"), 1);
    EXPECT_EQ(names("activations"), 1);
    EXPECT_EQ(names("kv_cache"), task == PlanTask::Generate ? 1 : 0);
    EXPECT_EQ(names("optimizer"), task == PlanTask::Train ? 1 : 0);
    for (const auto& part : parts) {
      EXPECT_FALSE(part.formula.empty() || part.source.empty() || part.bound.empty()) << part.part;
    }
  }
  workload.task = PlanTask::Embed;
  EXPECT_NE(explain_memory(mini_lm(), workload).front().bound.find("<= 1 %"), std::string::npos);
  workload.task = PlanTask::Generate;
  EXPECT_EQ(explain_memory(tied_decoder(), workload).front().formula, "sum of stored bytes");
  const auto on_cpu = explain_memory(tied_decoder(), workload, /*is_gpu=*/false);
  EXPECT_NE(on_cpu.front().formula.find("panels"), std::string::npos);
}

}  // namespace
}  // namespace muster
