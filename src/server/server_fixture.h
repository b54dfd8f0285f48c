#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "net/http_client.h"
#include "server/server.h"

namespace muster {

/// A whole server on two workers that answer [sum of ids, token count, …] (stand_ins/zero_worker).
/// Its loop has a thread; the test is the client.
class ServerFixture : public ::testing::Test {
 protected:
  using Json = nlohmann::json;

  ServerFixture();

  ~ServerFixture() override {
    if (thread_.joinable()) {
      loop_.stop();
      thread_.join();
    }
    server_.reset();
    generation_.reset();
    service_.reset();
    ::unsetenv("ZERO_WORKER");
    std::filesystem::remove_all(folder_);
  }

  /// Writes a keys file and makes it the server's; only its owner can read it, as the server wants.
  void use_keys(std::string_view yaml, const char* name = "keys.yaml") {
    options_.keys_file = folder_ / name;
    std::ofstream(options_.keys_file) << yaml;
    std::filesystem::permissions(options_.keys_file, std::filesystem::perms::owner_read);
  }

  /// Starts it and waits until it is ready.
  void start() {
    start_unready();
    while (!HasFatalFailure() && get("/readyz").status != 200) std::this_thread::yield();
  }

  /// Starts it alone.
  void start_unready() {
    start_service();
    ASSERT_TRUE(service_);
    start_generation();
    ASSERT_TRUE(generation_);
    auto server = Server::start(options_, {.service = *service_, .generation = *generation_}, loop_,
                                hooks_, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    thread_ = std::jthread([this] { loop_.run(); });
    const std::string scheme = options_.http.tls ? "https" : "http";
    client_ = *HttpClient::open(scheme + "://127.0.0.1:" + std::to_string(server_->port()),
                                {.tls = client_tls_});
  }

  void start_service() {
    auto service = InferenceService::start(
        options_, loop_,
        {.on_notice = [](const std::string&, const std::optional<std::string>&) {},
         .on_fatal = [](const Error& error) { FAIL() << error.message; }},
        clock_);
    ASSERT_TRUE(service) << service.error().message;
    service_ = *std::move(service);
  }

  void start_generation() {
    auto options = options_;
    if (!decoder_program_.empty()) options.worker_program = decoder_program_;
    auto generation = GenerationService::start(
        options, service_->roster(), loop_,
        {.on_notice = [](const std::string&, const std::optional<std::string>&) {},
         .on_fatal = [](const Error& error) { FAIL() << error.message; }},
        clock_);
    ASSERT_TRUE(generation) << generation.error().message;
    generation_ = *std::move(generation);
  }

  /// The server is ready with its first device; some tests want both.
  void start_whole() {
    start();
    while (json(get("/multigpu/health"))["status"] != "healthy") std::this_thread::yield();
  }

  HttpAnswer call(std::string_view method, std::string_view target, const HttpHeaders& headers,
                  std::string_view body = {}) {
    auto answer = client_->call(method, target, headers, body);
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().message);
    return answer ? *answer : HttpAnswer{};
  }
  HttpAnswer get(std::string_view target) { return call("GET", target, {}); }
  HttpAnswer post(std::string_view target, std::string_view body, HttpHeaders headers = {}) {
    headers.emplace_back("Content-Type", "application/json");
    return call("POST", target, headers, body);
  }
  static Json json(const HttpAnswer& answer) { return Json::parse(answer.body); }
  static std::string message(const HttpAnswer& answer) {
    return json(answer)["error"]["message"].get<std::string>();
  }

  const std::filesystem::path folder_;
  const SteadyClock clock_;
  EventLoop loop_;
  ServeOptions options_;
  ServerHooks hooks_;
  TlsClientOptions client_tls_;  // when the server speaks TLS
  std::map<std::string, std::string> changes_;
  std::filesystem::path decoder_program_;  // of the workers that generate; empty: as the others
  std::unique_ptr<InferenceService> service_;
  std::unique_ptr<GenerationService> generation_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<HttpClient> client_;
  std::jthread thread_;
};

}  // namespace muster
