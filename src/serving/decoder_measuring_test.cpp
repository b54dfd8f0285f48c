// Decoders whose precision is measured before they are loaded, at the start of a server and while
// it runs: what is told of them meanwhile, where they are measured, and what happens beside that.

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "serving/device_states.h"
#include "serving/generation_fixture.h"
#include "serving/serving_decoders.h"

namespace muster {
namespace {

constexpr const char* kDisturbed =
    " (another model was loaded meanwhile: the next start measures again)";

/// All models are the engine's tiny Llama, which can be measured. With "hang_at_probe" the worker
/// that measures stops until it is told to go on.
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
  ~DecoderMeasuringTest() override { service_.reset(); }  // it has members of this

  /// Starts the service and loads a model, whose worker measures for ever.
  void measure_for_ever(const ServedModel& model) {
    start();
    std::filesystem::remove_all(options_.cache_folder);
    ::setenv("COUNTING_WORKER", "hang_at_probe", 1);
    service_->decoders().load(model, [this](Loaded result) { loaded_ = std::move(result); });
    measuring_ = wait_for_stopped_worker();
    ASSERT_NE(measuring_, 0) << "it measures";
  }

  ServedModel named(const std::string& name) const {
    return {.name = name, .model = counting(), .wants_own_bits = true};
  }

  /// Of one that is served; it is.
  ServedDecoderStatus shown(const std::string& name) const {
    for (auto& decoder : service_->models()) {
      if (decoder.name == name) return decoder;
    }
    ADD_FAILURE() << name << " is not served";
    return {};
  }

  bool has_kept_verdict() const {
    return std::filesystem::exists(options_.cache_folder / "verdicts");
  }

  /// Of one device with memory for all that is loaded here.
  void give_memory() {
    options_.machine.classes.push_back(
        {.model = "CPU", .kind = DeviceKind::Cpu, .memory_bytes = 0});
    options_.machine.devices.push_back(
        {.kind = DeviceKind::Cpu, .free_bytes = std::uint64_t{1} << 40});
    memory_available_ = [this] { return std::optional<std::uint64_t>(available_.load()); };
  }

  std::optional<Loaded> loaded_;                                   // that model
  pid_t measuring_ = 0;                                            // its worker
  std::atomic<std::uint64_t> available_ = std::uint64_t{1} << 40;  // read by the threads of loads
};

// ---- At the start ----

// A server listens before its loop runs: no worker may have been started by then.
TEST_F(DecoderMeasuringTest, AStartDoesNotWaitForAMeasurement) {
  start_loading("hang_at_probe");
  EXPECT_EQ(shown("chat").state, ModelState::Loading);
  EXPECT_EQ(shown("chat").reason, "its precision is to be measured") << "nothing is yet";
  const auto worker = wait_for_stopped_worker();
  const auto status = shown("chat");
  EXPECT_EQ(status.state, ModelState::Loading);
  EXPECT_EQ(status.reason, "its precision is being measured");
  EXPECT_FALSE(status.is_precision_known);
  EXPECT_EQ(status.precision_reason, "is being measured");
  ASSERT_EQ(status.devices.size(), 1U);
  EXPECT_EQ(status.devices[0].state, GroupState::Starting);
  EXPECT_EQ(status.devices[0].reason, "the precision of chat is being measured");
  EXPECT_FALSE(service_->is_ready());
  EXPECT_TRUE(service_->has_model("chat"));
  for (const auto* name : {"chat", ""}) {
    const auto early = answer({.model = name, .text = "a"});
    EXPECT_EQ(message(early), "chat is being loaded");
    ASSERT_TRUE(early.error);
    EXPECT_EQ(early.error->error.kind, ErrorKind::Unavailable);
    EXPECT_TRUE(early.error->retry_after);
  }
  service_.reset();
  EXPECT_EQ(::kill(worker, 0), -1) << "its worker has ended with the server";
}

TEST_F(DecoderMeasuringTest, WhatWasMeasuredAtTheStartIsServedAndKept) {
  start_loading("hang_at_probe");
  ::kill(wait_for_stopped_worker(), SIGCONT);
  run_until([&] { return shown("chat").state == ModelState::Ready; });
  EXPECT_EQ(shown("chat").precision, DecoderPrecision::Bf16);
  EXPECT_TRUE(shown("chat").is_precision_known);
  EXPECT_TRUE(has_kept_verdict());
  EXPECT_EQ(answer({.text = "b", .token_limit = 1}).text, "c");
  service_.reset();
  notices_.clear();
  start_loading("hang_at_probe");
  EXPECT_TRUE(shown("chat").is_precision_known) << "without a worker";
  run_until([&] { return shown("chat").state == ModelState::Ready; });
  EXPECT_EQ(notices_.find("measuring"), std::string::npos) << notices_;
}

TEST_F(DecoderMeasuringTest, TheFirstOfAStartIsTheFirstWhileItIsMeasured) {
  options_.decoders = {{.name = "chat", .model = counting()}, named("second")};
  start_loading("hang_at_probe");
  run_until([&] { return shown("second").state == ModelState::Ready; });
  EXPECT_EQ(message(answer({.text = "a"})), "chat is being loaded");
  EXPECT_EQ(answer({.model = "second", .text = "b", .token_limit = 1}).text, "c");
  EXPECT_EQ(service_->models().front().name, "chat");
  ::kill(wait_for_stopped_worker(), SIGCONT);
  run_until([&] { return shown("chat").state == ModelState::Ready; });
  EXPECT_EQ(service_->models().front().name, "chat");
  EXPECT_EQ(answer({.text = "b", .token_limit = 1}).text, "c");
}

// Its memory is taken by others while it is measured. As where no device can load it: a server that
// has nothing else ends, and a restart of the device tries again.
TEST_F(DecoderMeasuringTest, OneOfTheStartThatCannotBeLoadedThenIsFailed) {
  give_memory();
  start_loading("hang_at_probe");
  const auto worker = wait_for_stopped_worker();
  available_ = 900;
  ::kill(worker, SIGCONT);
  run_until([&] { return shown("chat").state == ModelState::Failed; });
  EXPECT_NE(shown("chat").reason.find(" cpu:0 has 900 B left"), std::string::npos)
      << shown("chat").reason;
  const auto ends = hopeless_error({}, {}, service_->models());
  ASSERT_TRUE(ends);
  EXPECT_EQ(ends->kind, ErrorKind::ResourceExhausted);
  const auto refused = answer({.text = "a"});
  EXPECT_EQ(message(refused), "no device can load chat");
  EXPECT_TRUE(refused.error->retry_after);
  available_ = std::uint64_t{1} << 40;
  ::setenv("COUNTING_WORKER", "", 1);
  service_->decoders().restart(0);
  run_until([&] { return shown("chat").state == ModelState::Ready; });
  EXPECT_FALSE(hopeless_error({}, {}, service_->models()));
}

// A drain and a resume are a restart in two steps.
TEST_F(DecoderMeasuringTest, OneOfTheStartThatFailedIsTriedAgainWhenItsDeviceIsResumed) {
  give_memory();
  start_loading("hang_at_probe");
  const auto worker = wait_for_stopped_worker();
  available_ = 900;
  ::kill(worker, SIGCONT);
  run_until([&] { return shown("chat").state == ModelState::Failed; });
  available_ = std::uint64_t{1} << 40;
  ::setenv("COUNTING_WORKER", "", 1);
  service_->decoders().drain(0);
  EXPECT_EQ(shown("chat").state, ModelState::Failed);
  service_->decoders().resume(0);
  run_until([&] { return shown("chat").state == ModelState::Ready; });
}

TEST_F(DecoderMeasuringTest, OneOfTheStartIsUnloadedWhileItIsMeasured) {
  start_loading("hang_at_probe");
  const auto worker = wait_for_stopped_worker();
  const auto unloaded = service_->decoders().unload("chat");
  ASSERT_TRUE(unloaded) << unloaded.error().message;
  EXPECT_EQ(*unloaded, 0U);
  EXPECT_TRUE(service_->models().empty());
  EXPECT_FALSE(roster_.has_name("chat"));
  run_until([&] { return ::kill(worker, 0) == -1; });
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

// ---- Names ----

// The name of its folder, which is read before it is measured.
TEST_F(DecoderMeasuringTest, WhatIsLoadedWithoutANameHasOneMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(measure_for_ever({.model = counting()}));
  EXPECT_EQ(message(answer({.model = "counting", .text = "a"})), "counting is being loaded");
  EXPECT_EQ(shown("counting").reason, "its precision is being measured");
  const auto unloaded = service_->decoders().unload("counting");
  ASSERT_TRUE(unloaded) << unloaded.error().message;
  ASSERT_TRUE(loaded_);
  EXPECT_EQ(loaded_->error().kind, ErrorKind::Cancelled);
}

TEST_F(DecoderMeasuringTest, OneThatIsMeasuredIsTheNearestNameOfAMistypedOne) {
  start_loading("hang_at_probe");
  const auto refused = answer({.model = "chatt", .text = "a"});
  EXPECT_EQ(message(refused), "no model that generates has this name: chatt; did you mean chat?");
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->error.kind, ErrorKind::NotFound);
  const auto unloaded = service_->decoders().unload("other");
  ASSERT_FALSE(unloaded);
  EXPECT_EQ(unloaded.error().message,
            "no model that generates has this name: other; served here: chat");
}

// What is measured before it would be so for ever.
TEST_F(DecoderMeasuringTest, WhatWaitsToBeMeasuredHasItsNameAtOnce) {
  ASSERT_NO_FATAL_FAILURE(measure_for_ever({.name = "second", .model = counting()}));
  std::optional<Loaded> other;
  service_->decoders().load({.model = counting()},
                            [&](Loaded result) { other = std::move(result); });
  run_until([&] { return roster_.has_name("counting"); });
  EXPECT_EQ(message(answer({.model = "counting", .text = "a"})), "counting is being loaded");
  EXPECT_EQ(shown("counting").reason, "its precision is to be measured");
  const auto unloaded = service_->decoders().unload("counting");
  ASSERT_TRUE(unloaded) << unloaded.error().message;
  ASSERT_TRUE(other);
  EXPECT_EQ(other->error().kind, ErrorKind::Cancelled);
  EXPECT_FALSE(loaded_) << "the first one is still measured";
}

// Its measurement would take for ever.
TEST_F(DecoderMeasuringTest, OneWithTheNameOfAnotherIsNotMeasured) {
  options_.decoders = {{.model = counting(), .wants_own_bits = true}};
  start("hang_at_probe");
  const auto refused = load({.model = counting()});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "a model of that name is there: counting");
}

// ---- Loads beside it ----

TEST_F(DecoderMeasuringTest, ALoadOfANamedPrecisionDoesNotWaitForItAndDisturbsIt) {
  ASSERT_NO_FATAL_FAILURE(measure_for_ever({.name = "second", .model = counting()}));
  const auto third = load(named("third"));
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(third->precision, DecoderPrecision::Own);
  EXPECT_FALSE(loaded_) << "the other one is still measured";
  ::kill(measuring_, SIGCONT);
  run_until([&] { return loaded_.has_value(); });
  ASSERT_TRUE(*loaded_) << loaded_->error().message;
  EXPECT_TRUE((*loaded_)->precision_reason.ends_with(kDisturbed)) << (*loaded_)->precision_reason;
  EXPECT_FALSE(has_kept_verdict());
}

// Both are of the start. The measurement begins with the loop, long before a worker has loaded.
TEST_F(DecoderMeasuringTest, AMeasurementWaitsForWhatIsBeingLoadedThere) {
  options_.decoders = {named("second"), {.name = "chat", .model = counting()}};
  start();
  EXPECT_EQ(shown("chat").state, ModelState::Ready);
  const auto loaded = notices_.find("model second: ready");
  const auto measured = notices_.find("chat: measuring which precision is fastest here");
  ASSERT_NE(loaded, std::string::npos) << notices_;
  ASSERT_NE(measured, std::string::npos) << notices_;
  EXPECT_LT(loaded, measured) << notices_;
  EXPECT_TRUE(has_kept_verdict()) << "nothing disturbed it";
}

// Five minutes are for one that does not come to its end.
TEST_F(DecoderMeasuringTest, AMeasurementDoesNotWaitForALoadForEver) {
  options_.decoders = {named("second"), {.name = "chat", .model = counting()}};
  start_loading("hang_at_load");
  wait_for_stopped_worker();
  EXPECT_EQ(shown("chat").reason, "its precision is to be measured");
  int turns = 0;
  run_until([&] { return ++turns == 3; });  // it has looked, and waits since now
  ::setenv("COUNTING_WORKER", "", 1);       // of the worker that measures
  clock_.ahead = std::chrono::seconds(301);
  run_until([&] { return shown("chat").is_precision_known; });
  EXPECT_TRUE(shown("chat").precision_reason.ends_with(kDisturbed))
      << shown("chat").precision_reason;
  EXPECT_FALSE(has_kept_verdict());
}

// ---- Workers that die while they measure ----

// As where a GPU is lost then: nothing is known of the precision yet.
TEST_F(DecoderMeasuringTest, WhereItsWorkerDiesAnotherDeviceIsMeasured) {
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  start_loading("hang_at_probe");
  const auto worker = wait_for_stopped_worker();
  ::setenv("COUNTING_WORKER", "", 1);
  ::kill(worker, SIGKILL);
  run_until([&] { return shown("chat").state == ModelState::Ready; });
  EXPECT_NE(notices_.find("chat: its precision is settled on cpu:1 instead: cpu:0: the worker died "
                          "(signal 9 (Killed)"),
            std::string::npos)
      << notices_;
  EXPECT_EQ(shown("chat").precision, DecoderPrecision::Bf16);
  EXPECT_TRUE(shown("chat").precision_reason.starts_with("measured: "));
  EXPECT_TRUE(has_kept_verdict());
}

// It has waited for five minutes for the loads of cpu:0, and has not yet for those of cpu:1.
TEST_F(DecoderMeasuringTest, WhereItsWorkerDiesTheLoadsOfTheOtherDeviceAreWaitedForToo) {
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  bool is_any_loading = true;
  is_loading_ = [&](std::size_t) { return is_any_loading; };
  start_loading("hang_at_probe");
  int turns = 0;
  run_until([&] { return ++turns == 3; });  // it has looked, and waits since now
  EXPECT_EQ(shown("chat").reason, "its precision is to be measured");
  clock_.ahead = std::chrono::seconds(301);
  const auto worker = wait_for_stopped_worker();
  EXPECT_EQ(shown("chat").reason, "its precision is being measured");
  ::setenv("COUNTING_WORKER", "", 1);
  ::kill(worker, SIGKILL);
  run_until([&] { return shown("chat").reason == "its precision is to be measured"; });
  is_any_loading = false;
  service_->decoders().drain(
      0);  // it looks anew; by its timer in five minutes, as its clock is set
  run_until([&] { return shown("chat").state == ModelState::Ready; });
  EXPECT_TRUE(has_kept_verdict()) << "nothing disturbed it: " << shown("chat").precision_reason;
  service_.reset();  // it asks whether anything loads
}

TEST_F(DecoderMeasuringTest, WhereAWorkerDiesOnEachDeviceNothingIsMeasured) {
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  start_loading("hang_at_probe");
  const auto first = wait_for_stopped_worker();
  ::kill(first, SIGKILL);
  run_until([&] { return stopped_worker().value_or(first) != first; });
  ::setenv("COUNTING_WORKER", "", 1);
  const auto second = stopped_worker();
  ASSERT_TRUE(second);
  ::kill(*second, SIGKILL);
  run_until([&] { return shown("chat").state == ModelState::Ready; });
  EXPECT_TRUE(shown("chat").precision_reason.starts_with("not measured: cpu:1: the worker died"))
      << shown("chat").precision_reason;
  EXPECT_FALSE(has_kept_verdict());
}

// It is the only one that is left.
TEST_F(DecoderMeasuringTest, WhereTheOtherDeviceIsDrainedThenTheFirstIsMeasuredAgain) {
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  start_loading("hang_at_probe");
  const auto first = wait_for_stopped_worker();
  ::kill(first, SIGKILL);
  run_until([&] { return stopped_worker().value_or(first) != first; });
  ::setenv("COUNTING_WORKER", "", 1);
  service_->decoders().drain(1);
  run_until([&] { return shown("chat").is_precision_known; });
  EXPECT_NE(notices_.find("chat: its precision is settled on cpu:0 again: cpu:0: the worker died "
                          "(signal 9 (Killed)"),
            std::string::npos)
      << notices_;
  EXPECT_EQ(notices_.find("settled on cpu:0 instead"), std::string::npos) << notices_;
}

// ---- Devices that are drained ----

TEST_F(DecoderMeasuringTest, ADeviceThatIsDrainedIsMeasuredOnNoLonger) {
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  ASSERT_NO_FATAL_FAILURE(measure_for_ever({.name = "second", .model = counting()}));
  service_->decoders().drain(0);
  run_until([&] { return stopped_worker().value_or(measuring_) != measuring_; });
  EXPECT_EQ(::kill(measuring_, 0), -1) << "the first one has ended";
  EXPECT_EQ(shown("second").devices[0].state, GroupState::Drained);
  EXPECT_EQ(shown("second").devices[1].state, GroupState::Starting);
  EXPECT_FALSE(loaded_);
  service_->decoders().drain(1);
  run_until([&] { return loaded_.has_value(); });
  ASSERT_FALSE(*loaded_);
  EXPECT_EQ(loaded_->error().message, "every device of second is drained");
  EXPECT_FALSE(roster_.has_name("second"));
}

TEST_F(DecoderMeasuringTest, OneOfTheStartWaitsForADeviceThatIsResumed) {
  start_loading("hang_at_probe");
  service_->decoders().drain(0);
  EXPECT_EQ(shown("chat").state, ModelState::Drained);
  EXPECT_EQ(message(answer({.text = "a"})), "every device of chat is drained");
  EXPECT_FALSE(stopped_worker());
  ::setenv("COUNTING_WORKER", "", 1);
  service_->decoders().resume(0);
  run_until([&] { return shown("chat").state == ModelState::Ready; });
  EXPECT_EQ(shown("chat").precision, DecoderPrecision::Bf16);
}

// ---- The end of the server ----

// Else it would wait for the measurement until its drain limit.
TEST_F(DecoderMeasuringTest, WhoeverWaitsForAMeasurementIsToldThatTheServerEnds) {
  ASSERT_NO_FATAL_FAILURE(measure_for_ever({.name = "second", .model = counting()}));
  service_->decoders().end_loads();
  ASSERT_TRUE(loaded_);
  ASSERT_FALSE(*loaded_);
  EXPECT_EQ(loaded_->error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(loaded_->error().message, "the server ended before the answer");
  run_until([&] { return ::kill(measuring_, 0) == -1; });
  const auto late = load({.name = "third", .model = counting()});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(answer({.text = "b", .token_limit = 1}).text, "c") << "replies go on until then";
}

}  // namespace
}  // namespace muster
