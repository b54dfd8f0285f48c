// `muster serve` with a decoder on the real engine: what `muster generate` says, over HTTP, whole
// and streamed, and also when the worker is killed in the middle of a reply.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "integration/program.h"
#include "integration/tiny_decoder.h"
#include "net/http_client.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kPrompt = "Why is the sky blue?";
constexpr int kReplyTokens = 900;  // long enough to be killed in its middle

class GenerateServerTest : public testing::Test {
 protected:
  GenerateServerTest()
      : folder_(fs::path(testing::TempDir()) / ("generate_server." + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    EXPECT_TRUE(write_tiny_decoder(model_));
  }
  ~GenerateServerTest() override {
    if (server_) {
      ::kill(server_->pid(), SIGKILL);
      server_->wait();
    }
    fs::remove_all(folder_);
  }

  std::string generated() const {
    return told("generate " + model_ + " -p '" + kPrompt + "' --max-tokens " +
                std::to_string(kReplyTokens) + " --devices 1x" + devices_ + " --precision " +
                precision_ + " --kv-cache-dtype " + cache_ + " --quiet");
  }

  /// Whether what is planned with such a cache can be carried out, and why.
  Json runs_here(const std::string& machine, const std::string& cache) const {
    const auto plan = told("plan " + model_ + " --machine " + machine +
                           " --context 64 --kv-dtype " + cache + " --json");
    return Json::parse(plan).at("runs_here");
  }

  /// What muster writes on standard output, without the end of its last line.
  static std::string told(const std::string& words) {
    const auto command = std::string(MUSTER_BINARY_DIR) + "/bin/muster " + words;
    std::string text;
    FILE* const pipe = ::popen(command.c_str(), "r");
    std::array<char, 4096> piece{};
    for (std::size_t size = 0; (size = ::fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
      text.append(piece.data(), size);
    }
    EXPECT_EQ(::pclose(pipe), 0) << command;
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }

  void start_server(const std::vector<std::string>& more = {}) {
    const auto log = (folder_ / "serve.log").string();
    std::vector<std::string> words{std::string(MUSTER_BINARY_DIR) + "/bin/muster",
                                   "serve",
                                   "chat=" + model_,
                                   "--listen",
                                   "127.0.0.1:0",
                                   "--devices",
                                   count_ + "x" + devices_,
                                   "--cache-dir",
                                   (folder_ / "cache").string()};
    words.insert(words.end(), {"--precision", precision_});
    if (cache_ != "auto") words.insert(words.end(), {"--kv-cache-dtype", cache_});
    words.insert(words.end(), more.begin(), more.end());
    server_ = std::make_unique<Program>(words, log);
    const std::string mark = "http://127.0.0.1:";
    for (;;) {
      const auto text = read_file(log);
      const auto at = text ? text->find(mark) : std::string::npos;
      if (at != std::string::npos && text->find('\n', at) != std::string::npos) {
        port_ = static_cast<std::uint16_t>(std::stoi(text->substr(at + mark.size())));
        return wait_until_ready();
      }
      ASSERT_FALSE(ends_within(server_->pidfd(), 10)) << (text ? *text : "");
    }
  }

  // It takes requests once its decoder is loaded.
  void wait_until_ready() const {
    const auto client = *HttpClient::open("http://127.0.0.1:" + std::to_string(port_), {});
    for (;;) {
      const auto answer = client->call("GET", "/readyz");
      if (answer && answer->status == 200) return;
      ASSERT_FALSE(ends_within(server_->pidfd(), 10)) << (answer ? answer->body : "");
    }
  }

  static std::string chat_body(bool streams) {
    const Json turn{{"role", "user"}, {"content", kPrompt}};
    return Json{{"model", "chat"},
                {"messages", Json::array({turn})},
                {"temperature", 0},
                {"stream", streams},
                {"max_tokens", kReplyTokens}}
        .dump();
  }

  Json answer_of(const std::string& path, const std::string& body) const {
    const auto client = *HttpClient::open("http://127.0.0.1:" + std::to_string(port_), {});
    const auto answer = client->call("POST", path, {{"Content-Type", "application/json"}}, body);
    EXPECT_TRUE(answer && answer->status == 200) << (answer ? answer->body : "");
    return answer ? Json::parse(answer->body) : Json();
  }

  Json answered() const { return answer_of("/v1/chat/completions", chat_body(false)); }

  /// Of `prompt`: text and log-probabilities.
  Json continued(const std::string& prompt, int token_limit, bool is_echo) const {
    const Json body{{"model", "chat"},           {"prompt", prompt}, {"temperature", 0},
                    {"max_tokens", token_limit}, {"logprobs", 3},    {"echo", is_echo}};
    return answer_of("/v1/completions", body.dump()).at("choices").at(0);
  }

  static std::string content_of(const Json& answer) {
    return answer.at("choices").at(0).at("message").at("content");
  }

  std::string chat() const { return content_of(answered()); }

  void stop_server() {
    ::kill(server_->pid(), SIGTERM);
    server_->wait();
    server_.reset();
    fs::remove(folder_ / "serve.log");
  }

  /// The reply of a stream; `on_first_text` is called when a part of it has come. HTTP/1.0, for
  /// which the stream goes without chunks to the end of the connection.
  std::string streamed_chat(const std::function<void()>& on_first_text) const {
    const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const auto body = chat_body(true);
    const auto request =
        "POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    EXPECT_EQ(::send(fd.get(), request.data(), request.size(), 0),
              static_cast<ssize_t>(request.size()));
    std::string came;
    std::string reply;
    std::size_t read_to = 0;
    bool has_ended = false;
    std::array<char, 4096> piece{};
    for (ssize_t size = 0; (size = ::recv(fd.get(), piece.data(), piece.size(), 0)) > 0;) {
      came.append(piece.data(), static_cast<std::size_t>(size));
      for (std::size_t end = 0; (end = came.find('\n', read_to)) != std::string::npos;) {
        const auto line = std::string_view(came).substr(read_to, end - read_to);
        read_to = end + 1;
        if (line == "data: [DONE]") has_ended = true;
        if (has_ended || !line.starts_with("data: ")) continue;
        const auto text = text_of(Json::parse(line.substr(6)));
        if (reply.empty() && !text.empty()) on_first_text();
        reply += text;
      }
    }
    EXPECT_TRUE(has_ended) << came.substr(0, 2000);
    return reply;
  }

  static std::string text_of(const Json& event) {
    EXPECT_FALSE(event.contains("error")) << event;
    if (!event.contains("choices") || event["choices"].empty()) return {};
    const auto& delta = event["choices"][0]["delta"];
    return delta.contains("content") ? delta["content"].get<std::string>() : std::string();
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

  std::string devices_ = "cpu";
  std::string count_ = "1";  // of them
  std::string precision_ = "own";
  std::string cache_ = "auto";  // in what keys and values are kept
  const fs::path folder_;
  const std::string model_ = (folder_ / "tiny.gguf").string();
  std::unique_ptr<Program> server_;
  std::uint16_t port_ = 0;
};

TEST_F(GenerateServerTest, SaysWhatGenerateSaysAlsoWhenItsWorkerIsKilled) {
  const auto expected = generated();
  ASSERT_GE(expected.size(), std::size_t{kReplyTokens});  // a byte a token, and more for "th"
  start_server();
  EXPECT_EQ(chat(), expected);
  std::vector<pid_t> killed;
  EXPECT_EQ(streamed_chat([&] {
              killed = workers();
              for (const auto worker : killed) ::kill(worker, SIGKILL);
            }),
            expected);
  EXPECT_FALSE(killed.empty());
  for (const auto worker : workers())
    EXPECT_EQ(std::count(killed.begin(), killed.end(), worker), 0);
  EXPECT_EQ(chat(), expected);
}

// A file of float32, whose weights are put into blocks by both.
TEST_F(GenerateServerTest, SaysInInt8WhatGenerateSaysInIt) {
  precision_ = "int8";
  const auto expected = generated();
  EXPECT_FALSE(expected.empty());
  start_server();
  EXPECT_EQ(chat(), expected);
}

// Also behind what was kept, and when the worker is killed in the middle of a reply.
TEST_F(GenerateServerTest, SaysWithACacheIn8BitsWhatGenerateSaysWithIt) {
  cache_ = "int8";
  const auto expected = generated();
  ASSERT_FALSE(expected.empty());
  start_server();
  EXPECT_EQ(chat(), expected);
  EXPECT_EQ(chat(), expected);
  std::vector<pid_t> killed;
  EXPECT_EQ(streamed_chat([&] {
              killed = workers();
              for (const auto worker : killed) ::kill(worker, SIGKILL);
            }),
            expected);
  EXPECT_FALSE(killed.empty());
}

/// The same on two devices of the stand-in for a GPU.
class GenerateOnStandinTest : public GenerateServerTest {
 protected:
  GenerateOnStandinTest() {
    devices_ = "standin";
    count_ = "2";
    precision_ = "fp32";
  }
};

TEST_F(GenerateOnStandinTest, SaysWhatGenerateSaysAlsoWhenItsWorkersAreKilled) {
  const auto expected = generated();
  ASSERT_GE(expected.size(), std::size_t{kReplyTokens});
  start_server();
  EXPECT_EQ(chat(), expected);
  EXPECT_EQ(chat(), expected) << "behind what was kept";
  std::vector<pid_t> killed;
  EXPECT_EQ(streamed_chat([&] {
              killed = workers();
              for (const auto worker : killed) ::kill(worker, SIGKILL);
            }),
            expected);
  EXPECT_EQ(killed.size(), 2U);
}

// A file's own bits are multiplied on CPUs only, so bf16 is what is taken.
TEST_F(GenerateOnStandinTest, WithoutAPrecisionItIsBf16) {
  precision_ = "bf16";
  const auto expected = generated();
  precision_ = "auto";
  start_server();
  EXPECT_EQ(chat(), expected);
}

TEST_F(GenerateOnStandinTest, APlanSaysThatItRunsThere) {
  const auto runs = runs_here("2xstandin", "auto");
  EXPECT_EQ(runs.at("verdict"), true) << runs;
  EXPECT_EQ(runs_here("2xstandin", "int8").at("verdict"), false) << "of CPUs alone";
}

// As a plan counts more kinds of cache than there are here.
TEST_F(GenerateServerTest, APlanSaysWhichCachesRunHere) {
  const auto plain = runs_here("2xcpu", "auto");
  EXPECT_EQ(plain.at("verdict"), true) << plain;
  EXPECT_NE(plain.dump().find("`muster serve` puts"), std::string::npos) << plain;
  const auto narrow = runs_here("2xcpu", "int8");
  EXPECT_EQ(narrow.at("verdict"), true) << narrow;
  EXPECT_NE(narrow.dump().find("`muster serve --kv-cache-dtype int8` puts"), std::string::npos)
      << narrow;
  EXPECT_EQ(runs_here("2xcpu", "q8_0").at("verdict"), false);
}

// The second time the prompt's whole blocks of 16 tokens are there, but for its last token.
TEST_F(GenerateServerTest, SaysTheSameBehindWhatItHasKept) {
  start_server();
  const auto first = answered();
  const auto again = answered();
  const auto cached = [](const Json& answer) {
    return answer.at("usage").at("prompt_tokens_details").at("cached_tokens").get<std::uint32_t>();
  };
  const auto prompt = first.at("usage").at("prompt_tokens").get<std::uint32_t>();
  ASSERT_GT(prompt, 16U);
  EXPECT_EQ(cached(first), 0U);
  EXPECT_EQ(cached(again), (prompt - 1) / 16 * 16);
  EXPECT_EQ(content_of(again), content_of(first));
  stop_server();
  start_server({"--no-prefix-cache"});
  EXPECT_EQ(content_of(answered()), content_of(first));
  EXPECT_EQ(cached(answered()), 0U);
}

// How likely each token was when it was chosen, to the last bit, is how likely it is found to be in
// a text that is given. A token is a byte, but for "th".
TEST_F(GenerateServerTest, ATextIsScoredAsItsTokensWereChosen) {
  start_server();
  const auto reply = continued(kPrompt, 100, false);
  auto text = reply.at("text").get<std::string>();
  text.resize(std::min(text.find("th"), text.size()));
  ASSERT_GT(text.size(), 40U) << reply;
  const auto scored = continued(kPrompt + text, 0, true);
  EXPECT_EQ(scored.at("text"), kPrompt + text);
  EXPECT_EQ(scored.at("finish_reason"), "length");
  const auto& told = scored.at("logprobs");
  EXPECT_EQ(told.at("token_logprobs").at(0), Json(nullptr));
  ASSERT_GT(told.at("tokens").size(), text.size());
  const auto prompt_size = told.at("tokens").size() - text.size();
  for (const char* list : {"tokens", "token_logprobs", "top_logprobs"}) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      EXPECT_EQ(told.at(list).at(prompt_size + i), reply.at("logprobs").at(list).at(i))
          << list << " " << i;
    }
  }
}

}  // namespace
}  // namespace muster
