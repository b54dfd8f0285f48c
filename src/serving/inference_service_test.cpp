// Calls, models and the end of the whole service, on real worker processes.

#include <gtest/gtest.h>
#include <signal.h>

#include "serving/serving_fixture.h"

namespace muster {
namespace {

TEST_F(InferenceServiceTest, AnswersRowsInTheOrderOfTexts) {
  start();
  const std::vector<std::string> texts{"one", "a longer text", "", "two"};
  const auto answer = embed_texts(texts);
  const auto& got = vectors(answer);
  ASSERT_EQ(got.rows.size(), texts.size() * got.dim);
  float token_count = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto [sum, count] = echo_of(texts[i]);
    EXPECT_EQ(got.rows[i * got.dim], sum) << texts[i];
    EXPECT_EQ(got.rows[i * got.dim + 1], count) << texts[i];
    token_count += count;
  }
  EXPECT_EQ(got.model, "tiny");
  EXPECT_EQ(static_cast<float>(got.token_count), token_count);
  EXPECT_EQ(got.cached_count, 0U);
}

TEST_F(InferenceServiceTest, ComputesEqualTextsOnceAndAnswersThemFromTheCacheAfterwards) {
  start();
  const auto first = embed_texts({"same", "same", "same"});
  EXPECT_EQ(service_->status().shared_count, 2U);
  EXPECT_EQ(service_->status().text_count, 1U);
  const auto second = embed_texts({"same"});
  const auto& miss = vectors(first);
  const auto& hit = vectors(second);
  EXPECT_EQ(hit.cached_count, 1U);
  EXPECT_EQ(hit.token_count * 3, miss.token_count);
  EXPECT_EQ(std::vector(miss.rows.begin(), miss.rows.begin() + hit.dim), hit.rows);
  EXPECT_EQ(service_->status().text_count, 1U);
}

// How quickly one key is answered must not tell what another has asked.
TEST_F(InferenceServiceTest, NoKeyIsAnsweredFromWhatAnotherAsked) {
  start();
  const auto cached = [this](const std::string& caller) {
    return vectors(embed({.options = {.caller = caller}, .texts = {"secret"}})).cached_count;
  };
  EXPECT_EQ(cached("a"), 0);
  EXPECT_EQ(cached("a"), 1);
  EXPECT_EQ(cached("b"), 0);
  EXPECT_EQ(cached(""), 0);
  EXPECT_EQ(cached("b"), 1);
}

TEST_F(InferenceServiceTest, KeysThatAreToShareDo) {
  options_.is_cache_shared = true;
  start();
  const auto cached = [this](const std::string& caller) {
    return vectors(embed({.options = {.caller = caller}, .texts = {"text"}})).cached_count;
  };
  EXPECT_EQ(cached("a"), 0);
  EXPECT_EQ(cached("b"), 1);
}

TEST_F(InferenceServiceTest, HasNoMoreModelsThanItMay) {
  ::setenv("ZERO_WORKER", "dim=32", 1);  // the same row whatever the model is called
  options_.models_most = 2;
  start();
  const auto load = [this](const std::string& name) {
    return wait_for<Result<ServedModelStatus>>(
        [&](auto on_done) { service_->load_model({.name = name, .model = tiny()}, on_done); });
  };
  const auto second = load("second");
  ASSERT_TRUE(second) << second.error().message;
  const auto third = load("third");
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(third.error().message, "models_most allows 2 models at a time");
  ASSERT_TRUE(service_->unload_model("second"));
  EXPECT_TRUE(load("third"));
}

// 2 and 3 are the tokenizer's [CLS] and [SEP].
TEST_F(InferenceServiceTest, TakesTokenIdsAsTheyAre) {
  start();
  const auto answer = embed(EmbedCall{.ids = {{2, 5, 6, 7, 3}, {2, 9, 3}}});
  const auto& got = vectors(answer);
  EXPECT_EQ(got.rows[0], 23.0F);
  EXPECT_EQ(got.rows[got.dim], 14.0F);
  EXPECT_EQ(got.token_count, 8U);
  const auto refused = embed(EmbedCall{.ids = {{2, 5, 3}, {2, 1'000'000, 3}}});
  EXPECT_EQ(error(refused).kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(std::get<CallError>(refused).field, CallField::TokenIds);
  EXPECT_EQ(error(embed(EmbedCall{.ids = {{}}})).kind, ErrorKind::InvalidArgument);
}

// As another tokenizer gives them: ids of this vocabulary, without this model's special tokens.
TEST_F(InferenceServiceTest, RefusesTheTokenIdsOfAnotherTokenizer) {
  start();
  for (const std::vector<std::uint32_t>& ids :
       {std::vector<std::uint32_t>{5, 6, 7}, {2, 5, 6, 7}, {5, 6, 7, 3}, {2}, {3}}) {
    const auto refused = embed(EmbedCall{.ids = {ids}});
    EXPECT_EQ(std::get<CallError>(refused).field, CallField::TokenIds);
    EXPECT_EQ(error(refused).message,
              "the token ids of a text must begin with 2 and end with 3, which are the model's "
              "special tokens");
  }
}

TEST_F(InferenceServiceTest, TakesTheIdsThatItGivesForAText) {
  start();
  std::string text = "a few words of a text that is longer than the model can take";
  for (int i = 0; i < 5; ++i) text += ", " + text;
  for (const auto& tokenized : tokenize({.texts = {"short", text}}).texts) {
    const auto answer = embed(EmbedCall{.ids = {tokenized.ids}});
    EXPECT_EQ(vectors(answer).token_count, tokenized.ids.size());
  }
}

// Ids beyond the limit are cut as texts are: the special tokens stay.
TEST_F(InferenceServiceTest, CutsIdsBetweenTheirSpecialTokens) {
  start();
  const std::size_t length_max = service_->models().front().length_max;
  std::vector<std::uint32_t> ids{2};
  for (std::uint32_t i = 0; i < 100; ++i) ids.push_back(4 + i % 20);
  ids.push_back(3);
  float right = 2 + 3;
  for (std::size_t i = 1; i + 1 < length_max; ++i) right += static_cast<float>(ids[i]);
  float left = 2 + 3;
  for (std::size_t i = ids.size() - length_max + 1; i + 1 < ids.size(); ++i) {
    left += static_cast<float>(ids[i]);
  }
  EXPECT_EQ(vectors(embed(EmbedCall{.ids = {ids}})).rows[0], right);
  const CallOptions from_left{.truncation_side = TruncationSide::Left};
  EXPECT_EQ(vectors(embed(EmbedCall{.options = from_left, .ids = {ids}})).rows[0], left);
}

TEST_F(InferenceServiceTest, RefusesAModelThatIsNotServedNamingTheNearest) {
  start();
  const auto answer = embed(EmbedCall{.options = {.model = "tinny"}, .texts = {"a"}});
  EXPECT_EQ(error(answer).kind, ErrorKind::NotFound);
  EXPECT_EQ(error(answer).message, "the model does not exist: tinny; did you mean tiny?");
}

TEST_F(InferenceServiceTest, AModelIsAlsoNamedByThePathAndByTheLastPartOfItsId) {
  options_.models = {{.name = "org/small", .model = tiny()}};
  start();
  for (const auto& name : {std::string("org/small"), std::string("small"), tiny()}) {
    const auto answer = embed(EmbedCall{.options = {.model = name}, .texts = {"a"}});
    EXPECT_EQ(vectors(answer).model, "org/small") << name;
  }
  const auto other = embed(EmbedCall{.options = {.model = "other/small"}, .texts = {"a"}});
  EXPECT_EQ(error(other).kind, ErrorKind::NotFound) << "another organisation's model";
}

TEST_F(InferenceServiceTest, CutsLongTextsUnlessThatIsRefused) {
  start();
  std::string text;
  for (int i = 0; i < 200; ++i) text += "word ";
  EXPECT_EQ(vectors(embed_texts({text})).token_count, service_->models().front().length_max);
  const auto refused = embed(EmbedCall{.options = {.truncate = false}, .texts = {"short", text}});
  EXPECT_EQ(error(refused).kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(service_->status().waiting_call_count, 0U);
}

TEST_F(InferenceServiceTest, NothingIsHeardOfACancelledCall) {
  start();
  bool is_answered = false;
  const auto other = wait_for<Answer>([&](auto on_done) {
    const auto id = service_->embed(EmbedCall{.texts = {"cancelled"}},
                                    [&](const Answer&) { is_answered = true; });
    service_->cancel(id);
    service_->embed(EmbedCall{.texts = {"other"}}, on_done);
  });
  EXPECT_EQ(vectors(other).rows[0], echo_of("other").first);
  EXPECT_FALSE(is_answered);
  EXPECT_EQ(service_->status().cancelled_count, 1U);
  EXPECT_EQ(service_->fleet().pending_count, 0U);
}

TEST_F(InferenceServiceTest, ACallPastItsDeadlineIsToldSo) {
  start();
  const auto answer =
      embed(EmbedCall{.options = {.deadline = std::chrono::nanoseconds(1)}, .texts = {"too late"}});
  EXPECT_EQ(error(answer).kind, ErrorKind::DeadlineExceeded);
  EXPECT_EQ(service_->status().expired_count, 1U);
  EXPECT_EQ(service_->status().failed_count, 0U) << "it is counted once";
}

TEST_F(InferenceServiceTest, AFullQueueRefusesAtOnceAndSaysWhenToComeAgain) {
  options_.admission.queued_texts_most = 3;
  start();
  const auto answer = wait_for<Answer>([&](auto on_done) {
    service_->embed(EmbedCall{.texts = {"a", "b", "c"}}, [](const Answer&) {});
    service_->embed(EmbedCall{.texts = {"d", "e"}}, on_done);
  });
  EXPECT_EQ(error(answer).kind, ErrorKind::ResourceExhausted);
  EXPECT_GE(std::get<CallError>(answer).retry_after, std::chrono::seconds(1));
  EXPECT_EQ(service_->status().refused_count, 1U);
}

TEST_F(InferenceServiceTest, BulkTextsThatWaitRefuseBulkCallsAndNotAQuery) {
  options_.admission.queue_budget = std::chrono::nanoseconds(1);
  start();
  vectors(embed_texts({"its time tells the speed"}));
  const auto bulk = [](const std::string& text) {
    return EmbedCall{.options = {.lane = Lane::Bulk}, .texts = {text}};
  };
  std::optional<Answer> refused;
  const auto answer = wait_for<Answer>([&](auto on_done) {
    service_->embed(bulk("alone"), [](const Answer&) {});
    service_->embed(bulk("second"), [&](Answer given) { refused = std::move(given); });
    service_->embed(EmbedCall{.texts = {"query"}}, on_done);
  });
  ASSERT_TRUE(refused);
  EXPECT_EQ(error(*refused).kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(vectors(answer).rows[0], echo_of("query").first);
}

TEST_F(InferenceServiceTest, LoadsAndUnloadsModelsWhileItRuns) {
  start();
  using Loaded = Result<ServedModelStatus>;
  // Another pooling: the echo names its model, so that equal models would not agree on a canary.
  const ServedModel second{.name = "second", .model = tiny(), .pooling = Pooling::Cls};
  const auto loaded =
      wait_for<Loaded>([&](auto on_done) { service_->load_model(second, on_done); });
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->state, ModelState::Ready);
  const EmbedCall call{.options = {.model = "second"}, .texts = {"hello"}};
  EXPECT_EQ(vectors(embed(call)).model, "second");

  const auto again = wait_for<Loaded>([&](auto on_done) { service_->load_model(second, on_done); });
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, "a model of that name is there: second");

  // Unloaded while a call of it waits: that one is still answered.
  const EmbedCall last{.options = {.model = "second"}, .texts = {"the last one"}};
  const auto answer = wait_for<Answer>([&](auto on_done) {
    service_->embed(last, on_done);
    EXPECT_TRUE(service_->unload_model("second"));
    service_->embed(call,
                    [](const Answer& late) { EXPECT_EQ(error(late).kind, ErrorKind::NotFound); });
  });
  EXPECT_EQ(vectors(answer).rows[0], echo_of("the last one").first);
  EXPECT_EQ(service_->models().size(), 1U);
}

// As a request may name it: by its folder, or by the last part of a hub id.
TEST_F(InferenceServiceTest, AModelIsUnloadedByAnyOfItsNames) {
  for (const auto& name : {tiny(), std::string("small"), std::string("org/small")}) {
    options_.models = {{.name = "org/small", .model = tiny()}};
    start();
    EXPECT_TRUE(service_->unload_model(name)) << name;
    EXPECT_TRUE(service_->models().empty()) << name;
    const auto again = service_->unload_model(name);
    ASSERT_FALSE(again) << name;
    EXPECT_EQ(again.error().kind, ErrorKind::NotFound) << name;
  }
}

// The load of the second model never ends in the workers: whoever asked for it is told when it is
// unloaded, and so is who unloads it.
TEST_F(InferenceServiceTest, AnswersALoadWhoseModelIsUnloadedMeanwhile) {
  ::setenv("ZERO_WORKER", "echo dim=32 hang_load=2", 1);
  start();
  using Loaded = Result<ServedModelStatus>;
  bool is_unloaded = false;
  std::function<void()> unload = [&] {
    is_unloaded = is_unloaded || service_->unload_model("second").has_value();
    if (!is_unloaded) loop_.post(unload);  // it is still being read
  };
  const auto loaded = wait_for<Loaded>([&](auto on_done) {
    service_->load_model({.name = "second", .model = tiny(), .precision = Precision::Fp32},
                         on_done);
    unload();
  });
  EXPECT_TRUE(is_unloaded);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::Cancelled);
  EXPECT_EQ(loaded.error().message, "the model was unloaded while it was loading: second");
}

TEST_F(InferenceServiceTest, TheStartCanBeCancelledWhileAPrecisionIsMeasured) {
  ::setenv("ZERO_WORKER", "hang_probe", 1);
  const auto service = InferenceService::start(
      options_, loop_,
      {.on_notice = [](const std::string&, const std::optional<std::string>&) {},
       .on_fatal = [](const Error&) {},
       .is_cancelled = [] { return has_stopped_child(); }},
      clock_);
  ASSERT_FALSE(service);
  EXPECT_EQ(service.error().kind, ErrorKind::Cancelled);
}

// The worker that measures aside stops, and nobody waits for it: the service ends all the same.
TEST_F(InferenceServiceTest, EndsWhileAPrecisionIsMeasuredAside) {
  options_.models.front().precision = Precision::Fp32;
  start();
  ::setenv("ZERO_WORKER", "hang_probe", 1);
  std::optional<Result<ServedModelStatus>> loaded;
  service_->load_model({.name = "second", .model = tiny()},
                       [&](const Result<ServedModelStatus>& told) { loaded = told; });
  run_until([] { return has_stopped_child(); });
  EXPECT_NE(notices_.find("second: measuring which precision is fastest here"), std::string::npos)
      << notices_;
  bool is_drained = false;
  service_->drain([&] { is_drained = true; });
  EXPECT_TRUE(is_drained);
  ASSERT_TRUE(loaded) << "a server waits until all is answered";
  ASSERT_FALSE(*loaded);
  EXPECT_EQ(loaded->error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(loaded->error().message, "the server ended before the answer");
  service_.reset();  // for ever, if it waits for the measurement
  EXPECT_FALSE(has_stopped_child());
}

// Its worker would stop there, and the load would never be answered.
TEST_F(InferenceServiceTest, NothingIsMeasuredWhereEveryDeviceIsDrained) {
  options_.models.front().precision = Precision::Fp32;
  start();
  for (const std::size_t device : {0U, 1U}) service_->fleet_admin().drain(device);
  ::setenv("ZERO_WORKER", "hang_probe", 1);
  using Loaded = Result<ServedModelStatus>;
  const auto loaded = wait_for<Loaded>(
      [&](auto on_done) { service_->load_model({.name = "second", .model = tiny()}, on_done); });
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::Unavailable);
  EXPECT_FALSE(has_stopped_child());
}

// The first one's worker that measures has stopped: the load would never be answered.
TEST_F(InferenceServiceTest, ADeviceThatIsDrainedIsMeasuredOnNoLonger) {
  options_.models.front().precision = Precision::Fp32;
  start();
  ::setenv("ZERO_WORKER", "hang_probe", 1);
  std::optional<Result<ServedModelStatus>> loaded;
  service_->load_model({.name = "second", .model = tiny(), .pooling = Pooling::Cls},
                       [&](const Result<ServedModelStatus>& told) { loaded = told; });
  run_until([] { return has_stopped_child(); });
  ::setenv("ZERO_WORKER", "echo dim=32", 1);
  service_->fleet_admin().drain(0);
  run_until([&] { return loaded.has_value(); });
  ASSERT_TRUE(*loaded) << loaded->error().message;
  EXPECT_FALSE(has_stopped_child());
}

TEST_F(InferenceServiceTest, ADeviceWhoseWorkersEndIsNotMeasured) {
  options_.models.front().precision = Precision::Fp32;
  ::setenv("ZERO_WORKER", "dim=32 exit_on=0", 1);
  start();
  using Loaded = Result<ServedModelStatus>;
  const auto loaded = wait_for<Loaded>(
      [&](auto on_done) { service_->load_model({.name = "second", .model = tiny()}, on_done); });
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_NE(notices_.find("second: measuring which precision is fastest here"), std::string::npos)
      << notices_;
}

// The worker of cpu:0 is well, and those that would measure there end.
TEST_F(InferenceServiceTest, WhereWorkersThatMeasureEndAnotherDeviceIsMeasured) {
  options_.models.front().precision = Precision::Fp32;
  ::setenv("ZERO_WORKER", "dim=32", 1);
  start();
  ::setenv("ZERO_WORKER", "dim=32 exit_on=0", 1);
  using Loaded = Result<ServedModelStatus>;
  const auto loaded = wait_for<Loaded>(
      [&](auto on_done) { service_->load_model({.name = "second", .model = tiny()}, on_done); });
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_NE(notices_.find("second: its precision is settled on cpu:1 instead: cpu:0: worker ended "
                          "with exit code 3; it last said: told to exit\n"),
            std::string::npos)
      << notices_;
}

// No model was to be on it until now, and its worker has not greeted yet.
TEST_F(InferenceServiceTest, WhereWorkersThatMeasureEndADeviceThatStillStartsIsWaitedFor) {
  options_.models.front().precision = Precision::Fp32;
  options_.models.front().devices = {"cpu:0"};
  ::setenv("ZERO_WORKER", "dim=32", 1);
  start();
  ::setenv("ZERO_WORKER", "dim=32 exit_on=0 stop_on=1", 1);
  std::optional<Result<ServedModelStatus>> loaded;
  service_->load_model({.name = "second", .model = tiny()},
                       [&](const Result<ServedModelStatus>& told) { loaded = told; });
  const std::string told =
      "second: its precision waits for a device that starts: cpu:0: worker ended with exit code 3";
  run_until([&] { return loaded || notices_.find(told) != std::string::npos; });
  ASSERT_FALSE(loaded) << loaded->error().message;
  run_until([] { return has_stopped_child(); });
  ::setenv("ZERO_WORKER", "dim=32", 1);
  const auto pid = service_->fleet().groups[1].pid();
  ASSERT_TRUE(pid);
  ::kill(*pid, SIGCONT);
  run_until([&] { return loaded.has_value(); });
  ASSERT_TRUE(*loaded) << loaded->error().message;
  EXPECT_NE(notices_.find("second: its precision is settled on cpu:1 instead: "), std::string::npos)
      << notices_;
}

// cpu:0 serves, and is not measured again.
TEST_F(InferenceServiceTest, WhereTheOtherDeviceIsDrainedThenALoadIsToldHowTheFirstWorkersEnded) {
  options_.models.front().precision = Precision::Fp32;
  ::setenv("ZERO_WORKER", "dim=32", 1);
  start();
  ::setenv("ZERO_WORKER", "dim=32 exit_on=0 hang_probe", 1);
  std::optional<Result<ServedModelStatus>> loaded;
  service_->load_model({.name = "second", .model = tiny()},
                       [&](const Result<ServedModelStatus>& told) { loaded = told; });
  run_until([] { return has_stopped_child(); });
  service_->fleet_admin().drain(1);
  run_until([&] { return loaded.has_value(); });
  ASSERT_FALSE(*loaded);
  EXPECT_EQ(loaded->error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(loaded->error().message,
            "no device can work: cpu:0: worker ended with exit code 3; it last said: told to exit");
}

// cpu:1 is measured, whose engine is another one.
TEST_F(InferenceServiceTest, AVerdictIsKeptForTheDeviceThatWasMeasured) {
  options_.models.front().precision = Precision::Fp32;
  ::setenv("ZERO_WORKER", "dim=32 other_on=1", 1);
  start();
  const auto is_measured = [this](const std::string& name) {
    const auto loaded = wait_for<Result<ServedModelStatus>>(
        [&](auto on_done) { service_->load_model({.name = name, .model = tiny()}, on_done); });
    EXPECT_TRUE(loaded) << loaded.error().message;
    return notices_.find(name + ": measuring which precision") != std::string::npos;
  };
  service_->fleet_admin().drain(0);
  EXPECT_TRUE(is_measured("second"));
  EXPECT_FALSE(is_measured("third")) << "it is kept for cpu:1";
  service_->fleet_admin().resume(0);
  EXPECT_TRUE(is_measured("fourth")) << "nothing is kept for cpu:0";
  EXPECT_FALSE(is_measured("fifth"));
}

// The worker of cpu:0 ends at it, before the server listens.
TEST_F(InferenceServiceTest, AVerdictOfTheStartIsKeptForTheDeviceThatWasMeasured) {
  const auto is_measured = [this](const char* orders) {
    ::setenv("ZERO_WORKER", orders, 1);
    service_.reset();
    notices_.clear();
    start();
    return notices_.find("tiny: measuring which precision") != std::string::npos;
  };
  EXPECT_TRUE(is_measured("dim=32 other_on=1 abort_probe=0"));
  EXPECT_NE(notices_.find("precisions are measured here, as the worker on cpu:0 ended"),
            std::string::npos)
      << notices_;
  EXPECT_TRUE(is_measured("dim=32 other_on=1")) << "nothing is kept for cpu:0";
  EXPECT_FALSE(is_measured("dim=32 other_on=1"));
}

TEST_F(InferenceServiceTest, AModelThatCannotBeLoadedIsAnErrorAndNotTheEnd) {
  start();
  using Loaded = Result<ServedModelStatus>;
  const ServedModel absent{.model = (folder_ / "nothing").string()};
  EXPECT_FALSE(wait_for<Loaded>([&](auto on_done) { service_->load_model(absent, on_done); }));
  EXPECT_EQ(vectors(embed_texts({"still here"})).rows[0], echo_of("still here").first);
}

TEST_F(InferenceServiceTest, DrainsWhatItHasAndRefusesWhatIsNew) {
  start();
  std::optional<Answer> first;
  std::optional<Answer> second;
  loop_.post([&] {
    service_->embed(EmbedCall{.texts = {"in flight"}},
                    [&](Answer answer) { first = std::move(answer); });
    service_->drain([&] { loop_.stop(); });
    service_->embed(EmbedCall{.texts = {"new"}},
                    [&](Answer answer) { second = std::move(answer); });
  });
  loop_.run();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(vectors(*first).rows[0], echo_of("in flight").first);
  EXPECT_EQ(error(*second).kind, ErrorKind::Unavailable);
  EXPECT_TRUE(std::get<CallError>(*second).retry_after);
  EXPECT_FALSE(service_->is_ready());
}

// Which of its rows were wrong nobody knows.
TEST_F(InferenceServiceTest, RowsOfADeviceThatTurnsOutWrongAreNotKept) {
  options_.devices.resize(1);
  start();
  (void)vectors(embed_texts({"q"}));
  ASSERT_EQ(service_->status().cache.entry_count, 1U);
  ::setenv("ZERO_WORKER", "dim=32", 1);  // zeros, also for the canary
  service_->fleet_admin().restart(0);
  run_until([&] { return service_->status().cache.entry_count == 0; });
  EXPECT_NE(notices_.find("the cache is emptied: cpu:0 gave a wrong vector"), std::string::npos)
      << notices_;
}

// A server that generates alone, say: a worker for vectors would have nothing to do.
TEST_F(InferenceServiceTest, WithoutAModelNoWorkerRunsUntilOneIsLoaded) {
  options_.models.clear();
  start();
  using Loaded = Result<ServedModelStatus>;
  const ServedModel absent{.model = (folder_ / "nothing").string()};
  EXPECT_FALSE(wait_for<Loaded>([&](auto on_done) { service_->load_model(absent, on_done); }));
  for (const auto& device : service_->fleet().groups) {
    EXPECT_EQ(device.state, GroupState::Idle);
    EXPECT_EQ(device.pid(), std::nullopt);
  }
  const ServedModel first{.name = "first", .model = tiny(), .devices = {"cpu:1"}};
  const auto loaded = wait_for<Loaded>([&](auto on_done) { service_->load_model(first, on_done); });
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(vectors(embed_texts({"hello"})).rows[0], echo_of("hello").first);
  const auto devices = service_->fleet().groups;
  EXPECT_EQ(devices[0].state, GroupState::Idle) << "the model is not to be there";
  EXPECT_TRUE(devices[1].pid());
  EXPECT_EQ(devices[1].restart_count, 0U);
}

TEST_F(InferenceServiceTest, ALoadIsToldThatTheWorkersOfAnIdleDeviceCannotStart) {
  options_.models.clear();
  start();
  ::setenv("ZERO_WORKER", "exit_at_start", 1);
  using Loaded = Result<ServedModelStatus>;
  const ServedModel first{.name = "first", .model = tiny(), .devices = {"cpu:0"}};
  const auto loaded = wait_for<Loaded>([&](auto on_done) { service_->load_model(first, on_done); });
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::Unavailable);
  EXPECT_FALSE(service_->roster().has_name("first"));
}

// A call keeps the old one there: its text is with no worker before the loop runs.
TEST_F(InferenceServiceTest, AModelThatStillEndsItsCallsNeitherCountsNorKeepsItsName) {
  ::setenv("ZERO_WORKER", "dim=32", 1);  // the same row whatever the model is called
  options_.models_most = 1;
  start();
  using Loaded = Result<ServedModelStatus>;
  std::optional<Answer> last;
  const auto again = wait_for<Loaded>([&](auto on_done) {
    service_->embed(EmbedCall{.texts = {"the last one"}},
                    [&](Answer answer) { last = std::move(answer); });
    EXPECT_TRUE(service_->unload_model("tiny"));
    service_->load_model({.name = "tiny", .model = tiny()}, on_done);
  });
  ASSERT_TRUE(again) << again.error().message;
  run_until([&] { return last.has_value(); });
  EXPECT_EQ(vectors(*last).model, "tiny");
}

// A device that has nothing to load is not starting for ever.
TEST_F(InferenceServiceTest, ADeviceIsReadyWithoutAModelToo) {
  start();
  run_until([&] { return service_->is_ready(); });
  ASSERT_TRUE(service_->unload_model("tiny"));
  const auto pid = service_->fleet().groups[0].pid();
  service_->fleet_admin().restart(0);
  run_until([&] {
    const auto device = service_->fleet().groups[0];
    return device.state == GroupState::Ready && device.pid() != pid && device.models.empty();
  });
  EXPECT_EQ(service_->fleet().groups[0].reason, "");
}

}  // namespace
}  // namespace muster
