#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/file.h"
#include "serving/inference_service.h"
#include "tokenizer/tokenizer.h"

namespace muster {

using Answer = std::variant<EmbedAnswer, CallError>;

/// The whole service on real worker processes (stand_ins/zero_worker in echo mode: a row is [sum of
/// ids, token count, 0, …], so every row names its text).
class InferenceServiceTest : public testing::Test {
 protected:
  InferenceServiceTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("inference." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    ::setenv("ZERO_WORKER", "echo dim=32", 1);
    options_.models = {{.name = "tiny", .model = tiny()}};
    options_.devices.resize(2);
    options_.devices[1].index = 1;
    options_.worker_program = zero_worker();
    options_.cache_folder = folder_ / "cache";
    options_.canary_period = {};
  }
  ~InferenceServiceTest() override {
    service_.reset();
    ::unsetenv("ZERO_WORKER");
    std::filesystem::remove_all(folder_);
  }

  static std::string zero_worker();  // the program
  static std::string tiny();         // the folder of a model

  void start() {
    auto service = InferenceService::start(
        options_, loop_,
        {.on_notice = [this](const std::string& text,
                             std::optional<std::string>) { notices_ += text + "\n"; },
         .on_fatal = [this](const Error& error) { fatal_ = error; }},
        clock_);
    ASSERT_TRUE(service) << service.error().message;
    service_ = *std::move(service);
  }

  /// Runs the loop until the callback has put something in.
  template <typename T>
  T wait_for(const std::function<void(std::function<void(T)>)>& ask) {
    std::optional<T> got;
    loop_.post([&] {
      ask([&](T value) {
        got = std::move(value);
        loop_.stop();
      });
    });
    loop_.run();
    EXPECT_TRUE(got);
    return *std::move(got);
  }

  /// Runs the loop until it is so, or for half a minute.
  void run_until(const std::function<bool()>& is_so) {
    const auto end = clock_.now() + std::chrono::seconds(30);
    const std::function<void()> look = [&] {
      if (is_so() || clock_.now() > end) return loop_.stop();
      loop_.post(look);
    };
    loop_.post(look);
    loop_.run();
    EXPECT_TRUE(is_so());
  }

  /// Whether a process that this one has started is stopped.
  static bool has_stopped_child() {
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream list(thread.path() / "children");
      for (int pid = 0; list >> pid;) {
        const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
        if (!stat) continue;  // it has ended meanwhile
        const auto name_end = stat->rfind(')');
        if (name_end != std::string::npos && stat->substr(name_end, 3) == ") T") return true;
      }
    }
    return false;
  }

  TokenizeAnswer tokenize(TokenizeCall call) {
    using Tokenized = std::variant<TokenizeAnswer, CallError>;
    const auto answer =
        wait_for<Tokenized>([&](auto on_done) { service_->tokenize(call, on_done); });
    const auto* failed = std::get_if<CallError>(&answer);
    EXPECT_EQ(failed, nullptr) << failed->error.message;
    return std::get<TokenizeAnswer>(answer);
  }

  static std::vector<std::uint32_t> ids_of(std::string_view text, std::uint32_t length_max = 32) {
    const auto tokenizer = *Tokenizer::load(tiny() + "/tokenizer.json");
    const auto scratch = tokenizer->make_scratch();
    std::vector<TokenId> ids;
    tokenizer->encode(text, length_max, *scratch, ids);
    return ids;
  }

  Answer embed(EmbedCall call) {
    return wait_for<Answer>([&](auto on_done) { service_->embed(call, on_done); });
  }
  Answer embed_texts(std::vector<std::string> texts) {
    return embed(EmbedCall{.texts = std::move(texts)});
  }

  /// What a text's row must begin with: the sum of its ids, and their number.
  static std::pair<float, float> echo_of(const std::string& text) {
    const auto ids = ids_of(text);
    return {static_cast<float>(std::accumulate(ids.begin(), ids.end(), 0U)),
            static_cast<float>(ids.size())};
  }

  const std::filesystem::path folder_;
  const SteadyClock clock_;
  EventLoop loop_;
  ServeOptions options_;
  std::string notices_;
  std::optional<Error> fatal_;
  std::unique_ptr<InferenceService> service_;
};

inline const EmbedAnswer& vectors(const Answer& answer) {
  const auto* failed = std::get_if<CallError>(&answer);
  EXPECT_EQ(failed, nullptr) << (failed ? failed->error.message : "");
  return std::get<EmbedAnswer>(answer);
}

inline const Error& error(const Answer& answer) { return std::get<CallError>(answer).error; }

}  // namespace muster
