// `muster serve` on two stand-ins for GPUs: what `muster embed` computes there, over HTTP, and also
// when a worker is killed or its device fails.

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dataset/vector_file.h"
#include "integration/embedding_runs.h"
#include "integration/standin_reports.h"
#include "net/http_client.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using Rows = std::vector<std::vector<float>>;

class StandinServerTest : public testing::Test {
 protected:
  static constexpr int kTexts = 200;

  StandinServerTest() {
    runs_.write_input("in.txt", EmbeddingRuns::texts(kTexts));
    EXPECT_EQ(runs_
                  .start("in.txt", "rows.npy",
                         {"--devices", "2xstandin", "--precision", "fp32", "--quiet"})
                  .wait(),
              0)
        << runs_.log();
  }
  ~StandinServerTest() override {
    ::unsetenv("STANDIN");
    if (!server_) return;
    ::kill(server_->pid(), SIGKILL);
    server_->wait();
  }

  void start_server(const std::string& standin = "{}") {
    ::setenv("STANDIN", standin.c_str(), 1);
    const auto log = (runs_.folder() / "serve.log").string();
    server_ = std::make_unique<Program>(
        std::vector<std::string>{std::string(MUSTER_BINARY_DIR) + "/bin/muster", "serve",
                                 std::string(MUSTER_SOURCE_DIR) + "/tests/models/tiny", "--listen",
                                 "127.0.0.1:0", "--devices", "2xstandin", "--precision", "fp32",
                                 "--no-cache-enabled", "--cache-dir",
                                 (runs_.folder() / "cache").string()},
        log);
    const std::string mark = "http://127.0.0.1:";
    for (;;) {
      const auto text = read_file(log);
      const auto at = text ? text->find(mark) : std::string::npos;
      if (at != std::string::npos && text->find('\n', at) != std::string::npos) {
        port_ = static_cast<std::uint16_t>(std::stoi(text->substr(at + mark.size())));
        return;
      }
      ASSERT_FALSE(ends_within(server_->pidfd(), 10)) << (text ? *text : "");
    }
  }

  std::string server_log() const { return *read_file(runs_.folder() / "serve.log"); }
  bool has_logged(const std::string& words) const {
    return server_log().find(words) != std::string::npos;
  }

  Rows ask() const {
    const auto client = *HttpClient::open("http://127.0.0.1:" + std::to_string(port_), {});
    const Json body{{"model", ""}, {"input", EmbeddingRuns::texts(kTexts)}};
    const auto answer =
        client->call("POST", "/v1/embeddings", {{"Content-Type", "application/json"}}, body.dump());
    EXPECT_TRUE(answer && answer->status == 200) << (answer ? answer->body : "") << server_log();
    Rows rows;
    if (!answer || answer->status != 200) return rows;
    const auto parsed = Json::parse(answer->body);
    for (const auto& item : parsed["data"]) {
      rows.push_back(item["embedding"].get<std::vector<float>>());
    }
    return rows;
  }

  /// Asks again and again until it is so, for a minute at most. False: it is not, or an answer was
  /// wrong.
  bool ask_until(const std::function<bool()>& is_so, const Rows& rows) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!is_so()) {
      if (std::chrono::steady_clock::now() > end || ask() != rows) return false;
    }
    return true;
  }

  /// Of the server's processes that compute.
  std::vector<pid_t> workers() const {
    std::vector<pid_t> result;
    for (const auto child : server_->children()) {
      std::ifstream name("/proc/" + std::to_string(child) + "/comm");
      std::string word;
      if (name >> word && word == "muster-worker") result.push_back(child);
    }
    return result;
  }

  /// A device, as the server tells of it.
  Json device(std::size_t index) const {
    const auto client = *HttpClient::open("http://127.0.0.1:" + std::to_string(port_), {});
    const auto answer = client->call("GET", "/v1/devices", {}, "");
    EXPECT_TRUE(answer && answer->status == 200);
    return Json::parse(answer->body)["devices"][index];
  }

  void restart(const std::string& device) const {
    const auto client = *HttpClient::open("http://127.0.0.1:" + std::to_string(port_), {});
    const auto answer =
        client->call("POST", "/v1/admin/restart", {{"Content-Type", "application/json"}},
                     Json{{"device", device}}.dump());
    EXPECT_TRUE(answer && answer->status == 200) << (answer ? answer->body : "");
  }

  /// How often either device had no memory.
  std::uint64_t full_count() const {
    constexpr auto kFull = offsetof(StandinReport, full);
    return reports_->number(0, kFull) + reports_->number(1, kFull);
  }

  Rows expected() const {
    const auto file = *VectorFile::open(runs_.folder() / "rows.npy");
    Rows rows;
    for (std::size_t i = 0; i < kTexts; ++i) {
      const auto row = file->row(i);
      rows.emplace_back(row.begin(), row.end());
    }
    return rows;
  }

  const EmbeddingRuns runs_{"standin_server"};
  std::unique_ptr<StandinReports> reports_;
  std::unique_ptr<Program> server_;
  std::uint16_t port_ = 0;
};

TEST_F(StandinServerTest, AnswersWithTheVectorsOfARun) {
  start_server();
  const auto rows = expected();
  EXPECT_EQ(ask(), rows);
  for (int round = 0; round < 5; ++round) {
    const auto alive = workers();
    if (!alive.empty()) ::kill(alive[static_cast<std::size_t>(round) % alive.size()], SIGKILL);
    EXPECT_EQ(ask(), rows) << "after the death of a worker";
  }
}

TEST_F(StandinServerTest, MemoryThatOthersTakeMakesPassesSmallerAndComesBack) {
  const auto held = runs_.folder() / "held";
  const auto let_others_hold = [&](std::uint64_t bytes) { std::ofstream(held) << bytes; };
  let_others_hold(0);
  reports_ = std::make_unique<StandinReports>(runs_.folder());
  start_server(R"({"all": {"held_file": ")" + held.string() + R"("}})");
  const auto rows = expected();
  EXPECT_EQ(ask(), rows);
  // A text alone takes 32 kB, a whole pass of many more than 1 MB: a tenth of that is left below.
  const auto peak = [&] { return device(0)["activation_peak_bytes"].get<std::uint64_t>(); };
  ASSERT_TRUE(ask_until([&] { return peak() > 1'000'000; }, rows)) << peak();
  const auto whole = device(0);
  const auto needed = whole["activation_peak_bytes"].get<std::uint64_t>();
  const auto weights = whole["models"][0]["weights_bytes"].get<std::uint64_t>();
  for (const std::uint64_t part : {2, 4, 10}) {
    let_others_hold(kStandinMemoryBytes - weights - needed / part);
    const auto full_before = full_count();
    for (int round = 0; round < 4; ++round) EXPECT_EQ(ask(), rows) << "1/" << part;
    EXPECT_EQ(device(0)["quarantine_count"], 0) << server_log();
    EXPECT_EQ(device(1)["quarantine_count"], 0) << server_log();
    // Passes that were made smaller before may fit until they have grown again.
    EXPECT_TRUE(ask_until([&] { return full_count() > full_before; }, rows))
        << "1/" << part << " of " << needed << "\n"
        << server_log();
  }
  let_others_hold(0);
  const auto full_before = full_count();
  for (int round = 0; round < 10; ++round) EXPECT_EQ(ask(), rows);
  EXPECT_EQ(full_count(), full_before);
}

TEST_F(StandinServerTest, ADeviceWithoutMemoryForTheModelTriesAgainByItself) {
  start_server(R"({"standin:1": {"full_at_allocation": 1, "full_count": 2}})");
  const auto rows = expected();
  ASSERT_TRUE(ask_until([&] { return device(1)["state"] == "ready"; }, rows)) << server_log();
  EXPECT_TRUE(has_logged("a model cannot be loaded: standin:1 is out of memory")) << server_log();
  EXPECT_EQ(device(1)["restart_count"], 0);
}

TEST_F(StandinServerTest, AnOperatorMayStartADeviceThatWaitsForMemory) {
  const auto state = (runs_.folder() / "state").string();
  start_server(R"({"standin:1": {"full_at_allocation": 1, "full_count": 1e9, "faulty_starts": 1,
                   "state_file": ")" +
               state + R"("}})");
  const auto rows = expected();
  ASSERT_TRUE(ask_until([&] { return device(1)["state"] == "restarting"; }, rows)) << server_log();
  const std::string words = "a model cannot be loaded: standin:1 is out of memory";
  EXPECT_TRUE(device(1)["reason"].get<std::string>().starts_with(words)) << device(1)["reason"];
  EXPECT_EQ(device(1)["models"][0]["state"], "failed");
  EXPECT_EQ(device(1)["models"][0]["failure_kind"], "ResourceExhausted");
  EXPECT_EQ(device(1)["models"][0]["waits_for_memory"], true);
  EXPECT_EQ(device(0)["state"], "ready");
  restart("standin:1");
  EXPECT_TRUE(ask_until([&] { return device(1)["state"] == "ready"; }, rows)) << server_log();
}

TEST_F(StandinServerTest, AFailedDeviceIsNamedAndTheAnswersStay) {
  const auto state = (runs_.folder() / "state").string();
  start_server(R"({"standin:1": {"in_lanes": 1, "fail_at_kernel": 200, "error": "ecc",
                   "faulty_starts": 1, "state_file": ")" +
               state + R"("}})");
  const auto rows = expected();
  const std::string words = "standin:1 error: uncorrectable ECC error encountered";
  EXPECT_TRUE(ask_until([&] { return has_logged(words); }, rows)) << server_log();
  EXPECT_EQ(ask(), rows);
}

TEST_F(StandinServerTest, ADeviceWhoseDriverReportsDamageRestsUntilAnOperatorStartsIt) {
  reports_ = std::make_unique<StandinReports>(runs_.folder());
  const auto state = (runs_.folder() / "state").string();
  start_server(R"({"standin:1": {"in_lanes": 1, "fail_at_kernel": 200, "error": "ecc",
                   "faulty_starts": 1, "state_file": ")" +
               state + R"("}})");
  const auto rows = expected();
  const std::string words = "standin:1 quarantined: the driver reported XID 48 (1 times)";
  ASSERT_TRUE(ask_until([&] { return has_logged(words); }, rows)) << server_log();
  for (int round = 0; round < 10; ++round) EXPECT_EQ(ask(), rows);
  EXPECT_EQ(device(1)["state"], "quarantined");
  EXPECT_EQ(device(1)["reason"], "the driver reported XID 48 (1 times)");
  EXPECT_TRUE(device(1)["pid"].is_null());
  restart("standin:1");
  EXPECT_TRUE(ask_until([&] { return device(1)["state"] == "ready"; }, rows)) << server_log();
}

}  // namespace
}  // namespace muster
