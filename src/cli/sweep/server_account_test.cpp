#include "cli/sweep/server_account.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Held = std::map<std::string, std::uint64_t>;
using Faults = std::vector<std::string>;
using Names = std::vector<std::string>;

ServerAccount of_devices(const std::string& devices) {
  return read_server_account("", R"({"devices":[)" + devices + "]}");
}

TEST(ServerAccount, HasTheMostThatAWorkerCounted) {
  EXPECT_EQ(of_devices(R"(
    {"name":"cuda:0","activation_peak_bytes":30,
     "models":[{"weights_bytes":100,"load_peak_bytes":120},{"weights_bytes":5,"load_peak_bytes":9}]},
    {"name":"cuda:1","activation_peak_bytes":0,
     "models":[{"weights_bytes":100,"load_peak_bytes":190}]},
    {"name":"cpu:0","activation_peak_bytes":0,"models":[]})")
                .held,
            (Held{{"cuda:0", 135}, {"cuda:1", 190}}));
}

TEST(ServerAccount, NamesTheDevicesThatDidNotWorkAllTheTime) {
  EXPECT_EQ(of_devices(R"(
    {"name":"cuda:0","state":"ready","restart_count":0,"models":[{"state":"ready"}]},
    {"name":"cuda:1","state":"ready","restart_count":1,"models":[{"state":"ready"}]},
    {"name":"cuda:2","state":"given up","reason":"exit code 3","models":[{"state":"absent"}]},
    {"name":"cuda:3","state":"ready","models":[{"state":"failed","reason":"no memory"}]},
    {"name":"cuda:4","state":"ready","quarantine_count":1,"models":[{"state":"ready"}]})")
                .faults,
            (Faults{"cuda:1 was not ready all the time: its worker was started again or checked",
                    "cuda:2 is given up: exit code 3", "cuda:3 is failed: no memory",
                    "cuda:4 was not ready all the time: its worker was started again or checked"}));
}

// Where only a decoder is served, the device itself has no worker of the other kind.
TEST(ServerAccount, LooksAtTheDecodersOfADevice) {
  EXPECT_EQ(of_devices(R"(
    {"name":"cpu:0","state":"given up","models":[],"decoders":[{"name":"d","state":"ready"}]},
    {"name":"cpu:1","state":"ready","models":[],"decoders":[{"name":"d","state":"starting"}]})")
                .faults,
            Faults{"cpu:1 is starting"});
}

// A reply whose worker is lost goes on in a new one, and is answered all the same.
TEST(ServerAccount, NamesTheDeviceWhoseDecoderWasStartedAgain) {
  EXPECT_EQ(of_devices(R"(
    {"name":"cpu:0","state":"ready","models":[],
     "decoders":[{"name":"d","state":"ready","restart_count":0}]},
    {"name":"cpu:1","state":"ready","models":[],
     "decoders":[{"name":"d","state":"ready","restart_count":1}]})")
                .faults,
            Faults{"cpu:1 was not ready all the time: its worker was started again or checked"});
}

// As it says where a precision is measured (serving/serving_decoder_measuring.cpp).
TEST(ServerAccount, TellsThatAPrecisionIsMeasuredBeforeALoad) {
  const auto of_decoder = [](const std::string& state, const std::string& reason) {
    return of_devices(R"({"name":"cpu:0","state":"ready","models":[],"decoders":[{"name":"d",)"
                      R"("state":")" +
                      state + R"(","reason":")" + reason + R"("}]})");
  };
  EXPECT_TRUE(of_decoder("starting", "the precision of d is being measured").is_measuring);
  EXPECT_TRUE(of_decoder("starting", "the precision of d is to be measured").is_measuring);
  EXPECT_FALSE(of_decoder("starting", "").is_measuring) << "it loads";
  EXPECT_FALSE(of_decoder("given up", "what is being measured").is_measuring);
  EXPECT_FALSE(of_decoder("ready", "").is_measuring);
}

// A server is ready with its first device. The others are waited for while nothing is wrong with
// them; what is wrong is told when the point was measured.
TEST(ServerAccount, NamesTheDevicesThatAreStillToCome) {
  EXPECT_EQ(of_devices(R"(
    {"name":"cuda:0","state":"ready","restart_count":0,"models":[{"state":"ready"}]},
    {"name":"cuda:1","state":"starting","restart_count":0,"models":[{"state":"absent"}]},
    {"name":"cuda:2","state":"ready","restart_count":0,
     "models":[{"state":"ready"},{"state":"loading"}]},
    {"name":"cuda:3","state":"starting","restart_count":1,"models":[{"state":"loading"}]},
    {"name":"cuda:4","state":"given up","restart_count":0,"models":[{"state":"absent"}]},
    {"name":"cuda:5","state":"restarting","restart_count":0,"models":[{"state":"absent"}]},
    {"name":"cuda:6","state":"ready","restart_count":0,"models":[{"state":"failed"}]},
    {"name":"cuda:7","state":"starting","restart_count":0,"models":[]})")
                .coming,
            (Names{"cuda:1", "cuda:2"}));
  EXPECT_EQ(of_devices(R"(
    {"name":"cpu:0","state":"ready","models":[],
     "decoders":[{"name":"d","state":"starting","restart_count":0}]},
    {"name":"cpu:1","state":"ready","models":[],
     "decoders":[{"name":"d","state":"restarting","restart_count":1}]},
    {"name":"cpu:2","state":"ready","models":[],
     "decoders":[{"name":"d","state":"ready","restart_count":0}]})")
                .coming,
            Names{"cpu:0"});
}

TEST(ServerAccount, SaysWhyNoDeviceCanLoad) {
  const auto failed = of_devices(R"(
    {"name":"cuda:0","state":"given up","reason":"a model cannot be loaded: no fp16",
     "models":[{"state":"failed","reason":"no fp16","failure_kind":"Unsupported"}]},
    {"name":"cuda:1","state":"given up","reason":"no memory","models":[{"state":"absent"}]},
    {"name":"cuda:2","state":"idle","models":[]})");
  ASSERT_TRUE(failed.load_failure);
  EXPECT_EQ(failed.load_failure->message, "no fp16");
  EXPECT_EQ(failed.load_failure->kind, ErrorKind::Unsupported);
  EXPECT_FALSE(failed.is_ready);
  const auto decoder = of_devices(R"({"name":"cpu:0","state":"idle","models":[],
      "decoders":[{"state":"given up","reason":"no weights","failure_kind":"Corrupt"}]})");
  ASSERT_TRUE(decoder.load_failure);
  EXPECT_EQ(decoder.load_failure->message, "no weights");
  EXPECT_EQ(decoder.load_failure->kind, ErrorKind::Corrupt);
  const auto silent = of_devices(R"({"name":"cpu:0","state":"given up",
      "models":[{"state":"failed","failure_kind":null}]})");
  ASSERT_TRUE(silent.load_failure);
  EXPECT_EQ(silent.load_failure->message, "the model cannot be loaded");
  EXPECT_EQ(silent.load_failure->kind, ErrorKind::Unavailable);
}

TEST(ServerAccount, HasNoLoadFailureWhileADeviceMayLoad) {
  const std::string failed = R"({"name":"cuda:0","state":"given up",
                                 "models":[{"state":"failed","reason":"no memory"}]},)";
  for (const auto* other :
       {R"({"name":"cuda:1","state":"starting","models":[{"state":"absent"}]})",
        R"({"name":"cuda:1","state":"ready","models":[{"state":"loading"}]})",
        R"({"name":"cuda:1","state":"restarting","models":[{"state":"absent"}]})"}) {
    const auto account = of_devices(failed + other);
    EXPECT_FALSE(account.load_failure) << other;
    EXPECT_FALSE(account.is_ready) << other;
  }
  EXPECT_FALSE(of_devices(R"({"name":"cuda:0","state":"starting","models":[]})").load_failure);
}

// The server tries again by itself: the device would come in the middle of a trial.
TEST(ServerAccount, OneThatWaitsForMemoryIsStillToCome) {
  const auto beside_ready = of_devices(R"(
    {"name":"cuda:0","state":"ready","models":[{"state":"ready","waits_for_memory":false}]},
    {"name":"cuda:1","state":"restarting","restart_count":0,"models":[
      {"state":"failed","reason":"no memory","failure_kind":"ResourceExhausted",
       "waits_for_memory":true}]})");
  EXPECT_EQ(beside_ready.coming, Names{"cuda:1"});
  EXPECT_EQ(beside_ready.memory_wait, "no memory");
  EXPECT_TRUE(beside_ready.is_ready);
  const auto decoder = of_devices(R"({"name":"cuda:0","state":"restarting","models":[],
    "decoders":[{"state":"restarting","reason":"no memory","restart_count":1,
                 "waits_for_memory":true}]})");
  EXPECT_EQ(decoder.coming, Names{"cuda:0"});
  EXPECT_EQ(decoder.memory_wait, "no memory");
  EXPECT_FALSE(decoder.load_failure);
}

// "None can ever load it" would be untrue.
TEST(ServerAccount, HasNoLoadFailureWhileAllWaitForMemory) {
  const auto full = of_devices(R"({"name":"cuda:0","state":"restarting","models":[
    {"state":"failed","reason":"no memory","waits_for_memory":true}]})");
  EXPECT_FALSE(full.load_failure);
  EXPECT_EQ(full.memory_wait, "no memory");
  const auto failed = of_devices(R"({"name":"cuda:0","state":"given up","models":[
    {"state":"failed","reason":"no fp16","waits_for_memory":false}]})");
  EXPECT_TRUE(failed.load_failure);
  EXPECT_FALSE(failed.memory_wait);
}

TEST(MemoryPatience, EndsWithTheServersWordsAfterTheTimeOfAJob) {
  const ServerAccount none{};
  const ServerAccount full{.memory_wait = "no memory"};
  const ServerAccount again{.memory_wait = ""};  // it tries just now
  constexpr auto kAlmost = std::chrono::seconds(30);
  TimePoint now{};
  MemoryPatience patience;
  EXPECT_TRUE(patience.look(full, now));
  now += kAlmost;
  EXPECT_TRUE(patience.look(again, now));
  EXPECT_TRUE(patience.look(none, now)) << "it has found some";
  now += kAlmost;
  EXPECT_TRUE(patience.look(full, now)) << "counted anew";
  now += std::chrono::seconds(31);
  const auto ended = patience.look(again, now);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(ended.error().message, "no memory");
}

TEST(ServerAccount, IsReadyWithTheFirstDevice) {
  const auto account = of_devices(R"(
    {"name":"cuda:0","state":"given up","models":[{"state":"failed","reason":"no memory"}]},
    {"name":"cuda:1","state":"ready","models":[{"state":"ready"}]})");
  EXPECT_TRUE(account.is_ready);
  EXPECT_FALSE(account.load_failure);
  EXPECT_TRUE(of_devices(R"({"name":"cpu:0","state":"idle","models":[],
                             "decoders":[{"state":"ready"}]})")
                  .is_ready);
}

TEST(ServerAccount, SaysWhatTheModelComputesIn) {
  EXPECT_EQ(read_server_account(R"({"data":[{"id":"m","precision":"bf16"}]})", "").precision,
            "bf16");
  EXPECT_EQ(read_server_account(R"({"data":[]})", "").precision, std::nullopt);
}

TEST(ServerAccount, IsEmptyOfWhatIsNoAnswer) {
  for (const auto* text :
       {"", "[]", "{}", R"({"devices":3,"data":4})", R"({"devices":[3,{"name":4}],"data":[5]})",
        R"({"devices":[{"name":"a","models":[3]}]})"}) {
    const auto account = read_server_account(text, text);
    EXPECT_TRUE(account.held.empty() && account.faults.empty() && account.coming.empty() &&
                !account.precision && !account.is_ready && !account.load_failure)
        << text;
  }
}

}  // namespace
}  // namespace muster
