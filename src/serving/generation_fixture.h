#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/decoder_fixture.h"
#include "serving/generation_service.h"

namespace muster {

/// The service on real worker processes that count (stand_ins/counting_worker), with one decoder,
/// "chat", on one device.
class GenerationServiceTest : public testing::Test {
 protected:
  struct Outcome {
    std::string text;  // of the first choice, as are `end` and `tokens`
    std::map<std::uint32_t, std::string> texts;
    std::vector<ReplyToken> tokens;
    std::map<std::uint32_t, std::size_t> token_counts;  // that were told of each choice
    GenerationUsage usage;
    std::optional<FinishReason> end;
    std::vector<std::uint32_t> ended;   // choices, in the order of their ends
    std::vector<std::uint32_t> wanted;  // as they are told with the end
    bool is_done = false;
    std::optional<CallError> error;
    bool is_over() const { return is_done || error; }
  };

  GenerationServiceTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("generation." + std::to_string(::getpid()))) {
    write_counting_decoder(folder_ / "counting");
    options_.decoders = {{.name = "chat", .model = counting()}};
    options_.devices.resize(1);
    options_.worker_program = counting_worker();
  }
  ~GenerationServiceTest() override {
    service_.reset();
    ::unsetenv("COUNTING_WORKER");
    std::filesystem::remove_all(folder_);
  }

  std::string counting() const { return (folder_ / "counting").string(); }

  /// Starts it and waits until no decoder is loading any more.
  void start(const std::string& orders = "") {
    start_loading(orders);
    run_until([this] {
      const auto models = service_->models();
      return std::none_of(models.begin(), models.end(),
                          [](const auto& model) { return model.state == ModelState::Loading; });
    });
  }

  void start_loading(const std::string& orders = "") {
    ::setenv("COUNTING_WORKER", orders.c_str(), 1);
    auto service = GenerationService::start(
        options_, roster_, loop_,
        {.on_notice = [this](const std::string& text,
                             const std::optional<std::string>&) { notices_ += text + "\n"; },
         .on_fatal = [](const Error& error) { FAIL() << error.message; },
         .memory_available = memory_available_,
         .is_loading = is_loading_},
        clock_);
    ASSERT_TRUE(service) << service.error().message;
    service_ = *std::move(service);
  }

  static GenerationSink told_to(Outcome& outcome) {
    GenerationSink events;
    events.on_part = [&](const ReplyPart& part, const GenerationUsage& usage) {
      EXPECT_FALSE(outcome.is_over());
      outcome.texts[part.choice] += part.text;
      outcome.text = outcome.texts[0];
      if (part.token != nullptr) ++outcome.token_counts[part.choice];
      if (part.choice == 0 && part.token != nullptr) outcome.tokens.push_back(*part.token);
      outcome.usage = usage;
    };
    events.on_choice_end = [&](std::uint32_t choice, FinishReason reason) {
      EXPECT_FALSE(outcome.is_over());
      outcome.ended.push_back(choice);
      if (choice == 0) outcome.end = reason;
    };
    events.on_end = [&](const GenerationEnd& end) {
      EXPECT_FALSE(outcome.is_over());
      outcome.is_done = true;
      outcome.usage = end.usage;
      outcome.wanted = end.choices;
    };
    events.on_failed = [&](const CallError& error) {
      EXPECT_FALSE(outcome.is_over());
      outcome.error = error;
    };
    return events;
  }

  CallId ask(GenerationCall call, Outcome& outcome) {
    return service_->generate(std::move(call), told_to(outcome));
  }

  /// Prompts of one request, one for each outcome.
  void ask_together(const GenerationCall& each, std::vector<Outcome>& outcomes) {
    std::vector<GenerationSink> events;
    for (auto& outcome : outcomes) events.push_back(told_to(outcome));
    std::vector<CallId> ids;
    service_->generate_all(std::vector<GenerationCall>(outcomes.size(), each), std::move(events),
                           ids);
  }

  void run_until(const std::function<bool()>& is_so) {
    bool is_late = false;
    const auto patience = loop_.timer([&] { is_late = true; });
    patience->set(std::chrono::steady_clock::now() + std::chrono::seconds(60));
    std::function<void()> look = [&] {
      if (is_late || is_so()) return loop_.stop();
      loop_.post(look);
    };
    loop_.post(look);
    loop_.run();
    EXPECT_FALSE(is_late) << "what was waited for has not come; told: " << notices_;
  }

  /// A worker that has stopped itself and was not waited for.
  static std::optional<pid_t> stopped_worker() {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG | WNOWAIT) != 0) return std::nullopt;
    return info.si_pid == 0 ? std::nullopt : std::optional(info.si_pid);
  }

  /// Runs the loop until there is one.
  pid_t wait_for_stopped_worker() {
    run_until([] { return stopped_worker().has_value(); });
    return stopped_worker().value_or(0);
  }

  Outcome answer(GenerationCall call) {
    Outcome outcome;
    ask(std::move(call), outcome);
    run_until([&] { return outcome.is_over(); });
    return outcome;
  }

  void set_limits(std::map<std::string, CallerLimits> limits) {
    service_->reconfigure(options_, std::move(limits));
  }

  using Loaded = Result<ServedDecoderStatus>;

  Loaded load(const ServedModel& model) {
    std::optional<Loaded> loaded;
    service_->decoders().load(model, [&](Loaded result) { loaded = std::move(result); });
    run_until([&] { return loaded.has_value(); });
    return *std::move(loaded);
  }

  static std::string message(const Outcome& outcome) {
    return outcome.error ? outcome.error->error.message : "no error";
  }

  const std::filesystem::path folder_;
  SetClock clock_;
  EventLoop loop_;
  ModelRoster roster_{16};
  ServeOptions options_;
  std::function<std::optional<std::uint64_t>()> memory_available_;
  std::function<bool(std::size_t device)> is_loading_;
  std::string notices_;
  std::unique_ptr<GenerationService> service_;
};

}  // namespace muster
