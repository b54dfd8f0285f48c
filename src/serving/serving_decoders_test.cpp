// Decoders that come and go while the server runs, and what an operator does to their devices; on
// real worker processes that count (stand_ins/counting_worker).
#include "serving/serving_decoders.h"

#include <signal.h>

#include "base/text.h"
#include "serving/decoder_memory.h"
#include "serving/device_states.h"
#include "serving/generation_fixture.h"
#include "serving/serving_decoder.h"
#include "serving/serving_models.h"

namespace muster {
namespace {

constexpr const char* kWhole = "bcdefghijklmnopqrstuvwxyzé012345678";  // after "a"

class ServingDecodersTest : public GenerationServiceTest {
 protected:
  /// Those of the engine's tiny Llama, into the folder of every model here.
  void write_weights() const {
    const auto weights =
        std::filesystem::path(MUSTER_SOURCE_DIR) / "src/engine/testdata/decoders/llama";
    for (const auto* name : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(weights / name, folder_ / "counting" / name,
                                 std::filesystem::copy_options::overwrite_existing);
    }
  }

  ServedModel second() const { return {.name = "second", .model = counting()}; }

  /// Of what is served, or still there.
  std::optional<ServedDecoderStatus> hosted(const std::string& name) const {
    for (auto& decoder : service_->decoders().hosted()) {
      if (decoder.name == name) return decoder;
    }
    return std::nullopt;
  }
  GroupState worker_state(const std::string& name, std::size_t device = 0) const {
    return hosted(name)->devices.at(device).state;
  }
  void run_until_worker_is(GroupState state, std::size_t device = 0) {
    run_until([&] { return worker_state("chat", device) == state; });
  }
  std::string names() const {
    std::string text;
    for (const auto& model : service_->models()) text += model.name + " ";
    return text;
  }
};

TEST_F(ServingDecodersTest, ADecoderIsLoadedBesideOthersAndUnloaded) {
  start();
  const auto loaded = load(second());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->state, ModelState::Ready);
  EXPECT_EQ(names(), "chat second ");
  EXPECT_EQ(answer({.model = "second", .text = "a"}).text, kWhole);
  EXPECT_EQ(answer({.model = "chat", .text = "a", .token_limit = 2}).text, "bc");

  EXPECT_EQ(*service_->decoders().unload("second"), 0U);
  EXPECT_EQ(names(), "chat ");
  EXPECT_EQ(message(answer({.model = "second", .text = "a"})),
            "second was unloaded and takes no new requests");
  run_until([&] { return !hosted("second"); });
  EXPECT_EQ(message(answer({.model = "secand", .text = "a"})),
            "no model that generates has this name: secand; served here: chat");
  EXPECT_EQ(answer({.text = "a", .token_limit = 1}).text, "b") << "the other one goes on";
}

TEST_F(ServingDecodersTest, AServerWithoutADecoderLoadsItsFirst) {
  options_.decoders.clear();
  start();
  const auto none = answer({.text = "a"});
  EXPECT_EQ(none.error->error.kind, ErrorKind::NotFound);
  EXPECT_EQ(message(none),
            "no model that generates is served here: start with muster serve FILE.gguf, or muster "
            "ctl load FILE.gguf");
  ASSERT_TRUE(load(second()));
  EXPECT_EQ(answer({.text = "a"}).text, kWhole);
}

// From the moment that it is asked for; its files are read and its worker loads meanwhile.
TEST_F(ServingDecodersTest, WhileADecoderIsLoadedClientsAreToldToComeAgain) {
  options_.decoders.clear();
  start();
  ::setenv("COUNTING_WORKER", "hang_at_load", 1);
  service_->decoders().load(second(), [](const Loaded&) {});
  for (const auto* name : {"second", ""}) {
    const auto early = answer({.model = name, .text = "a"});
    EXPECT_EQ(message(early), "second is being loaded") << name;
    EXPECT_EQ(early.error->error.kind, ErrorKind::Unavailable);
    EXPECT_TRUE(early.error->retry_after);
  }
  run_until([&] { return hosted("second").has_value(); });
  EXPECT_EQ(message(answer({.model = "second", .text = "a"})), "second is being loaded");
}

// counting_worker says that bf16, which is asked for behind fp32, is twice as fast.
TEST_F(ServingDecodersTest, WithoutAPrecisionItIsMeasuredAtTheStartAndKept) {
  write_weights();
  options_.cache_folder = folder_ / "cache";
  const std::string reason =
      "measured: fp32 100.0 tokens/s; bf16 200.0 tokens/s with a mean KL to fp32 of 0.00100";
  start();
  EXPECT_EQ(hosted("chat")->precision, DecoderPrecision::Bf16);
  EXPECT_EQ(hosted("chat")->precision_reason, reason);
  EXPECT_NE(notices_.find("chat: measuring which precision is fastest here"), std::string::npos);
  ::setenv("COUNTING_WORKER", "die_at_probe", 1);
  const auto loaded = load(second());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->precision_reason, reason) << "as it was kept";
  auto named = second();
  named.name = "third";
  named.wants_own_bits = true;
  const auto third = load(named);
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(third->precision, DecoderPrecision::Own);
  EXPECT_EQ(third->precision_reason, "asked for");
}

// Its worker would measure for ever, and what else is to be measured would wait for it. Questions
// about files are asked elsewhere.
TEST_F(ServingDecodersTest, AnUnloadEndsAMeasurementAndQuestionsDoNotWaitForIt) {
  write_weights();
  options_.cache_folder = folder_ / "cache";
  start();
  std::filesystem::remove_all(options_.cache_folder);
  ::setenv("COUNTING_WORKER", "hang_at_probe", 1);
  std::optional<Loaded> loaded;
  service_->decoders().load(second(), [&](Loaded result) { loaded = std::move(result); });
  const auto measuring = wait_for_stopped_worker();
  std::optional<Result<bool>> generates;
  service_->decoders().ask_kind(counting(), [&](Result<bool> is) { generates = std::move(is); });
  run_until([&] { return generates.has_value(); });
  EXPECT_EQ(*service_->decoders().unload("second"), 0U);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->error().kind, ErrorKind::Cancelled);
  ::setenv("COUNTING_WORKER", "", 1);
  auto other = second();
  other.name = "third";
  const auto third = load(other);
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(::kill(measuring, 0), -1) << "its worker has ended";
}

// As in a server that is told to end.
TEST_F(ServingDecodersTest, NobodyWaitsForAMeasurementAtTheEnd) {
  write_weights();
  options_.cache_folder = folder_ / "cache";
  start();
  std::filesystem::remove_all(options_.cache_folder);
  ::setenv("COUNTING_WORKER", "hang_at_probe", 1);
  service_->decoders().load(second(), [](const Loaded&) {});
  const auto measuring = wait_for_stopped_worker();
  service_.reset();
  EXPECT_EQ(::kill(measuring, 0), -1) << "its worker has ended";
}

// What the device has is not known: 256 MiB are for keys and values, of which a token takes 128
// bytes (two layers of two heads of eight, keys and values of two bytes).
TEST_F(ServingDecodersTest, AContextThatIsCutToItsRoomIsTold) {
  write_counting_decoder(counting(), 4'000'000);
  start();
  EXPECT_NE(notices_.find("chat: a prompt and its reply may have 2097152 tokens instead of "
                          "4000000, as there are 268 MB for keys and values on each device"),
            std::string::npos)
      << notices_;
}

TEST_F(ServingDecodersTest, AnUnloadLetsRepliesEnd) {
  start("wait_at=2");
  Outcome running;
  const auto id = ask({.text = "a"}, running);
  run_until([&] { return running.text == "bc"; });
  EXPECT_EQ(*service_->decoders().unload("chat"), 1U);
  const auto refused = answer({.text = "a"});
  EXPECT_EQ(message(refused),
            "chat was unloaded and takes no new requests; no other model that generates is served "
            "here");
  EXPECT_EQ(refused.error->error.kind, ErrorKind::NotFound);
  EXPECT_FALSE(running.is_over());
  ASSERT_TRUE(hosted("chat"));
  EXPECT_TRUE(hosted("chat")->is_leaving);
  EXPECT_FALSE(service_->is_ready());
  service_->cancel(id);
  run_until([&] { return !hosted("chat"); });
}

// Behind "6" choice 0 has said "78" and goes on; choice 1 says "8" and is at its end. What goes on
// is counted by replies.
TEST_F(ServingDecodersTest, AnUnloadLetsEveryReplyOfACallEnd) {
  start("wait_at=2");
  Outcome running;
  const auto id = ask({.text = "6", .choice_count = 2}, running);
  run_until([&] { return running.ended.size() == 1; });
  Outcome more;
  const auto other = ask({.text = "a", .choice_count = 3}, more);
  run_until([&] { return more.texts.size() == 3 && more.usage.reply_tokens == 6; });
  EXPECT_EQ(*service_->decoders().unload("chat"), 4U);
  service_->cancel(other);
  run_until([&] { return hosted("chat")->devices[0].running_count == 1; });
  EXPECT_FALSE(running.is_over());
  service_->cancel(id);
  run_until([&] { return !hosted("chat"); });
}

TEST_F(ServingDecodersTest, AtTheDrainLimitAnUnloadEndsWhatIsLeft) {
  options_.drain_limit = std::chrono::milliseconds(50);
  start("wait_at=2");
  Outcome running;
  ask({.text = "a"}, running);
  run_until([&] { return running.text == "bc"; });
  ASSERT_TRUE(service_->decoders().unload("chat"));
  run_until([&] { return !hosted("chat"); });
  EXPECT_EQ(message(running), "chat was unloaded before the end of the reply");
  EXPECT_EQ(running.error->error.kind, ErrorKind::Unavailable);
}

// It may be changed while replies run, for those who are unloaded and for devices that are drained.
TEST_F(ServingDecodersTest, ADrainLimitThatIsChangedHoldsFromThenOn) {
  options_.drain_limit = std::chrono::hours(1);
  start("wait_at=2");
  ASSERT_TRUE(load(second()));
  Outcome drained;
  Outcome unloaded;
  ask({.model = "chat", .text = "a"}, drained);
  ask({.model = "second", .text = "a"}, unloaded);
  run_until([&] { return drained.text == "bc" && unloaded.text == "bc"; });
  options_.drain_limit = std::chrono::milliseconds(50);
  service_->reconfigure(options_, {});
  ASSERT_TRUE(service_->decoders().unload("second"));
  run_until([&] { return !hosted("second"); });
  EXPECT_EQ(message(unloaded), "second was unloaded before the end of the reply");
  service_->decoders().drain(0);
  run_until([&] { return drained.is_over(); });
  EXPECT_EQ(message(drained), "every device of chat is drained");
}

// Its worker dies again and again, and each next one goes on with the reply.
TEST_F(ServingDecodersTest, AReplyOfAnUnloadedDecoderSurvivesItsWorkers) {
  start("die_after=4");
  Outcome running;
  ask({.text = "a"}, running);
  run_until([&] { return !running.text.empty(); });
  ASSERT_TRUE(service_->decoders().unload("chat"));
  run_until([&] { return running.is_over(); });
  EXPECT_EQ(running.text, kWhole);
  EXPECT_EQ(running.end, FinishReason::Stop);
  run_until([&] { return !hosted("chat"); });
}

TEST_F(ServingDecodersTest, ANameAndAPlaceAreFreeWhileTheOldOneStillEnds) {
  start("wait_at=2");
  Outcome running;
  ask({.text = "a"}, running);
  run_until([&] { return running.text == "bc"; });
  ASSERT_TRUE(service_->decoders().unload("chat"));
  const auto again = load({.name = "chat", .model = counting()});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(service_->decoders().hosted().size(), 2U);
  EXPECT_EQ(names(), "chat ");
  EXPECT_FALSE(running.is_over());
}

TEST_F(ServingDecodersTest, ALoadIsToldWhyItCameToNothing) {
  start();
  const auto taken = load({.name = "chat", .model = counting()});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message, "a model of that name is there: chat");
  EXPECT_EQ(load({.name = "none", .model = (folder_ / "none").string()}).error().kind,
            ErrorKind::NotFound);
  auto without_room = second();
  without_room.length_max = 1;
  const auto refused = load(without_room);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "second: length_max leaves no room for a prompt and its reply: 1");
  ::setenv("COUNTING_WORKER", "fail_load", 1);
  const auto failed = load(second());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "told not to load");
  EXPECT_FALSE(roster_.has_name("second"));
  ::setenv("COUNTING_WORKER", "die_at_load", 1);
  const auto died = load(second());
  ASSERT_FALSE(died);
  EXPECT_EQ(died.error().kind, ErrorKind::Unavailable);
  EXPECT_NE(died.error().message.find("signal 6 (Aborted)"), std::string::npos);
  ::setenv("COUNTING_WORKER", "other_build", 1);
  EXPECT_EQ(load(second()).error().kind, ErrorKind::Unavailable) << "and the server goes on";
  ::setenv("COUNTING_WORKER", "", 1);
  EXPECT_TRUE(load(second()));
  EXPECT_EQ(answer({.text = "a", .token_limit = 1}).text, "b");
}

// Another one of the start goes on.
TEST_F(ServingDecodersTest, ADecoderWhoseWorkersNeverStartIsHopelessUnlessAnotherIsServed) {
  start("exit_at_load");
  const auto error = hopeless_error({}, {}, service_->models());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message,
            "no device can load what is to be served: chat: cpu:0: its worker ended with exit code "
            "3; it last said: told to exit");
  EXPECT_EQ(hosted("chat")->state, ModelState::Failed);
  EXPECT_EQ(message(answer({.text = "a"})),
            "no device can load chat: its worker ended with exit code 3");
  ::setenv("COUNTING_WORKER", "", 1);
  ASSERT_TRUE(load(second()));
  EXPECT_FALSE(hopeless_error({}, {}, service_->models()));
  EXPECT_EQ(answer({.model = "second", .text = "a"}).text, kWhole);
}

TEST_F(ServingDecodersTest, AModelWhoseNumbersAreNoneIsHopelessAndItsFolderIsNamed) {
  start("nan_canary");
  const auto error = hopeless_error({}, {}, service_->models());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ErrorKind::Corrupt);
  EXPECT_NE(error->message.find("/counting: the model's logits are not finite"), std::string::npos)
      << error->message;
  EXPECT_EQ(message(answer({.text = "a"})), "no device can load chat: its worker was ended");
}

// The workers of cpu:0 never start, and cpu:1 may have memory later.
TEST_F(ServingDecodersTest, CallersAreNotToldOfWorkersThatNeverStartWhereADeviceWaitsForMemory) {
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  start("full_on=1 exit_at_load");
  run_until([&] { return !hosted("chat")->devices[0].start_failure.empty(); });
  EXPECT_TRUE(hosted("chat")->devices[1].waits_for_memory);
  EXPECT_EQ(message(answer({.text = "a"})), "no device can load chat");
}

TEST_F(ServingDecodersTest, ADecoderWhoseWorkerIsKilledWhileItLoadsIsThereAllTheSame) {
  start();
  ::setenv("COUNTING_WORKER", "hang_at_load", 1);
  std::optional<Loaded> loaded;
  service_->decoders().load(second(), [&](Loaded result) { loaded = std::move(result); });
  run_until([&] { return hosted("second") && hosted("second")->devices[0].pid; });
  ::setenv("COUNTING_WORKER", "", 1);
  ::kill(*hosted("second")->devices[0].pid, SIGKILL);
  run_until([&] { return loaded.has_value(); });
  ASSERT_TRUE(*loaded) << loaded->error().message;
  EXPECT_EQ((*loaded)->devices[0].restart_count, 1U);
  EXPECT_EQ(answer({.model = "second", .text = "a"}).text, kWhole);
}

TEST_F(ServingDecodersTest, ALoadEndsWhenItsModelIsUnloadedMeanwhile) {
  start();
  ::setenv("COUNTING_WORKER", "hang_at_load", 1);
  std::optional<Loaded> loaded;
  const auto on_done = [&](Loaded result) { loaded = std::move(result); };
  service_->decoders().load(second(), on_done);
  EXPECT_EQ(*service_->decoders().unload("second"), 0U) << "while its files are read";
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->error().message, "the model was unloaded while it was loading: second");
  loaded.reset();
  service_->decoders().load(second(), on_done);
  run_until([&] { return hosted("second").has_value(); });
  EXPECT_EQ(*service_->decoders().unload("second"), 0U) << "while its worker loads";
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->error().kind, ErrorKind::Cancelled);
  run_until([&] { return !hosted("second"); });
  EXPECT_EQ(answer({.text = "a", .token_limit = 1}).text, "b");
}

TEST_F(ServingDecodersTest, ADrainedDeviceEndsItsRepliesAndTheOtherGoesOn) {
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  start("wait_at=2");
  run_until_worker_is(GroupState::Ready, 0);
  run_until_worker_is(GroupState::Ready, 1);
  Outcome first;
  const auto id = ask({.text = "a"}, first);
  run_until([&] { return first.text == "bc"; });
  service_->decoders().drain(0);
  EXPECT_EQ(worker_state("chat"), GroupState::Draining);
  Outcome second;
  ask({.text = "a"}, second);
  run_until([&] { return second.text == "bc"; });
  EXPECT_EQ(hosted("chat")->devices[1].running_count, 1U);
  service_->cancel(id);
  run_until_worker_is(GroupState::Drained);
  EXPECT_EQ(service_->models()[0].state, ModelState::Ready);
  service_->decoders().drain(1);
  EXPECT_EQ(service_->models()[0].state, ModelState::Drained);
  const auto refused = answer({.text = "a"});
  EXPECT_EQ(message(refused), "every device of chat is drained");
  EXPECT_EQ(refused.error->error.kind, ErrorKind::Unavailable);
  EXPECT_FALSE(second.is_over()) << "it may still end";
  ::setenv("COUNTING_WORKER", "", 1);
  service_->decoders().resume(0);
  run_until_worker_is(GroupState::Ready);
  EXPECT_EQ(answer({.text = "a"}).text, kWhole);
}

TEST_F(ServingDecodersTest, ADrainReachesADecoderThatIsUnloading) {
  start("wait_at=2");
  Outcome running;
  const auto id = ask({.text = "a"}, running);
  run_until([&] { return running.text == "bc"; });
  ASSERT_TRUE(service_->decoders().unload("chat"));
  service_->decoders().drain(0);
  EXPECT_EQ(worker_state("chat"), GroupState::Draining);
  service_->cancel(id);
  run_until([&] { return !hosted("chat"); });
}

TEST_F(ServingDecodersTest, ADecoderThatIsLoadedOntoADrainedDeviceWaitsForIt) {
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  start();
  service_->decoders().drain(1);
  const auto loaded = load(second());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(worker_state("second", 1), GroupState::Drained);
  service_->decoders().drain(0);
  const auto none = load({.name = "third", .model = counting()});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "every device of third is drained");
  service_->decoders().resume(1);
  run_until([&] { return worker_state("second", 1) == GroupState::Ready; });
}

// It is asked for while another device works: no request is told that none does.
TEST_F(ServingDecodersTest, AWorkerThatHadFailedIsStartedAgainAndNobodyIsRefused) {
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  start("fail_load");
  EXPECT_EQ(worker_state("chat", 0), GroupState::GivenUp);
  ::setenv("COUNTING_WORKER", "", 1);
  service_->decoders().restart(0);
  run_until_worker_is(GroupState::Ready, 0);
  service_->decoders().restart(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answer({.text = "a", .token_limit = 1}).text, "b");
  run_until_worker_is(GroupState::Ready, 1);
}

TEST_F(ServingDecodersTest, ARestartOfTheOnlyWorkerLetsRequestsWait) {
  start();
  const auto pid = hosted("chat")->devices[0].pid;
  service_->decoders().restart(0);
  EXPECT_EQ(answer({.text = "a"}).text, kWhole);
  EXPECT_NE(hosted("chat")->devices[0].pid, pid);
}

TEST_F(ServingDecodersTest, ThereAreNoMoreModelsThanThereMayBe) {
  std::vector<ModelRoster::Ticket> others;  // those that embed, say
  for (int i = 0; i < 15; ++i) others.push_back(*roster_.enter());
  start("wait_at=2");
  const auto refused = load(second());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::ResourceExhausted);
  Outcome running;
  ask({.text = "a"}, running);
  run_until([&] { return running.text == "bc"; });
  ASSERT_TRUE(service_->decoders().unload("chat"));
  EXPECT_TRUE(load(second())) << "one that still ends counts no more";
}

// The device holds one and a half of its workers. Its keys and values: 4 contexts of 128 tokens and
// a block of 16, each token 2 x 2 layers x 2 heads x 8 values x 2 bytes.
TEST_F(ServingDecodersTest, ADecoderThatDoesNotFitIsRefusedWithItsFigures) {
  const auto demand = decoder_demand(counting(), DecoderPrecision::Own, 128);
  ASSERT_TRUE(demand) << demand.error().message;
  const auto needed = demand->total() + 4ULL * (128 + 16) * 128;
  options_.machine.classes.push_back({.model = "CPU", .kind = DeviceKind::Cpu, .memory_bytes = 0});
  options_.machine.devices.push_back({.kind = DeviceKind::Cpu, .free_bytes = needed + needed / 2});
  start();
  ASSERT_EQ(service_->models().size(), 1U);
  const auto refused = load(second());
  ASSERT_FALSE(refused) << "a second one takes as much, and less is left";
  EXPECT_EQ(refused.error().kind, ErrorKind::ResourceExhausted);
  const auto& text = refused.error().message;
  EXPECT_TRUE(text.starts_with("second needs " + human_bytes(needed) + " on each device")) << text;
  EXPECT_NE(text.find(" and cpu:0 has " + human_bytes(needed / 2) + " left"), std::string::npos)
      << text;
  EXPECT_FALSE(roster_.has_name("second"));
  ASSERT_TRUE(service_->decoders().unload("chat"));
  run_until([&] { return !hosted("chat"); });
  EXPECT_TRUE(load(second())) << "there is room again";
}

// 128 bytes a token, of 32 tokens, the fewest.
TEST_F(ServingDecodersTest, ACacheOfASetSizeMakesRepliesShorter) {
  options_.kv_cache_bytes = 4096;
  start();
  EXPECT_NE(notices_.find("may have 32 tokens instead of 128, as there are 4.10 kB"),
            std::string::npos)
      << notices_;
}

TEST_F(ServingDecodersTest, ACacheThatIsTooSmallIsRefusedByItsSetting) {
  options_.kv_cache_bytes = 4095;
  const auto ignore = [](const std::string&, const std::optional<std::string>&) {};
  const auto service =
      GenerationService::start(options_, roster_, loop_, {.on_notice = ignore}, clock_);
  ASSERT_FALSE(service);
  EXPECT_EQ(service.error().message,
            "kv_cache_size 4.09 kB: chat needs 4.10 kB for 32 tokens, the fewest that it can "
            "serve with");
}

TEST_F(ServingDecodersTest, WhatOtherProgramsHaveTakenSinceTheStartCounts) {
  options_.machine.classes.push_back({.model = "CPU", .kind = DeviceKind::Cpu, .memory_bytes = 0});
  options_.machine.devices.push_back(
      {.kind = DeviceKind::Cpu, .free_bytes = std::uint64_t{1} << 40});
  std::optional<std::uint64_t> available = std::uint64_t{1} << 40;
  memory_available_ = [&] { return available; };
  start();
  available = 900;
  const auto refused = load(second());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(" cpu:0 has 900 B left"), std::string::npos)
      << refused.error().message;
}

TEST_F(ServingDecodersTest, WhatAModelDoesIsKnownByItsFiles) {
  start();
  const auto kind = [&](const std::string& model) {
    std::optional<Result<bool>> answer;
    service_->decoders().ask_kind(model, [&](Result<bool> is) { answer = std::move(is); });
    run_until([&] { return answer.has_value(); });
    return **answer;
  };
  EXPECT_TRUE(kind(counting()));
  EXPECT_TRUE(kind("none.gguf"));
  EXPECT_FALSE(kind((folder_ / "none").string()));
}

TEST(ModelSettings, OwnBitsAndInt8OfModelsThatGenerateAreOfCpus) {
  Device cpu;
  cpu.kind = DeviceKind::Cpu;
  Device gpu;
  gpu.kind = DeviceKind::Cuda;
  ServedModel own{.name = "m", .model = "m.gguf"};
  own.wants_own_bits = true;
  const ServedModel int8{.name = "m", .model = "m.gguf", .precision = Precision::Int8};
  for (const auto& [word, asked] : {std::pair("own", own), std::pair("int8", int8)}) {
    EXPECT_TRUE(check_decoder_settings(asked, {cpu}));
    const auto on_gpu = check_decoder_settings(asked, {gpu});
    ASSERT_FALSE(on_gpu);
    EXPECT_EQ(on_gpu.error().message,
              std::string("m: ") + word + " is computed on CPUs only: on a GPU use bf16 or fp32");
  }
  const auto embedding = check_encoder_settings(own, {cpu});
  ASSERT_FALSE(embedding);
  EXPECT_EQ(embedding.error().message,
            "m: own is for models that generate, and this one is computed in fp32, bf16, fp16 or "
            "int8");
}

TEST(ModelSettings, Int8OfAModelThatEmbedsWantsCpusAlone) {
  Device cpu;
  cpu.kind = DeviceKind::Cpu;
  Device gpu;
  gpu.kind = DeviceKind::Cuda;
  ServedModel asked{.name = "m", .model = "folder", .precision = Precision::Int8};
  EXPECT_TRUE(check_encoder_settings(asked, {cpu}));
  const auto refused = check_encoder_settings(asked, {cpu, gpu});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(refused.error().message,
            "m: int8 is computed on CPUs only, and cuda:0 is a GPU: use fp32, bf16 or fp16, or "
            "CPUs alone");
  asked.devices = {"cpu:0"};
  EXPECT_TRUE(check_encoder_settings(asked, {cpu, gpu}));
  asked.devices = {};
  asked.precision = Precision::Fp16;
  EXPECT_TRUE(check_encoder_settings(asked, {cpu, gpu}));
}

TEST(ModelSettings, NumbersOfACacheAreOfModelsThatGenerateOnCpus) {
  ServedModel asked{.name = "m", .model = "m.gguf", .kv_cache_dtype = KvCacheDtype::Int8};
  Device cpu;
  cpu.kind = DeviceKind::Cpu;
  EXPECT_TRUE(check_decoder_settings(asked, {cpu}));
  Device gpu;
  gpu.kind = DeviceKind::Cuda;
  const auto on_gpu = check_decoder_settings(asked, {gpu});
  ASSERT_FALSE(on_gpu);
  EXPECT_EQ(on_gpu.error().message,
            "m: keys and values are kept in int8 on CPUs only: on a GPU use kv_cache_dtype auto");
  const auto embedding = check_encoder_settings(asked, {cpu});
  ASSERT_FALSE(embedding);
  EXPECT_EQ(embedding.error().message, "m: a model that does not generate has no kv_cache_dtype");
  asked.kv_cache_dtype = KvCacheDtype::Auto;
  EXPECT_TRUE(check_decoder_settings(asked, {gpu}));
  EXPECT_TRUE(check_encoder_settings(asked, {cpu}));
}

}  // namespace
}  // namespace muster
