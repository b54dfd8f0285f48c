// `muster serve` with a real decoder on the real engine: what `muster generate` says, over HTTP,
// and also when the worker is killed in the middle. The model is what ./quickstart and ./accept
// fetch; where it is not, there is nothing to compare.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "integration/program.h"
#include "net/http_client.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

const std::string kModel =
    std::string(MUSTER_SOURCE_DIR) + "/.deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";
constexpr const char* kPrompt = "Why is the sky blue?";

class GenerateServerTest : public testing::Test {
 protected:
  GenerateServerTest()
      : folder_(fs::path(testing::TempDir()) / ("generate_server." + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~GenerateServerTest() override {
    if (server_) {
      ::kill(server_->pid(), SIGKILL);
      server_->wait();
    }
    fs::remove_all(folder_);
  }

  static std::string generated() {
    const auto command = std::string(MUSTER_BINARY_DIR) + "/bin/muster generate " + kModel +
                         " -p '" + kPrompt + "' --max-tokens 48 --devices 1xcpu --quiet";
    std::string text;
    FILE* const pipe = ::popen(command.c_str(), "r");
    std::array<char, 4096> piece{};
    for (std::size_t size = 0; (size = ::fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
      text.append(piece.data(), size);
    }
    EXPECT_EQ(::pclose(pipe), 0) << command;
    return text;
  }

  void start_server() {
    const auto log = (folder_ / "serve.log").string();
    server_ = std::make_unique<Program>(
        std::vector<std::string>{std::string(MUSTER_BINARY_DIR) + "/bin/muster", "serve",
                                 "chat=" + kModel, "--listen", "127.0.0.1:0", "--devices", "1xcpu",
                                 "--cache-dir", (folder_ / "cache").string()},
        log);
    const std::string mark = "http://127.0.0.1:";
    for (;;) {
      const auto text = read_file(log);
      const auto at = text ? text->find(mark) : std::string::npos;
      if (at != std::string::npos && text->find('\n', at) != std::string::npos) {
        const auto url = mark + std::to_string(std::stoi(text->substr(at + mark.size())));
        client_ = *HttpClient::open(url, {});
        return;
      }
      ASSERT_FALSE(ends_within(server_->pidfd(), 10)) << (text ? *text : "");
    }
  }

  std::string chat() {
    const nlohmann::json turn{{"role", "user"}, {"content", kPrompt}};
    const nlohmann::json body{{"model", "chat"},
                              {"messages", nlohmann::json::array({turn})},
                              {"temperature", 0},
                              {"max_tokens", 48}};
    const auto answer = client_->call("POST", "/v1/chat/completions",
                                      {{"Content-Type", "application/json"}}, body.dump());
    EXPECT_TRUE(answer && answer->status == 200) << (answer ? answer->body : "");
    if (!answer || answer->status != 200) return {};
    return nlohmann::json::parse(answer->body)["choices"][0]["message"]["content"];
  }

  const fs::path folder_;
  std::unique_ptr<Program> server_;
  std::unique_ptr<HttpClient> client_;
};

TEST_F(GenerateServerTest, SaysWhatGenerateSaysAlsoWhenItsWorkerIsKilled) {
  if (!fs::exists(kModel)) GTEST_SKIP() << "no " << kModel;
  auto expected = generated();
  while (expected.ends_with('\n')) expected.pop_back();
  ASSERT_FALSE(expected.empty());
  start_server();
  EXPECT_EQ(chat(), expected);
  // Killed at some moment of the next reply, wherever that is.
  std::jthread killer([&] {
    for (const auto child : server_->children()) {
      std::ifstream name("/proc/" + std::to_string(child) + "/comm");
      std::string word;
      if (name >> word && word == "muster-worker") ::kill(child, SIGKILL);
    }
  });
  EXPECT_EQ(chat(), expected);
}

}  // namespace
}  // namespace muster
