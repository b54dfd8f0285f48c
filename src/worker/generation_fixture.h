#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/encoder.h"
#include "engine/gpu.h"
#include "modelfile/decoder_config.h"
#include "worker/generation.h"

namespace muster {

using Reply = std::vector<std::uint32_t>;

// A CPU, or what GPU_TEST_DEVICE names: "standin", "cuda".
inline DeviceKind device_under_test() {
  const char* named = std::getenv("GPU_TEST_DEVICE");
  if (named == nullptr) return DeviceKind::Cpu;
  return std::string_view(named) == "standin" ? DeviceKind::Standin : DeviceKind::Cuda;
}

/// What a decoder is computed in, and what its keys and values are kept in.
struct TestClass {
  DecoderPrecision precision;
  KvCacheDtype cache = KvCacheDtype::Auto;
};

// A GPU keeps keys and values in 16 bits or 32 alone.
inline std::vector<TestClass> classes() {
  std::vector<TestClass> all{{DecoderPrecision::Fp32}, {DecoderPrecision::Bf16}};
  const bool is_gpu = runs_as_gpu(device_under_test());
  if (!is_gpu) all.push_back({DecoderPrecision::Bf16, KvCacheDtype::Int8});
  return all;
}

/// Each look is a millisecond later: every step takes as long, and a token more costs nothing.
class TickingClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint() + std::chrono::milliseconds(ticks_++); }

 private:
  mutable std::int64_t ticks_ = 0;
};

/// A folder of the engine's test data.
std::filesystem::path tiny_llama();

/// A decoder of the engine's test data with a small cache, and what its sequences gave.
class TestGeneration {
 public:
  // blocks_missing: of those that the scheduler counts on.
  TestGeneration(const StepOptions& steps, DecoderPrecision precision, std::size_t threads,
                 std::uint32_t blocks_missing = 0, KvCacheDtype cache = KvCacheDtype::Auto,
                 std::uint32_t drafted_most = 0) {
    engine::DecoderOptions options;
    options.device = device_under_test();
    if (runs_as_gpu(options.device)) {
      const auto opened = engine::open_gpu(options.device);
      EXPECT_TRUE(opened) << opened.error().message;
      engine::enter_lane(options.device);
    }
    options.source = tiny_llama();
    options.spec = *read_decoder_spec(options.source);
    options.precision = precision;
    options.kv_cache_dtype = cache;
    options.thread_count = threads;
    options.step_tokens_max = steps.step_tokens_most;
    options.logits_max = steps.sequences_most + steps.scored_most;
    options.block_count = steps.block_count - blocks_missing;
    decoder_ = *engine::Decoder::load(options);
    GenerationEvents events;
    events.on_step_begun = [this](std::uint32_t count) { begun_steps.push_back(count); };
    events.on_cache_use = [this](const CacheUse& use) { uses.push_back(use); };
    events.on_tokens = [this](const Tokens& told) {
      drafted += told.drafted_count;
      accepted += told.accepted_count;
      ++step_count;
      for (const auto& begun : told.begun) cached[begun.sequence] = begun.cached_count;
      for (const auto& token : told.tokens) {
        replies[token.sequence].push_back(token.token);
        tokens[token.sequence].push_back(token);
        if (token.logprobs) logprobs[token.sequence].push_back(*token.logprobs);
      }
    };
    events.on_finished = [this](SequenceId id, FinishReason reason) { ends[id] = reason; };
    events.on_failed = [this](SequenceId id, const Error& error) { errors[id] = error.message; };
    events.on_broken = [this](const Error& error) { broken.push_back(error.message); };
    generation.emplace(*decoder_, GenerationOptions{.steps = steps, .drafted_most = drafted_most},
                       events, clock_);
  }

  void run() {
    while (!generation->is_idle()) generation->step();
  }

  std::optional<Generation> generation;
  std::map<SequenceId, Reply> replies;
  std::map<SequenceId, std::vector<GeneratedToken>> tokens;  // the same, whole
  std::map<SequenceId, std::uint32_t> cached;
  std::map<SequenceId, std::vector<TokenLogprobs>> logprobs;
  std::map<SequenceId, FinishReason> ends;
  std::map<SequenceId, std::string> errors;
  std::vector<std::string> broken;
  std::vector<CacheUse> uses;
  std::vector<std::uint32_t> begun_steps;  // tokens of those that were announced
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  std::uint64_t step_count = 0;

 private:
  const TickingClock clock_;
  std::unique_ptr<engine::Decoder> decoder_;
};

inline StepOptions roomy() {
  return {.block_tokens = 16,
          .block_count = 64,
          .step_tokens_most = 48,
          .sequences_most = 8,
          .length_max = 128};
}

inline Generate request_of(std::uint64_t seed, bool is_greedy) {
  std::mt19937_64 random(seed);
  Generate request{.ids = Reply(3 + random() % 40)};
  for (auto& id : request.ids) id = static_cast<std::uint32_t>(3 + random() % 60);
  request.token_limit = static_cast<std::uint32_t>(5 + random() % 30);
  if (!is_greedy) {
    request.sampling = {
        .temperature = 0.9, .top_k = 30, .top_p = 0.95, .frequency_penalty = 0.2, .seed = seed};
  }
  return request;
}

inline Reply alone(std::uint64_t seed, DecoderPrecision precision,
                   KvCacheDtype cache = KvCacheDtype::Auto) {
  TestGeneration one(roomy(), precision, 1, 0, cache);
  EXPECT_TRUE(one.generation->add(1, request_of(seed, seed % 2 == 0)));
  one.run();
  return one.replies[1];
}

// Forty ids that all of these begin with, and an end of their own; with the logprobs of a token,
// which show any bit of its logits.
inline Generate request_behind(std::uint64_t seed) {
  auto request = request_of(1000, true);
  request.ids.resize(40, 9);
  const auto own = request_of(seed, seed % 2 == 0);
  request.ids.insert(request.ids.end(), own.ids.begin(), own.ids.end());
  request.token_limit = own.token_limit;
  request.sampling = own.sampling;
  request.sampling.logprob_count = 5;
  return request;
}

// In one chunk, on one thread, with nothing kept of anybody.
inline std::vector<GeneratedToken> computed_whole(Generate request, DecoderPrecision precision,
                                                  KvCacheDtype cache = KvCacheDtype::Auto) {
  auto steps = roomy();
  steps.step_tokens_most = 128;
  steps.keeps_prefixes = false;
  TestGeneration one(steps, precision, 1, 0, cache);
  EXPECT_TRUE(one.generation->add(1, std::move(request)));
  one.run();
  EXPECT_EQ(one.cached.at(1), 0U);
  return one.tokens[1];
}

// But for the number of the sequence.
inline bool has_same_bits(const std::vector<GeneratedToken>& one,
                          std::vector<GeneratedToken> other) {
  for (auto& token : other) token.sequence = one.empty() ? 0 : one.front().sequence;
  return one == other;
}

}  // namespace muster
