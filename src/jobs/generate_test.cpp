#include "jobs/generate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "coordinator/decoder_fixture.h"
#include "jobs/conversation.h"

namespace muster {
namespace {

std::string error_of(const GenerateOptions& options) {
  const SteadyClock clock;
  const auto report = generate_text(options, {}, clock, [] { return false; });
  EXPECT_FALSE(report);
  if (report) return {};
  EXPECT_EQ(report.error().kind, ErrorKind::InvalidArgument);
  return report.error().message;
}

// Before the model is looked for: the regex engine reads on behind a text that breaks off.
TEST(GenerateText, RefusesWhatIsNotUtf8) {
  GenerateOptions options;
  options.prompt = "Why\xE4";
  EXPECT_EQ(error_of(options), "the prompt is not UTF-8 at byte 3");
  options.prompt = "Why?";
  options.system = "\xFF";
  EXPECT_EQ(error_of(options), "the system's text is not UTF-8 at byte 0");
}

// A worker that was sent no token took that for a fault of its own and died.
TEST(GenerateText, RefusesAnEmptyPromptBeforeAWorkerIsStarted) {
  EXPECT_EQ(error_of({}), "the prompt is empty: there is nothing to continue");
}

// A token for each byte of 5 and 3 and of {"a": 1}, 2,048 for the template, and 100 of the reply.
TEST(GenerateText, ItsCacheHasRoomForTheTemplatesVariables) {
  GenerateOptions options;
  options.prompt = "12345";
  options.system = "123";
  options.token_limit = 100;
  EXPECT_EQ(generate_tokens_most(options, 1'000'000), 2156U);
  options.template_variables.emplace_back("a", ChatValue(std::int64_t{1}));
  EXPECT_EQ(generate_tokens_most(options, 1'000'000), 2164U);
  EXPECT_EQ(generate_tokens_most(options, 2000), 2000U) << "the context has no more";
}

/// A decoder that counts: behind "x" come "y", "z" and the first byte of "é", which is no whole
/// character at the limit and is shown as one (stand_ins/counting_worker).
class CountedText : public testing::Test {
 protected:
  CountedText()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("generate." + std::to_string(::getpid()))) {
    write_counting_decoder(folder_);
  }
  ~CountedText() override { std::filesystem::remove_all(folder_); }

  Status add(std::string_view part) {
    text_ += part;
    return Done{};
  }

  const std::filesystem::path folder_;
  const SteadyClock clock_;
  std::string text_;
};

TEST_F(CountedText, AStopStringThatIsWholeOnlyAtTheEndIsTold) {
  GenerateOptions options;
  options.source = folder_;
  options.prompt = "x";
  options.is_raw = true;
  options.token_limit = 3;
  options.stops = {"\uFFFD"};
  options.worker_program = counting_worker();
  GenerateEvents events;
  events.on_text = [this](std::string_view part) { return add(part); };
  events.on_notice = [](const std::string&) {};
  const auto report = generate_text(options, events, clock_, [] { return false; });
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(text_, "yz");
  EXPECT_EQ(report->end, GenerateEnd::StopString);
  EXPECT_EQ(report->reply_tokens, 3U);
}

// Where it is refused here no worker is sent what may be too long for a frame.
TEST_F(CountedText, APromptThatFillsTheContextIsRefused) {
  GenerateOptions options;
  options.source = folder_;
  options.prompt = std::string(128, 'a');
  options.worker_program = counting_worker();
  for (const bool is_raw : {true, false}) {
    options.is_raw = is_raw;
    EXPECT_EQ(error_of(options),
              "the context is 128 tokens, prompt and reply together, and the prompt has as many or "
              "more");
  }
}

// By hand, of 67 ids and width 32: the table in float32, and 8 bytes for each element of the norms,
// two in each of two layers and one at the end.
TEST_F(CountedText, WhatIsReadInTheFileIsToldBesideThePackedWeights) {
  namespace fs = std::filesystem;
  const auto weights = fs::path(MUSTER_SOURCE_DIR) / "src/engine/testdata/decoders/llama";
  for (const auto* name : {"config.json", "model.safetensors"}) {
    fs::copy_file(weights / name, folder_ / name, fs::copy_options::overwrite_existing);
  }
  GenerateOptions options;
  options.source = folder_;
  options.prompt = "x";
  options.is_raw = true;
  options.token_limit = 1;
  options.precision = DecoderPrecision::Fp32;
  options.worker_program = counting_worker();
  GenerateEvents events;
  events.on_text = [this](std::string_view part) { return add(part); };
  events.on_notice = [](const std::string&) {};
  const auto report = generate_text(options, events, clock_, [] { return false; });
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_TRUE(report->decoder);
  EXPECT_EQ(report->decoder->unpacked_bytes, 67U * 32 * 4 + 8 * 32 * (2 * 2 + 1));
  options.device.kind = DeviceKind::Cuda;
  const auto on_gpu = generate_text(options, events, clock_, [] { return false; });
  ASSERT_TRUE(on_gpu) << on_gpu.error().message;
  EXPECT_FALSE(on_gpu->decoder->unpacked_bytes);
}

TEST_F(CountedText, SoItIsInAConversation) {
  auto conversation =
      Conversation::start({.source = folder_, .worker_program = counting_worker()},
                          {.on_text = [this](std::string_view part) { return add(part); },
                           .on_notice = [](const std::string&) {}},
                          clock_);
  ASSERT_TRUE(conversation) << conversation.error().message;
  const auto reply =
      (*conversation)->say("x", {.system = {}, .token_limit = 3, .stops = {"\uFFFD"}}, [] {
        return false;
      });
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(text_, "yz");
  EXPECT_EQ(reply->end, GenerateEnd::StopString);
}

}  // namespace
}  // namespace muster
