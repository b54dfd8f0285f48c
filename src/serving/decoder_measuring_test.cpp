// Decoders whose precision is measured while a server runs: what happens beside that.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "serving/generation_fixture.h"
#include "serving/serving_decoders.h"

namespace muster {
namespace {

/// All models are the engine's tiny Llama, which can be measured.
class DecoderMeasuringTest : public GenerationServiceTest {
 protected:
  DecoderMeasuringTest() {
    const auto weights =
        std::filesystem::path(MUSTER_SOURCE_DIR) / "src/engine/testdata/decoders/llama";
    for (const auto* name : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(weights / name, folder_ / "counting" / name,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    options_.cache_folder = folder_ / "cache";
  }

  /// Starts the service and loads a model, whose worker measures for ever.
  void measure_for_ever(const ServedModel& model) {
    start();
    std::filesystem::remove_all(options_.cache_folder);
    ::setenv("COUNTING_WORKER", "hang_at_probe", 1);
    service_->decoders().load(model, [this](Loaded result) { loaded_ = std::move(result); });
    siginfo_t stopped{};
    ASSERT_EQ(::waitid(P_ALL, 0, &stopped, WSTOPPED | WNOWAIT), 0) << "it measures";
  }

  std::optional<Loaded> loaded_;  // that model
};

// The name of its folder, which is read before it is measured.
TEST_F(DecoderMeasuringTest, WhatIsLoadedWithoutANameHasOneMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(measure_for_ever({.model = counting()}));
  std::optional<Result<bool>> generates;
  service_->decoders().ask_kind(counting(), [&](Result<bool> is) { generates = std::move(is); });
  run_until([&] { return generates.has_value(); });
  EXPECT_EQ(message(answer({.model = "counting", .text = "a"})), "counting is being loaded");
  const auto unloaded = service_->decoders().unload("counting");
  ASSERT_TRUE(unloaded) << unloaded.error().message;
  ASSERT_TRUE(loaded_);
  EXPECT_EQ(loaded_->error().kind, ErrorKind::Cancelled);
}

TEST_F(DecoderMeasuringTest, ALoadOfANamedPrecisionDoesNotWaitForIt) {
  ASSERT_NO_FATAL_FAILURE(measure_for_ever({.name = "second", .model = counting()}));
  const auto third = load({.name = "third", .model = counting(), .wants_own_bits = true});
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(third->precision, DecoderPrecision::Own);
  EXPECT_FALSE(loaded_) << "the other one is still measured";
}

TEST_F(DecoderMeasuringTest, TwoOfOneNameAtAStartAreToldBeforeAMeasurement) {
  options_.decoders = {{.model = counting(), .wants_own_bits = true}, {.model = counting()}};
  std::string notices;
  const auto service = GenerationService::start(
      options_, roster_, loop_,
      {.on_notice = [&notices](const std::string& text,
                               const std::optional<std::string>&) { notices += text; },
       .on_fatal = [](const Error& error) { FAIL() << error.message; }},
      clock_);
  ASSERT_FALSE(service);
  EXPECT_EQ(service.error().message,
            "two models have the same name: counting; NAME=MODEL gives another");
  EXPECT_EQ(notices.find("measuring"), std::string::npos) << notices;
}

// Its measurement would take for ever.
TEST_F(DecoderMeasuringTest, OneWithTheNameOfAnotherIsNotMeasured) {
  options_.decoders = {{.model = counting(), .wants_own_bits = true}};
  start("hang_at_probe");
  const auto refused = load({.model = counting()});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "a model of that name is there: counting");
}

}  // namespace
}  // namespace muster
