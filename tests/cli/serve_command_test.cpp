// muster serve as an operator meets it: its log, its settings over HTTP and SIGHUP.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "net/connect_fixture.h"
#include "net/http_client.h"
#include "run_muster.h"

namespace muster {
namespace {

using Words = std::vector<std::string>;

class ServeCommand : public testing::Test {
 protected:
  ~ServeCommand() override {
    if (pid_ > 0) end();
  }

  Words words_of(const Words& more) const {
    Words words{"serve", tiny_model(), "--listen", "127.0.0.1:0", "--log-dir", "logs"};
    for (const auto* word : {"--cache-dir", "cache", "--torch-root", "torch", "--devices", "2xcpu",
                             "--worker-program", MUSTER_BINARY_DIR "/bin/zero_worker"}) {
      words.emplace_back(word);
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  void serve(const Words& more = {}) {
    pid_ = muster_.start(words_of(more));
    wait_for_line("listening on ");
    const auto text = log();
    const auto at = text.find("http://", text.find("listening on "));
    const auto url = text.substr(at, text.find('\n', at) - at);
    said_ = "muster: the log is in logs/muster.log\nmuster: listening on " + url + "\n";
    client_ = *HttpClient::open(url);
  }

  int end() {
    ::kill(pid_, SIGTERM);
    const auto finished = muster_.wait(std::exchange(pid_, 0));
    EXPECT_EQ(finished.err, said_);
    return finished.exit_code;
  }

  std::string log() const { return muster_.read("logs/muster.log"); }

  void wait_for_line(const std::string& part) const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (log().find(part) == std::string::npos) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << "no line with " << part << log();
      std::this_thread::yield();
    }
  }

  HttpAnswer post(const std::string& path, const std::string& body, HttpHeaders headers = {}) {
    headers.emplace_back("Content-Type", "application/json");
    const auto answer = client_->call("POST", path, headers, body);
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().message);
    return answer ? *answer : HttpAnswer{};
  }

  void wait_until_ready() const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const auto is_ready = [this] {
      const auto answer = client_->call("GET", "/readyz");
      return answer && answer->status == 200;
    };
    while (!is_ready()) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << log();
      std::this_thread::yield();
    }
  }

  // Of the second device.
  void wait_for_restarts(std::uint64_t count) const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const auto restarts = [this]() -> std::uint64_t {
      const auto answer = client_->call("GET", "/v1/devices");
      if (!answer) return 0;
      return nlohmann::json::parse(answer->body)["devices"][1]["restart_count"];
    };
    while (restarts() < count) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << log();
      std::this_thread::yield();
    }
  }

  std::string port() const {
    return said_.substr(said_.rfind(':') + 1, said_.size() - said_.rfind(':') - 2);
  }

  std::string new_key(const Words& more) {
    Words words{"keys", "new", "admin", "--file", "keys.yaml"};
    words.insert(words.end(), more.begin(), more.end());
    auto key = muster_.run(words).out;
    key.pop_back();
    return key;
  }

  Muster muster_{"serve_command"};
  std::unique_ptr<HttpClient> client_;
  pid_t pid_ = 0;
  std::string said_;  // on standard error, beside the log
};

TEST_F(ServeCommand, TellsAtTheStartWhatItIsAndARequestToTry) {
  serve();
  wait_for_line("to try it: curl ");
  const auto text = log();
  for (const auto* part :
       {"muster ", "model tiny: vectors of ", "devices: cpu:0", "cache: 256 MiB",
        "no keys: anyone who reaches 127.0.0.1:", R"(-d '{"model":"tiny","input":"a text"}')"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
  EXPECT_TRUE(muster_.exists("logs/worker-cpu-0.log")) << "before the worker has said anything";
  EXPECT_TRUE(muster_.exists("logs/worker-cpu-1.log"));
  wait_for_line("device cpu:1: ready");
  EXPECT_EQ(end(), 0);
}

TEST_F(ServeCommand, AnEndThatIsAskedForWhileItStartsIsNoError) {
  muster_.set("ZERO_WORKER", "hang_probe");  // the measurement never ends
  for (const int number : {SIGTERM, SIGINT}) {
    muster_.write("logs/muster.log", "");
    const auto pid = muster_.start(words_of({}));
    wait_for_line("measuring which precision");
    ::kill(pid, number);
    const auto finished = muster_.wait(pid);
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_EQ(finished.err, "muster: the log is in logs/muster.log\n");
    EXPECT_NE(log().find("ending while it is starting"), std::string::npos) << log();
  }
}

// It would listen for ever, and whoever starts servers would take it for one that comes up.
TEST_F(ServeCommand, EndsWhereNoDeviceCanLoadWhatItIsToServe) {
  muster_.set("ZERO_WORKER", "fail_load");
  const auto finished = muster_.wait(muster_.start(words_of({})));
  EXPECT_EQ(finished.exit_code, 7) << log();  // Corrupt, says the worker
  const std::string sentence =
      "no device can load what is to be served: tiny: cpu:0: told not to load";
  EXPECT_TRUE(finished.err.ends_with("\nmuster: " + sentence + "\n")) << finished.err;
  EXPECT_NE(log().find(sentence), std::string::npos) << log();
}

// The worker of the other device is started again and again, and may come.
TEST_F(ServeCommand, GoesOnWhileADeviceIsTriedAgain) {
  muster_.set("ZERO_WORKER", "fail_load exit_on=1");
  serve();
  wait_for_line("device cpu:0: given up");
  wait_for_restarts(6);  // 3.1 s of waiting between them: after two looks, one each second
  const auto answer = client_->call("GET", "/readyz");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(end(), 0);
}

// Appends what comes next; false: the server has closed.
bool hear_more(const UniqueFd& socket, std::string& text) {
  std::array<char, 65536> piece{};
  const auto size = ::recv(socket.get(), piece.data(), piece.size(), 0);
  if (size > 0) text.append(piece.data(), static_cast<std::size_t>(size));
  return size > 0;
}

// All is computed, and far more of it is left to send than the systems between can take.
TEST_F(ServeCommand, AnEndThatIsAskedForWaitsUntilAReaderHasAllOfItsAnswer) {
  muster_.set("ZERO_WORKER", "dim=32");
  serve({"--max-client-batch-size", "8192"});
  wait_until_ready();
  std::string words;
  for (int i = 0; i < 32; ++i) words += "a ";
  const nlohmann::json texts{{"inputs", std::vector<std::string>(8192, words)}};
  const auto body = texts.dump();
  const auto request =
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  const auto reader = connect_to(static_cast<std::uint16_t>(std::stoi(port())));
  ASSERT_EQ(::send(reader.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string text;
  while (text.find("\r\n\r\n") == std::string::npos) ASSERT_TRUE(hear_more(reader, text)) << text;
  ::kill(pid_, SIGTERM);
  wait_for_line("ending: no new work");
  while (hear_more(reader, text)) continue;
  ASSERT_TRUE(text.starts_with("HTTP/1.1 200 ")) << text.substr(0, 1000);
  const std::string length = "Content-Length: ";
  const auto at = text.find(length);
  ASSERT_NE(at, std::string::npos) << text.substr(0, 1000);
  const auto announced = std::stoul(text.substr(at + length.size(), 20));
  EXPECT_GT(announced, 10'000'000U) << "about 60 bytes each of 32 tokens of 8,192 texts";
  EXPECT_EQ(text.size() - text.find("\r\n\r\n") - 4, announced);
  EXPECT_EQ(muster_.wait(std::exchange(pid_, 0)).exit_code, 0);
}

// A file that may not become larger is a disk that is full.
TEST_F(ServeCommand, TheLogTellsWhenTheCachesFileIsBehindAndWhenItIsNot) {
  muster_.set("ZERO_WORKER", "dim=32");
  serve({"--cache-file", "vectors"});
  wait_until_ready();
  rlimit before{};
  ASSERT_EQ(::prlimit(pid_, RLIMIT_FSIZE, nullptr, &before), 0);
  constexpr rlim_t kSmall = 64 << 10;  // more than the log takes, and less than the vectors
  const rlimit small{.rlim_cur = kSmall, .rlim_max = before.rlim_max};
  ASSERT_EQ(::prlimit(pid_, RLIMIT_FSIZE, &small, nullptr), 0);
  nlohmann::json texts = nlohmann::json::array();  // 2,048 of them, no two the same
  for (int i = 5; i < 69; ++i) {
    for (int j = 5; j < 37; ++j) texts.push_back(std::vector<int>{2, i, j, 3});
  }
  const nlohmann::json body{{"model", "tiny"}, {"input", texts}};
  const auto answer = post("/v1/embeddings", body.dump());
  EXPECT_EQ(answer.status, 200) << answer.body.substr(0, 1000);
  wait_for_line("error   the cache's file is behind, and vectors are kept in memory alone");
  EXPECT_EQ(log().find("the cache's file has all vectors again"), std::string::npos);
  ASSERT_EQ(::prlimit(pid_, RLIMIT_FSIZE, &before, nullptr), 0);
  wait_for_line("the cache's file has all vectors again");
  EXPECT_EQ(end(), 0);
}

TEST_F(ServeCommand, APortThatIsTakenIsNamedWithWhatToDo) {
  serve();
  Muster other{"serve_command_other"};
  const auto refused =
      other.run({"serve", tiny_model(), "--listen", "127.0.0.1:" + port(), "--log-level", "off",
                 "--cache-dir", "cache", "--torch-root", "torch", "--devices", "1xcpu",
                 "--worker-program", MUSTER_BINARY_DIR "/bin/zero_worker"});
  EXPECT_EQ(refused.exit_code, 6);
  EXPECT_EQ(refused.err, "muster: 127.0.0.1:" + port() +
                             ": another program listens there: end it, or name another port with "
                             "--listen\n");
  EXPECT_EQ(end(), 0);
}

TEST_F(ServeCommand, SettingsThatNameAPlaceAreNotSetOverHttp) {
  muster_.write("other.yaml", "keys: []\n");
  serve();
  const auto path = (muster_.folder() / "other.yaml").string();
  for (const std::string name : {"keys_file", "tls_cert", "tls_key", "audit_log", "cache_file"}) {
    const auto there = post("/multigpu/config", nlohmann::json{{name, path}}.dump());
    const auto gone = post("/multigpu/config", nlohmann::json{{name, "/no/such"}}.dump());
    EXPECT_EQ(there.status, 400) << name;
    EXPECT_EQ(there.body, gone.body) << name;
    EXPECT_NE(there.body.find(name + " cannot be set over HTTP"), std::string::npos) << there.body;
  }
  const auto forwarded =
      post("/multigpu/config", R"({"queue_budget":"1s"})", {{"X-Forwarded-For", "203.0.113.7"}});
  EXPECT_EQ(forwarded.status, 403);
  EXPECT_EQ(
      post("/multigpu/config", R"({"queue_budget":"500ms"})", {{"X-Request-Id", "r7"}}).status,
      200);
  wait_for_line("settings changed by 127.0.0.1:");
  EXPECT_NE(log().find(": queue_budget from 2s to 500ms [request r7]"), std::string::npos) << log();
  EXPECT_EQ(end(), 0);
}

TEST_F(ServeCommand, ADocumentsSettingsOverHttpAreNamedWithTheNearest) {
  serve();
  const auto answer = post("/multigpu/config", R"({"use_multi_gpu": true, "gpu_ids": [0, 1, 2, 3],
      "batch_size_per_gpu": 8, "mixed_precision": true})");
  EXPECT_EQ(answer.status, 400);
  for (const auto* part : {"unknown settings", "gpu_ids (did you mean devices?)",
                           "batch_size_per_gpu (did you mean batch_tokens?)"}) {
    EXPECT_NE(answer.body.find(part), std::string::npos) << part << answer.body;
  }
  const auto list = post("/multigpu/config", R"({"task_types": {"query": "cpu:0",
      "document": ["cpu:0", "cpu:1"]}})");
  EXPECT_EQ(list.status, 200) << list.body;
  wait_for_line("task_types from not set to query=cpu:0;document=cpu:0,cpu:1");
  EXPECT_EQ(end(), 0);
}

TEST_F(ServeCommand, SighupThatWouldTakeTheKeysAwayIsRefused) {
  const auto key = new_key({"--scope", "embed", "--scope", "admin"});
  muster_.write("muster.yaml", "keys_file: keys.yaml\n");
  serve();
  wait_for_line("keys: 1 in keys.yaml");
  muster_.write("muster.yaml", "queue_budget: 1s\n");
  ::kill(pid_, SIGHUP);
  wait_for_line("SIGHUP changed nothing: keys_file is no longer set");
  EXPECT_EQ(client_->call("GET", "/v1/models", {})->status, 401);
  EXPECT_EQ(client_->call("GET", "/v1/models", {{"X-API-Key", key}})->status, 200);
  EXPECT_EQ(end(), 0);
}

TEST_F(ServeCommand, AtDebugEachRequestHasALine) {
  muster_.set("LOG_LEVEL", "DEBUG");
  serve();
  EXPECT_EQ(client_->call("GET", "/livez", {{"X-Request-Id", "r9"}})->status, 200);
  wait_for_line("debug   GET /livez 200 in ");
  const auto text = log();
  const auto line = text.substr(text.find("GET /livez 200 in "));
  EXPECT_NE(line.substr(0, line.find('\n')).find("[request r9]"), std::string::npos) << line;
  EXPECT_EQ(end(), 0);
}

TEST_F(ServeCommand, APrivateKeyThatOthersCanReadIsRefused) {
  muster_.write("cert.pem", "x");
  muster_.write("key.pem", "x");
  ::chmod((muster_.folder() / "key.pem").c_str(), 0644);
  const auto finished = muster_.run({"serve", tiny_model(), "--tls-cert", "cert.pem", "--tls-key",
                                     "key.pem", "--torch-root", "torch", "--devices", "1xcpu",
                                     "--worker-program", MUSTER_BINARY_DIR "/bin/zero_worker"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(
      finished.err.find("--tls-key: others can read this private key (mode 0644): run `chmod"),
      std::string::npos)
      << finished.err;
}

}  // namespace
}  // namespace muster
