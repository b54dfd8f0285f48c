// Several prompts of one request, over HTTP. The decoder counts: the reply to "a" is "bcd…", its
// choice i begins i tokens further on (stand_ins/counting_worker).
#include "server/prompt_group.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "coordinator/decoder_fixture.h"
#include "server/exchange_fixture.h"
#include "server/generation_fixture.h"

namespace muster {
namespace {

class PromptGroupTest : public GenerationFixture {
 protected:
  HttpAnswer complete(const std::string& prompts, const std::string& more = "") {
    return post("/v1/completions",
                R"({"model":"chat","prompt":)" + prompts + R"(,"max_tokens":2)" + more + "}");
  }

  // The texts of an answer that is whole, whose choices are numbered from 0 on.
  static std::vector<std::string> texts_of(const Json& answer) {
    std::vector<std::string> texts;
    for (const auto& choice : answer["choices"]) {
      EXPECT_EQ(choice["index"], texts.size());
      EXPECT_EQ(choice["finish_reason"], "length");
      texts.push_back(choice["text"]);
    }
    return texts;
  }
};

TEST_F(PromptGroupTest, TheChoicesOfEachPromptFollowThoseOfTheOneBefore) {
  start_counting();
  const auto reply = json(complete(R"(["a","m"])", R"(,"n":2)"));
  EXPECT_EQ(texts_of(reply), (std::vector<std::string>{"bc", "cd", "no", "op"}));
  EXPECT_EQ(reply["usage"], Json({{"prompt_tokens", 2},
                                  {"completion_tokens", 8},
                                  {"total_tokens", 10},
                                  {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
}

TEST_F(PromptGroupTest, PromptsMayBeListsOfIds) {
  start_counting();
  const auto reply = json(complete("[[1],[13,2]]", R"(,"echo":true)"));
  EXPECT_EQ(texts_of(reply), (std::vector<std::string>{"abc", "mbcd"}));
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 3);
}

TEST_F(PromptGroupTest, TheBestOfEachPromptIsAnswered) {
  start_counting();
  const auto reply = json(complete(R"(["a","m"])", R"(,"best_of":3)"));
  EXPECT_EQ(texts_of(reply), (std::vector<std::string>{"de", "pq"})) << reply;
}

TEST_F(PromptGroupTest, AStreamNumbersAllChoicesAndHasOneUsage) {
  start_counting();
  const auto all =
      events(complete(R"(["a","m"])", R"(,"stream":true,"stream_options":{"include_usage":true})"));
  std::vector<std::string> texts(2);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const auto& choice = all[i]["choices"][0];
    texts[choice["index"].get<std::size_t>()] += choice["text"].get<std::string>();
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"bc", "no"}));
  EXPECT_EQ(all.back()["usage"]["completion_tokens"], 4);
}

TEST_F(PromptGroupTest, APromptThatIsTooLongIsNamed) {
  start_counting("wait_at=1");
  const auto refused = complete(R"(["a",")" + std::string(120, 'x') + R"("])");
  EXPECT_EQ(refused.status, 400);
  EXPECT_TRUE(message(refused).starts_with("Invalid 'prompt': prompt 2 of 2: the context is 100"))
      << refused.body;
  while (metric("generation_running") != "0") std::this_thread::yield();  // the first one ends
}

TEST_F(PromptGroupTest, AClientThatGoesEndsThemAll) {
  start_counting("wait_at=2");
  auto client = begin_stream(R"({"model":"chat","prompt":["a","b","c"],"stream":true})");
  while (metric("generation_running") != "3") std::this_thread::yield();
  client.reset();
  expect_cancelled(3);
}

// As many replies as the devices compute at a time are let in, and not one more.
TEST_F(PromptGroupTest, MoreThanTheDevicesComputeAtATimeAreRefusedForGood) {
  options_.replies_at_once = 3;
  start_counting();
  const auto most = 3 * json(get("/v1/devices"))["devices"].size();
  const auto ask = [&](std::size_t count) {
    std::string prompts = R"(["a")";
    for (std::size_t i = 1; i < count; ++i) prompts += R"(,"a")";
    return complete(prompts + "]");
  };
  EXPECT_EQ(ask(most).status, 200);
  const auto refused = ask(most + 1);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(message(refused), "Invalid 'prompt': chat computes at most " + std::to_string(most) +
                                  " replies at a time (max_num_seqs): " + std::to_string(most + 1) +
                                  ".");
}

TEST_F(PromptGroupTest, OfAnUnknownModelThereIsOneAnswer) {
  start_counting();
  const auto refused =
      post("/v1/completions", R"({"model":"none","prompt":["a","b","c"],"stream":true})");
  EXPECT_EQ(refused.status, 404) << refused.body;
}

// What a key's limit does not let in as a whole is not charged in part.
TEST_F(PromptGroupTest, AKeysLimitIsAskedOnceForAllPrompts) {
  use_keys(R"(keys:
  - name: test
    sha256: 62af8704764faf8ea82fc61ce9c4c3908b6cb97d463a634e9e587d7c885db0ef
    requests_per_minute: 2
)");
  start_counting();
  const HttpHeaders headers{{"Authorization", "Bearer test-key"},
                            {"Content-Type", "application/json"}};
  const auto ask = [&](const std::string& prompts) {
    return call("POST", "/v1/completions", headers,
                R"({"model":"chat","max_tokens":1,"prompt":)" + prompts + "}")
        .status;
  };
  EXPECT_EQ(ask(R"(["a"])"), 200);
  EXPECT_EQ(ask(R"(["a","b"])"), 429) << "one is left";
  EXPECT_EQ(ask(R"(["a"])"), 200) << "and is left still";
  EXPECT_EQ(ask(R"(["a"])"), 429);
}

/// Groups on a service whose loop runs in the test's own thread. Its device has places for three
/// replies, which have no end.
class PromptGroupTurns : public ExchangeFixture {
 protected:
  PromptGroupTurns() {
    write_counting_decoder(folder_ / "counting");
    ::setenv("COUNTING_WORKER", "wait_at=1", 1);
    options_.models.clear();
    options_.decoders = {{.name = "chat", .model = (folder_ / "counting").string()}};
    options_.devices.resize(1);
    options_.replies_at_once = 3;
    options_.admission.queue_budget = std::chrono::hours(1);
    decoder_program_ = counting_worker();
  }
  ~PromptGroupTurns() override { ::unsetenv("COUNTING_WORKER"); }

  void run_until(const std::function<bool()>& is_so) {
    bool is_late = false;
    const auto patience = loop_.timer([&] { is_late = true; });
    patience->set(clock_.now() + std::chrono::seconds(60));
    std::function<void()> look = [&] {
      if (is_late || is_so()) return loop_.stop();
      loop_.post(look);
    };
    loop_.post(look);
    loop_.run();
    ASSERT_FALSE(is_late) << "what was waited for has not come; told: " << told_;
  }

  // Prompts of one request, once they are with the fleet; what is returned cancels them. The name
  // is told for each that a device has begun with.
  std::function<void()> ask(const std::string& caller, char name, std::size_t count = 1) {
    GenerationSink events{
        .on_part = [this, name](const ReplyPart&, const GenerationUsage&) { told_ += name; },
        .on_choice_end = [](std::uint32_t, FinishReason) {},
        .on_end = [](const GenerationEnd&) {},
        .on_failed = [](const CallError& error) { ADD_FAILURE() << error.error.message; }};
    const GenerationCall one{.model = "chat", .caller = caller, .text = "a"};
    const auto before = generation_->status().prompt_token_count;
    auto cancel =
        begin_replies(exchange(), std::vector<GenerationCall>(count, one), std::move(events));
    run_until([&] { return generation_->status().prompt_token_count == before + count; });
    return cancel;
  }

  std::string told_;
};

// Each counts 100 tokens. What "b" has asked for and taken back again costs it nothing: its next
// one goes before the second of "a".
TEST_F(PromptGroupTurns, AGroupThatIsCancelledBeforeItsTurnIsNotCharged) {
  run_until([this] { return generation_->is_ready(); });
  const auto first = ask("a", 'r');
  const auto second = ask("a", 'r');
  ask("a", 'r');
  run_until([this] { return told_ == "rrr"; });
  ask("a", 'a');
  const auto cancel = ask("b", '-', 3);
  cancel();
  ask("b", 'b');
  ask("a", 'A');
  first();
  run_until([this] { return told_.size() == 4; });
  second();
  run_until([this] { return told_.size() == 5; });
  EXPECT_EQ(told_, "rrrab");
}

TEST(CallsOfTest, APromptThatIsGivenTwiceHasASeedOfItsOwnWhereNoneIsGiven) {
  GenerationRequest request{.more_prompts = {{.text = "b"}, {.ids = {4}}}, .draws_seed = true};
  request.call.text = "a";
  request.call.sampling.seed = 5;
  const auto drawn = calls_of(request);
  ASSERT_EQ(drawn.size(), 3U);
  EXPECT_EQ(drawn[0].text, "a");
  EXPECT_EQ(drawn[1].text, "b");
  EXPECT_TRUE(drawn[2].text.empty());
  EXPECT_EQ(drawn[2].ids, (std::vector<std::uint32_t>{4}));
  EXPECT_NE(drawn[1].sampling.seed, drawn[2].sampling.seed);
  request.draws_seed = false;
  for (const auto& call : calls_of(request)) EXPECT_EQ(call.sampling.seed, 5U);
}

}  // namespace
}  // namespace muster
