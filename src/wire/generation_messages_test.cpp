#include "wire/generation_messages.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace muster {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

TEST(GenerationMessagesTest, TokensAreLaidOutAsTheFormatSays) {
  const TokenLogprobs logprobs{.chosen = -1.0F, .top = {{4, -0.5F}}};
  const Tokens message{
      .begun = {{.sequence = 259, .cached_count = 32}},
      .drafted_count = 5,
      .accepted_count = 4,
      .tokens = {{.sequence = 258, .token = 3, .is_prompt = true, .logprobs = logprobs},
                 {.sequence = 1, .token = 2, .logprobs = {}}}};
  // -1.0 is 0xbf800000, -0.5 is 0xbf000000.
  EXPECT_EQ(encode(message), bytes({1,  0, 0, 0,                    // one has begun
                                    3,  1, 0, 0,    0,    0, 0, 0,  // 259
                                    32, 0, 0, 0,                    // behind 32 ids
                                    5,  0, 0, 0,    4,    0, 0, 0,  // drafted and accepted
                                    2,  0, 0, 0,                    // two tokens
                                    2,  1, 0, 0,    0,    0, 0, 0,  // of sequence 258
                                    3,  0, 0, 0,                    // its id
                                    1,                              // of the prompt
                                    1,  0, 0, 0x80, 0xbf,           // its log-probability
                                    1,  0, 0, 0,    4,    0, 0, 0, 0, 0, 0, 0xbf,  // the likeliest
                                    1,  0, 0, 0,    0,    0, 0, 0,                 // of sequence 1
                                    2,  0, 0, 0,    0,    0}));  // its id, chosen, alone
}

TEST(GenerationMessagesTest, EveryFieldOfTheParentsComesBack) {
  const LoadDecoder load{.model_id = 7,
                         .source = "m.gguf",
                         .precision = DecoderPrecision::Int8,
                         .kv_cache_dtype = KvCacheDtype::Fp16,
                         .cpus = {1, 2},
                         .cache_bytes = 1ULL << 40U,
                         .step_tokens_most = 256,
                         .sequences_most = 9,
                         .has_prefix_cache = false,
                         .drafted_tokens_most = 8};
  const auto loaded = decode_load_decoder(encode(load));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(encode(*loaded), encode(load));
  EXPECT_EQ(loaded->source, "m.gguf");
  EXPECT_EQ(loaded->precision, DecoderPrecision::Int8);
  EXPECT_EQ(loaded->kv_cache_dtype, KvCacheDtype::Fp16);
  EXPECT_FALSE(loaded->has_prefix_cache);
  EXPECT_EQ(loaded->drafted_tokens_most, 8U);

  const Generate generate{.model_id = 7,
                          .ids = {5, 6, 7},
                          .reply_count = 2,
                          .token_limit = 11,
                          .stop_ids = {2},
                          .prefix_scope = 1ULL << 62U,
                          .sampling = {.temperature = 0.5,
                                       .top_k = 40,
                                       .top_p = 0.9,
                                       .min_p = 0.05,
                                       .repetition_penalty = 1.1,
                                       .presence_penalty = 0.2,
                                       .frequency_penalty = 0.3,
                                       .seed = 1ULL << 63U,
                                       .choice = 4,
                                       .logprob_count = 3,
                                       .logit_bias = {{8, -2.0F}}}};
  const auto generated = decode_generate(encode(generate));
  ASSERT_TRUE(generated);
  EXPECT_EQ(generated->ids, generate.ids);
  EXPECT_EQ(generated->reply_count, 2U);
  EXPECT_EQ(generated->token_limit, 11U);
  EXPECT_EQ(generated->stop_ids, generate.stop_ids);
  EXPECT_EQ(generated->prefix_scope, 1ULL << 62U);
  EXPECT_EQ(generated->score_from, 0U);
  EXPECT_EQ(generated->sampling, generate.sampling);

  const Generate scored{.ids = {5, 6, 7}, .score_from = 2, .sampling = {.logprob_count = 0}};
  const auto back = decode_generate(encode(scored));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->score_from, 2U);
}

TEST(GenerationMessagesTest, EveryFieldOfTheWorkersComesBack) {
  const DecoderReady ready{.model_id = 1,
                           .vocab_size = 2,
                           .length_max = 3,
                           .block_count = 4,
                           .thread_count = 5,
                           .block_bytes = 6,
                           .weights_bytes = 7,
                           .decoder_class = "avx512/decoder-1"};
  const auto there = decode_decoder_ready(encode(ready));
  ASSERT_TRUE(there);
  EXPECT_EQ(encode(*there), encode(ready));
  EXPECT_EQ(there->decoder_class, "avx512/decoder-1");

  const Tokens tokens{.begun = {{1, 16}, {2, 0}}, .tokens = {}};
  const auto told = decode_tokens(encode(tokens));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->begun, tokens.begun);
  EXPECT_TRUE(told->tokens.empty());

  const auto finished = decode_finished(encode(Finished{FinishReason::Length}));
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->reason, FinishReason::Length);

  const auto begun = decode_step_begun(bytes({2, 1, 0, 0}));
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->token_count, 258U);
  EXPECT_EQ(encode(*begun), bytes({2, 1, 0, 0}));

  const auto payload = bytes({3, 1, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1});
  const auto use = decode_cache_use(payload);
  ASSERT_TRUE(use);
  EXPECT_EQ(*use, (CacheUse{259, 5 + (std::uint64_t{1} << 56U)}));
  EXPECT_EQ(encode(*use), payload);
}

TEST(GenerationMessagesTest, LogprobsComeBackOrNone) {
  // None, and none beside the chosen token's, are two things.
  for (const auto count : {std::optional<std::uint32_t>(), std::optional(0U)}) {
    const auto back =
        decode_generate(encode(Generate{.ids = {1}, .sampling = {.logprob_count = count}}));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->sampling.logprob_count, count);
  }

  const TokenLogprobs with_other{.chosen = -0.25F, .top = {{5, -0.125F}}};
  const Tokens tokens{
      .begun = {},
      .tokens = {{.sequence = 1, .token = 2, .logprobs = {}},
                 {.sequence = 3, .token = 4, .is_prompt = true, .logprobs = with_other},
                 {.sequence = 6, .token = 7, .logprobs = TokenLogprobs{.chosen = 0}}}};
  const auto told = decode_tokens(encode(tokens));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->tokens, tokens.tokens);
}

TEST(GenerationMessagesTest, RefusesWhatIsNoMessage) {
  EXPECT_FALSE(decode_finished(bytes({2})));
  EXPECT_FALSE(decode_finished(bytes({})));
  EXPECT_FALSE(decode_finished(bytes({1, 0})));
  EXPECT_FALSE(decode_step_begun(bytes({1, 0, 0})));
  EXPECT_FALSE(decode_step_begun(bytes({1, 0, 0, 0, 0})));
  EXPECT_FALSE(decode_step_begun(bytes({0, 0, 0, 0}))) << "a step without a token";
  EXPECT_FALSE(decode_cache_use(bytes({3, 1, 0, 0, 5, 0, 0, 0, 0, 0, 0})));
  EXPECT_FALSE(decode_cache_use(bytes({3, 1, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1, 0})));
  EXPECT_FALSE(decode_generate(encode(Generate{.ids = {}})));
  EXPECT_FALSE(decode_generate(encode(Generate{.ids = {1, 2}, .reply_count = 2})));
  // To be scored from beyond its ids, behind a reply, without a count.
  const SamplingOptions counted{.logprob_count = 1};
  EXPECT_FALSE(decode_generate(encode(Generate{.ids = {1}, .score_from = 1, .sampling = counted})));
  EXPECT_FALSE(decode_generate(
      encode(Generate{.ids = {1, 2, 3}, .reply_count = 1, .score_from = 1, .sampling = counted})));
  EXPECT_FALSE(decode_generate(encode(Generate{.ids = {1, 2}, .score_from = 1})));
  EXPECT_FALSE(decode_load_decoder(encode(LoadDecoder{.sequences_most = 0})));
  auto no_flag = encode(LoadDecoder{});
  no_flag.back() = std::byte{2};
  EXPECT_FALSE(decode_load_decoder(no_flag));
  EXPECT_FALSE(decode_tokens(bytes({255, 255, 255, 255})));
  EXPECT_FALSE(decode_tokens(bytes({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255})));
}

TEST(GenerationMessagesTest, AProbeAndItsVerdictComeBackAsTheyWent) {
  const ProbeDecoder probe{.source = "m.gguf",
                           .precisions = {DecoderPrecision::Fp32, DecoderPrecision::Own},
                           .measures_divergence = true,
                           .layers_most = 3,
                           .cpus = {1, 2},
                           .lengths = {2, 1},
                           .ids = {5, 6, 7}};
  const auto back = decode_probe_decoder(encode(probe));
  ASSERT_TRUE(back);
  EXPECT_EQ(encode(*back), encode(probe));
  EXPECT_EQ(back->source, "m.gguf");
  EXPECT_EQ(back->precisions, probe.precisions);
  EXPECT_TRUE(back->measures_divergence);
  EXPECT_EQ(back->layers_most, 3U);
  EXPECT_EQ(back->ids, probe.ids);

  const DecoderVerdict verdict{{{DecoderPrecision::Fp32, 31.5, 0.0},
                                {DecoderPrecision::Own, 112, 0.002},
                                {DecoderPrecision::Bf16, 60, std::nullopt}}};
  const auto told = decode_decoder_verdict(encode(verdict));
  ASSERT_TRUE(told);
  EXPECT_EQ(*told, verdict);
}

TEST(GenerationMessagesTest, RefusesAProbeOfNothingAndAMeasureThatIsNone) {
  const ProbeDecoder sound{
      .source = "m", .precisions = {DecoderPrecision::Own}, .lengths = {1}, .ids = {5}};
  EXPECT_TRUE(decode_probe_decoder(encode(sound)));
  const auto refuses = [&sound](auto&& change) {
    auto changed = sound;
    change(changed);
    return !decode_probe_decoder(encode(changed));
  };
  EXPECT_TRUE(refuses([](ProbeDecoder& probe) { probe.precisions.clear(); }));
  EXPECT_TRUE(refuses([](ProbeDecoder& probe) { probe.ids.push_back(6); }));
  EXPECT_TRUE(refuses([](ProbeDecoder& probe) { probe.lengths = {1, 0}; }));
  EXPECT_TRUE(refuses([](ProbeDecoder& probe) {
    probe.lengths.clear();
    probe.ids.clear();
  }));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const auto& [speed, divergence] :
       {std::pair(-1.0, 0.0), std::pair(kInfinity, 0.0), std::pair(1.0, -0.1),
        std::pair(1.0, std::numeric_limits<double>::quiet_NaN())}) {
    const DecoderVerdict verdict{{{DecoderPrecision::Own, speed, divergence}}};
    EXPECT_FALSE(decode_decoder_verdict(encode(verdict)));
  }
}

TEST(GenerationMessagesTest, RefusesLogprobsThatAreNone) {
  const auto is_taken = [](const TokenLogprobs& logprobs) {
    const Tokens tokens{.begun = {}, .tokens = {{.sequence = 1, .logprobs = logprobs}}};
    return decode_tokens(encode(tokens)).has_value();
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(is_taken({.chosen = -kInfinity})) << "a token that cannot be";
  EXPECT_FALSE(is_taken({.chosen = 0.5F}));
  EXPECT_FALSE(is_taken({.chosen = kNan}));
  EXPECT_FALSE(is_taken({.chosen = -1, .top = {{1, -1.0F}, {2, kInfinity}}}));
  EXPECT_FALSE(is_taken({.chosen = -1, .top = {{1, kNan}}}));
  std::vector<std::pair<std::uint32_t, float>> many(kLogprobsMost, {1, -1.0F});
  EXPECT_TRUE(is_taken({.chosen = -1, .top = many}));
  many.emplace_back(1, -1.0F);
  EXPECT_FALSE(is_taken({.chosen = -1, .top = many}));
  // Whether something follows is said by 0 or 1 alone.
  auto token = encode(Tokens{.begun = {}, .tokens = {{.sequence = 1}}});
  token.back() = std::byte{2};
  EXPECT_FALSE(decode_tokens(token));
  EXPECT_FALSE(decode_tokens(bytes({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
                                    2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 1, 0, 0})))
      << "it ends within";
}

}  // namespace
}  // namespace muster
