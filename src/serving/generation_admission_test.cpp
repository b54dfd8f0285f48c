// Which calls for replies are let in, and what they are charged, on real worker processes that
// count (stand_ins/counting_worker).
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "serving/generation_fixture.h"

namespace muster {
namespace {

class GenerationAdmissionTest : public GenerationServiceTest {};

// ---- How many may wait ----

// A worker has places for 32, and 64 may wait. None of them is tokenised or with it yet.
TEST_F(GenerationAdmissionTest, WhoFindsAPlaceIsNotCountedAmongThoseThatWait) {
  start("wait_at=1");
  std::vector<Outcome> outcomes(97);
  for (auto& outcome : outcomes) ask({.text = "a"}, outcome);
  EXPECT_FALSE(outcomes[95].error) << message(outcomes[95]);
  EXPECT_EQ(message(outcomes[96]), "64 requests wait for this model");
  EXPECT_EQ(service_->status().refused_count, 1U);
  run_until([&] { return service_->status().running_count == 32; });
  EXPECT_EQ(service_->status().waiting_count, 64U);
}

TEST_F(GenerationAdmissionTest, TheChoicesOfThreeCallsFindPlacesOrWait) {
  start("wait_at=1");
  std::vector<Outcome> outcomes(3);
  for (auto& outcome : outcomes) ask({.text = "a", .choice_count = 32}, outcome);
  EXPECT_FALSE(outcomes[2].error) << message(outcomes[2]);
  Outcome late;
  ask({.text = "a", .choice_count = 2}, late);
  EXPECT_EQ(message(late), "64 requests wait for this model, and 2 more are too many");
}

// Two places, and room for one more: the settings of a server.
TEST_F(GenerationAdmissionTest, HowManyAreComputedAndWaitIsSet) {
  options_.replies_at_once = 2;
  options_.replies_waiting_most = 1;
  start("wait_at=1");
  std::vector<Outcome> outcomes(4);
  for (auto& outcome : outcomes) ask({.text = "a"}, outcome);
  EXPECT_FALSE(outcomes[2].error) << message(outcomes[2]);
  EXPECT_EQ(message(outcomes[3]), "1 request waits for this model");
  run_until([&] { return service_->status().running_count == 2; });
  EXPECT_EQ(service_->status().waiting_count, 1U);

  Outcome many;
  ask({.text = "a", .choice_count = 3}, many);
  EXPECT_EQ(message(many), "chat computes at most 2 replies at a time (max_num_seqs): 3");
  EXPECT_EQ(many.error->error.kind, ErrorKind::InvalidArgument);

  options_.replies_waiting_most = 2;
  set_limits({});
  Outcome more;
  ask({.text = "a"}, more);
  EXPECT_FALSE(more.error) << message(more);
}

// ---- How requests are counted ----

TEST_F(GenerationAdmissionTest, ARequestCountsOnceHoweverManyPromptsItHas) {
  start();
  std::vector<Outcome> outcomes(3);
  ask_together({.text = "a", .token_limit = 1}, outcomes);
  run_until([&] {
    return std::all_of(outcomes.begin(), outcomes.end(),
                       [](const Outcome& outcome) { return outcome.is_over(); });
  });
  EXPECT_EQ(outcomes[2].text, "b") << message(outcomes[2]);
  EXPECT_EQ(service_->status().request_count, 1U);
  EXPECT_EQ(service_->models()[0].request_count, 1U);
  EXPECT_EQ(service_->status().length_count, 3U) << "of replies";
}

// Of two prompts only one could wait to be read. It was not let in, and so has not failed.
TEST_F(GenerationAdmissionTest, WhosePromptsCannotWaitIsToldToComeAgain) {
  options_.prompts_waiting_most = 1;
  start();
  std::vector<Outcome> outcomes(2);
  ask_together({.text = "a", .token_limit = 1}, outcomes);
  EXPECT_EQ(message(outcomes[0]), "too many prompts wait to be tokenised");
  ASSERT_TRUE(outcomes[0].error);
  EXPECT_EQ(outcomes[0].error->error.kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(outcomes[0].error->retry_after, std::chrono::seconds(1));
  EXPECT_FALSE(outcomes[1].is_over()) << "it is told once";
  EXPECT_EQ(service_->status().refused_count, 1U);
  EXPECT_EQ(service_->status().request_count, 0U);
  EXPECT_EQ(service_->status().failed_count, 0U);
  EXPECT_EQ(answer({.text = "a", .token_limit = 1}).text, "b");
}

// It is answered 400, as what the template itself refuses.
TEST_F(GenerationAdmissionTest, APromptOnWhichTheTemplateComesToALimitIsInvalid) {
  std::ofstream(folder_ / "counting/chat_template.jinja") << "{{ range(1000000) | length }}";
  start();
  const auto refused = answer({.turns = {{.role = "user", .content = "x"}}});
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->error.kind, ErrorKind::ResourceExhausted) << message(refused);
  EXPECT_EQ(refused.error->field, CallField::Prompt);
  EXPECT_EQ(service_->status().invalid_count, 1U);
  EXPECT_EQ(service_->status().failed_count, 0U);
}

// ---- How long they may wait ----

TEST_F(GenerationAdmissionTest, WhoWouldWaitForTooLongIsTold) {
  start("wait_at=1");
  Outcome running;
  const auto id = ask({.text = "a", .choice_count = 32}, running);
  run_until([&] { return running.usage.reply_tokens == 32; });
  clock_.ahead += std::chrono::seconds(20);  // and no place has come free
  Outcome refused;
  ask({.text = "a"}, refused);
  EXPECT_EQ(message(refused).substr(0, 29), "too busy: the wait would be 2");
  EXPECT_EQ(refused.error->error.kind, ErrorKind::ResourceExhausted);
  EXPECT_GE(refused.error->retry_after, std::chrono::seconds(18)) << "20 s, of which 2 may be";
  EXPECT_LE(refused.error->retry_after, std::chrono::seconds(60));
  EXPECT_EQ(service_->status().refused_count, 1U);

  options_.admission.queue_budget = std::chrono::hours(1);
  set_limits({});
  Outcome waiting;
  ask({.text = "a"}, waiting);
  EXPECT_FALSE(waiting.error) << "the setting is another now";

  options_.admission.queue_budget = std::chrono::seconds(2);
  set_limits({});
  service_->cancel(id);
  Outcome placed;
  ask({.text = "a"}, placed);
  EXPECT_FALSE(placed.error) << "places are free: " << message(placed);
}

// One of 32 places came free in 30 s. 20 of "a" wait: another one waits for 21 places, and "b" for
// the next of "a" and its own.
TEST_F(GenerationAdmissionTest, AKeysWaitIsPredictedByItsTurn) {
  options_.admission.queue_budget = std::chrono::seconds(150);
  start("wait_at=1");
  std::vector<Outcome> running(3);
  ask({.caller = "a", .text = "a", .choice_count = 31}, running[0]);
  const auto id = ask({.caller = "a", .text = "a"}, running[1]);
  run_until([&] { return service_->status().reply_token_count == 32; });
  clock_.ahead += std::chrono::seconds(30);
  service_->cancel(id);
  ask({.caller = "a", .text = "a"}, running[2]);
  run_until([&] { return running[2].text == "b"; });
  Outcome waiting;
  ask({.caller = "a", .text = "a", .choice_count = 20}, waiting);
  EXPECT_FALSE(waiting.error) << message(waiting);
  Outcome of_a;
  ask({.caller = "a", .text = "a"}, of_a);
  EXPECT_EQ(message(of_a).substr(0, 28), "too busy: the wait would be ");
  Outcome of_b;
  ask({.caller = "b", .text = "a"}, of_b);
  EXPECT_FALSE(of_b.error) << message(of_b);
}

TEST_F(GenerationAdmissionTest, ADeadlineCoversWaitingAndComputing) {
  start("wait_at=1");
  Outcome running;
  ask({.deadline = std::chrono::seconds(3), .text = "a", .choice_count = 32}, running);
  Outcome waiting;
  ask({.deadline = std::chrono::milliseconds(20), .text = "a"}, waiting);
  run_until([&] { return running.is_over() && waiting.is_over(); });
  EXPECT_EQ(running.error->error.kind, ErrorKind::DeadlineExceeded);
  EXPECT_EQ(message(running), "no end of the reply within the time allowed: 3 s");
  EXPECT_EQ(running.usage.reply_tokens, 32U) << "it was computed meanwhile";
  EXPECT_EQ(message(waiting), "no end of the reply within the time allowed: 0.02 s");
  EXPECT_EQ(waiting.text, "");
  const auto status = service_->status();
  EXPECT_EQ(status.expired_count, 33U);
  EXPECT_EQ(status.failed_count, 0U);
  EXPECT_EQ(status.running_count + status.waiting_count, 0U);
}

// 32 run and one waits. The limit of the server is that of waiting, not of computing.
TEST_F(GenerationAdmissionTest, WithoutADeadlineAReplyWaitsAsLongAsTheServerSays) {
  start("wait_at=1");
  Outcome running;
  ask({.text = "a", .choice_count = 32}, running);
  run_until([&] { return running.usage.reply_tokens == 32; });
  options_.deadline = std::chrono::milliseconds(50);
  set_limits({});
  Outcome waiting;
  ask({.text = "a"}, waiting);
  run_until([&] { return waiting.is_over(); });
  EXPECT_EQ(message(waiting), "no worker for the reply within the time allowed: 0.05 s");
  EXPECT_EQ(waiting.error->error.kind, ErrorKind::DeadlineExceeded);
  EXPECT_FALSE(running.is_over());

  // Its worker is lost, and the next one does not come to load the model.
  ::setenv("COUNTING_WORKER", "hang_at_load", 1);
  ::kill(*service_->models()[0].devices[0].pid, SIGKILL);
  run_until([&] { return running.is_over(); });
  EXPECT_EQ(message(running), "no worker for the reply within the time allowed: 0.05 s");
}

// ---- Keys beside each other ----

// 32 of "a" run. Of the room for 64 a key that has some waiting may take half where it is alone,
// and less where others wait too.
TEST_F(GenerationAdmissionTest, AKeyLeavesRoomForOthersAndTakesTurnsWithThem) {
  start("wait_at=1");
  std::vector<Outcome> of_a(65);
  std::vector<CallId> ids(65);
  for (std::size_t i = 0; i < 32; ++i) ids[i] = ask({.caller = "a", .text = "a"}, of_a[i]);
  run_until([&] { return service_->status().reply_token_count == 32; });
  for (std::size_t i = 32; i < 65; ++i) ids[i] = ask({.caller = "a", .text = "a"}, of_a[i]);
  EXPECT_FALSE(of_a[63].error) << message(of_a[63]);
  EXPECT_EQ(message(of_a[64]),
            "32 requests of key a wait for this model, and the room that is left is for others");
  EXPECT_EQ(of_a[64].error->error.kind, ErrorKind::ResourceExhausted);
  EXPECT_TRUE(of_a[64].error->retry_after);
  EXPECT_EQ(service_->status().refused_count, 1U);

  Outcome of_b;
  ask({.caller = "b", .text = "a"}, of_b);
  EXPECT_FALSE(of_b.error) << message(of_b);
  run_until([&] { return service_->status().prompt_token_count == 65; });  // all with the fleet
  // Of the next two places one is that of "b", though 32 of "a" have waited longer.
  service_->cancel(ids[0]);
  service_->cancel(ids[1]);
  run_until([&] { return of_b.text == "b"; });
  const auto given = std::count_if(of_a.begin() + 32, of_a.end(),
                                   [](const Outcome& one) { return !one.text.empty(); });
  EXPECT_EQ(given, 1);
}

TEST_F(GenerationAdmissionTest, WhoHasNoneWaitingMayTakeAllThatIsLeft) {
  start("wait_at=1");
  Outcome running;
  ask({.caller = "a", .text = "a", .choice_count = 32}, running);
  run_until([&] { return service_->status().running_count == 32; });
  std::vector<Outcome> outcomes(3);
  ask({.caller = "a", .text = "a", .choice_count = 32}, outcomes[0]);
  ask({.caller = "b", .text = "a", .choice_count = 31}, outcomes[1]);
  EXPECT_FALSE(outcomes[0].error) << message(outcomes[0]);
  EXPECT_FALSE(outcomes[1].error) << message(outcomes[1]);
  ask({.caller = "b", .text = "a"}, outcomes[2]);
  EXPECT_EQ(message(outcomes[2]),
            "31 requests of key b wait for this model, and the room that is left is for others");
  Outcome last;
  ask({.caller = "c", .text = "a"}, last);
  EXPECT_FALSE(last.error) << message(last);
}

// ---- A caller's own limits ----

TEST_F(GenerationAdmissionTest, EachReplyOfACallCountsForItsCallersRequests) {
  start("wait_at=1");
  set_limits({{"ci", {.requests_at_once = 2}}, {"slow", {.requests_per_minute = 4}}});
  Outcome two;
  ask({.caller = "ci", .text = "a", .choice_count = 2}, two);
  EXPECT_FALSE(two.error) << message(two);
  Outcome third;
  ask({.caller = "ci", .text = "a"}, third);
  EXPECT_EQ(message(third), "key ci: 2 requests at once");
  EXPECT_EQ(third.error->error.kind, ErrorKind::ResourceExhausted);

  Outcome three;
  ask({.caller = "slow", .text = "a", .choice_count = 3}, three);
  EXPECT_FALSE(three.error) << message(three);
  Outcome more;
  ask({.caller = "slow", .text = "a", .choice_count = 2}, more);
  EXPECT_EQ(message(more), "key slow has used its 4 requests a minute");
  EXPECT_EQ(service_->status().limited_count, 2U);
}

// Nobody should come again with it.
TEST_F(GenerationAdmissionTest, MoreRepliesThanACallerMayHaveAreNotHisToAskFor) {
  start("wait_at=1");
  set_limits({{"ci", {.requests_at_once = 2}}});
  Outcome outcome;
  ask({.caller = "ci", .text = "a", .choice_count = 1, .candidate_count = 3}, outcome);
  EXPECT_EQ(message(outcome), "key ci: 2 requests at once, and 3 are asked for");
  EXPECT_EQ(outcome.error->error.kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(outcome.error->field, CallField::Choices);
  EXPECT_FALSE(outcome.error->retry_after);
  EXPECT_EQ(service_->status().limited_count, 0U);
}

// The fixture's model has 48 tokens. What is refused has no place, and costs nothing.
TEST_F(GenerationAdmissionTest, ABiasForATokenThatTheModelDoesNotHaveIsRefusedAtOnce) {
  start();
  set_limits({{"ci", {.tokens_per_minute = 1}}});
  Outcome outcome;
  ask({.caller = "ci", .text = "a", .sampling = {.logit_bias = {{47, 1}, {48, 1}}}}, outcome);
  EXPECT_EQ(message(outcome), "a token id is not in the vocabulary of 48: 48");
  EXPECT_EQ(outcome.error->field, CallField::LogitBias);
  EXPECT_EQ(service_->usage_of("ci")->tokens->remaining, 1);
  EXPECT_EQ(service_->status().request_count, 0U);
  EXPECT_EQ(service_->status().failed_count, 0U);
}

// One that names no limit counts as 256 tokens, and as 256 more with its 257th: of 1,000 a minute,
// of which 17 come back in a second, 488 are left.
TEST_F(GenerationAdmissionTest, ALongReplyIsChargedWhileItRuns) {
  write_counting_decoder(counting(), 1024);
  start("length_max=1024 wait_at=400");
  set_limits({{"ci", {.tokens_per_minute = 1000}}});
  Outcome outcome;
  const auto id = ask({.caller = "ci", .text = "a", .ignores_stop_ids = true}, outcome);
  run_until([&] { return outcome.usage.reply_tokens == 400; });
  const auto left = [&] { return service_->usage_of("ci")->tokens->remaining; };
  EXPECT_LT(left(), 700) << "it was 744 before the first token";
  service_->cancel(id);
  EXPECT_GT(left(), 598) << "401 were computed";
}

}  // namespace
}  // namespace muster
