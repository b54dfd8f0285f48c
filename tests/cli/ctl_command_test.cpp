// muster ctl on a running server with a decoder: what an operator sees and does. The engine's
// stand-in counts (stand_ins/counting_worker).

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/http_client.h"
#include "run_muster.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class CtlCommand : public testing::Test {
 protected:
  CtlCommand() { write_tiny_decoder(muster_, muster_.folder() / "model"); }
  ~CtlCommand() override {
    if (pid_ > 0) end();
  }

  // On two devices, until its model is ready on both.
  void serve(const std::string& model = "chat=./model",
             const std::string& worker = MUSTER_BINARY_DIR "/bin/counting_worker",
             const Words& more = {}) {
    Words words{"serve",     model,   "--listen",         "none",  "--unix-socket", "s",
                "--log-dir", "logs",  "--cache-dir",      "cache", "--torch-root",  "torch",
                "--devices", "2xcpu", "--worker-program", worker};
    words.insert(words.end(), more.begin(), more.end());
    pid_ = muster_.start(words);
    wait_until([&] { return log().find("to try it: ") != std::string::npos; });
    client_ = *HttpClient::open("unix:" + (muster_.folder() / "s").string());
    wait_until([&] {
      const auto all = devices();
      return all[0]["state"] == "ready" && all[1]["state"] == "ready";
    });
  }

  Finished end() {
    ::kill(pid_, SIGTERM);
    return muster_.wait(std::exchange(pid_, 0));
  }

  template <typename Claim>
  void wait_until(const Claim& is_so) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!is_so()) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << muster_.read("stderr") << log();
      std::this_thread::yield();
    }
  }

  Finished ctl(Words words) {
    words.insert(words.begin(), "ctl");
    words.insert(words.end(), {"--server", "unix:s"});
    return muster_.run(words);
  }

  std::string log() const {
    return muster_.read("logs/muster.log") + muster_.read("logs/worker-cpu-0.log");
  }
  Json devices() const {
    const auto answer = client_->call("GET", "/v1/devices");
    return Json::parse(answer->body)["devices"];
  }
  int ask(const std::string& model) const {
    const Json body{{"model", model}, {"prompt", "az"}, {"max_tokens", 1}};
    const auto answer = client_->call("POST", "/v1/completions",
                                      {{"Content-Type", "application/json"}}, body.dump());
    return answer ? answer->status : 0;
  }

  Muster muster_{"ctl_command"};
  std::unique_ptr<HttpClient> client_;
  pid_t pid_ = 0;
};

TEST_F(CtlCommand, LoadsAndUnloadsADecoderWhileAnotherServes) {
  serve();
  const auto loaded = ctl({"load", "second=./model"});
  EXPECT_EQ(loaded.out, "second=./model: loaded\n") << loaded.err;
  EXPECT_EQ(ask("second"), 200);
  const auto seen = ctl({"status"});
  EXPECT_NE(seen.out.find("  chat, second  "), std::string::npos) << seen.out;
  EXPECT_NE(seen.out.find("second  generate  ready"), std::string::npos) << seen.out;

  EXPECT_EQ(ctl({"unload", "second"}).out, "second: unloaded\n");
  EXPECT_EQ(ask("second"), 404);
  EXPECT_EQ(ask("chat"), 200);
  const auto again = ctl({"unload", "second"});
  EXPECT_EQ(again.exit_code, 3) << again.err;
  const auto none = ctl({"load", "none.gguf"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_EQ(none.err.find("muster pull"), std::string::npos) << none.err;
  EXPECT_TRUE(
      none.err.ends_with("; the file is looked for on the server's machine: give its whole path\n"))
      << none.err;
  const auto refused = ctl({"load", "chat=./model"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("a model of that name is there: chat"), std::string::npos)
      << refused.err;
  EXPECT_EQ(end().exit_code, 0);
}

// The server may run in another folder: its log has what it was asked for.
TEST_F(CtlCommand, WhatLiesHereIsToldFromTheRoot) {
  serve();
  const auto loaded = ctl({"load", "./model"});
  EXPECT_EQ(loaded.out, "./model: loaded\n") << loaded.err;
  const auto place = (std::filesystem::canonical(muster_.folder()) / "model").string();
  EXPECT_EQ(ctl({"load", "a=b=./model"}).exit_code, 3) << "there is no b=./model";
  std::filesystem::copy(muster_.folder() / "model", muster_.folder() / "x=y");
  EXPECT_EQ(ctl({"load", "x=y"}).out, "x=y: loaded\n");
  EXPECT_EQ(end().exit_code, 0);
  EXPECT_NE(log().find("model " + place + ": load"), std::string::npos) << log();
}

TEST_F(CtlCommand, ALoadHasTheSettingsOfTheServerUnlessItNamesItsOwn) {
  serve("chat=./model", MUSTER_BINARY_DIR "/bin/counting_worker",
        {"--precision", "fp32", "--kv-cache-dtype", "int8"});
  const auto loaded = ctl({"load", "second=./model"});
  EXPECT_EQ(loaded.out, "second=./model: loaded\n") << loaded.err;
  for (const auto* name : {"chat", "second"}) {
    const auto model = Json::parse(client_->call("GET", std::string("/v1/models/") + name)->body);
    EXPECT_EQ(model["precision"], "fp32") << name;
    EXPECT_EQ(model["kv_cache_dtype"], "int8") << name;
  }
  const auto named =
      ctl({"load", "third=./model", "--precision", "bf16", "--kv-cache-dtype", "fp16"});
  EXPECT_EQ(named.out, "third=./model: loaded\n") << named.err;
  const auto third = Json::parse(client_->call("GET", "/v1/models/third")->body);
  EXPECT_EQ(third["precision"], "bf16");
  EXPECT_EQ(third["kv_cache_dtype"], "fp16");
  EXPECT_EQ(ctl({"status", "--precision", "bf16"}).err,
            "muster: --precision is of muster ctl load, not of status\n");
  EXPECT_EQ(end().exit_code, 0);
}

TEST_F(CtlCommand, WhoeverNamesNothingIsShownWhatItCouldBe) {
  EXPECT_EQ(ctl({"drain"}).err,
            "muster: muster ctl drain needs to be told which one, such as cpu:0, or all\n");
  EXPECT_EQ(ctl({"load"}).err,
            "muster: muster ctl load needs to be told which one, such as "
            "chat=/models/SmolLM2.gguf\n");
  const auto listed = muster_.run({"keys", "list"});
  EXPECT_TRUE(listed.err.find("such as --file keys.yaml") != std::string::npos) << listed.err;
}

// No worker that embeds runs: what drains and starts again is the decoder's.
TEST_F(CtlCommand, DrainsAndRestartsTheWorkersOfDecoders) {
  serve();
  EXPECT_EQ(devices()[0]["pid"], nullptr);
  const auto pid_of = [&](std::size_t place) { return devices()[place]["decoders"][0]["pid"]; };
  EXPECT_EQ(ctl({"drain", "cpu:0"}).out, "cpu:0: drained\n");
  EXPECT_EQ(pid_of(0), nullptr);
  EXPECT_EQ(ask("chat"), 200) << "the other device serves";
  const auto before = pid_of(1);
  EXPECT_EQ(ctl({"restart", "all"}).out, "cpu:0: drained, and stays so\ncpu:1: ready\n");
  EXPECT_NE(pid_of(1), before);
  EXPECT_EQ(ctl({"resume", "cpu:0"}).out, "cpu:0: ready\n");
  EXPECT_NE(pid_of(0), nullptr);
  EXPECT_EQ(end().exit_code, 0);
}

// Others hold the memory, maybe for hours: whoever restarts the device is told so at once.
TEST_F(CtlCommand, ARestartSaysThatTheDeviceWaitsForMemory) {
  muster_.write("memory", "there is some");
  const auto memory = muster_.folder() / "memory";
  muster_.set("ZERO_WORKER", "echo dim=32");
  muster_.set("ZERO_WORKER_MEMORY", memory.string());
  serve("tiny=" + tiny_model(), MUSTER_BINARY_DIR "/bin/zero_worker");
  std::filesystem::remove(memory);
  const auto refused = ctl({"restart", "cpu:1"});
  EXPECT_EQ(refused.exit_code, 6) << refused.out;
  EXPECT_NE(refused.err.find("cpu:1: tiny waits for memory: told to be full; it is tried again by "
                             "itself"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(devices()[0]["state"], "ready");
  muster_.write("memory", "there is some again");
  wait_until([&] { return devices()[1]["state"] == "ready"; });
  EXPECT_EQ(end().exit_code, 0);
}

// Words of other schedulers are no misspellings of what stands nearest to them.
TEST_F(CtlCommand, AVerbThatIsNotKnownIsAnsweredWithTheRightOne) {
  const std::vector<std::pair<std::string, std::string>> verbs{
      {"undrain", "resume"}, {"uncordon", "resume"}, {"cordon", "drain"}, {"restrat", "restart"}};
  for (const auto& [said, meant] : verbs) {
    const auto done = muster_.run({"ctl", said, "cpu:0"});
    EXPECT_EQ(done.exit_code, 2);
    EXPECT_NE(done.err.find("did you mean " + meant + "?"), std::string::npos) << done.err;
  }
}

TEST_F(CtlCommand, AWorkerThatIsKilledIsShown) {
  serve();
  ::kill(devices()[0]["decoders"][0]["pid"].get<pid_t>(), SIGKILL);
  wait_until([&] {
    const auto decoder = devices()[0]["decoders"][0];
    return decoder["restart_count"] == 1 && decoder["state"] == "ready";
  });
  EXPECT_EQ(ask("chat"), 200);
  EXPECT_NE(log().find("worker ended with signal 9 (Killed) from outside"), std::string::npos)
      << log();
  EXPECT_NE(log().find("its new worker answers as it should"), std::string::npos) << log();
}

}  // namespace
}  // namespace muster
