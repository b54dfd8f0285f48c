// The whole service on real worker processes (tests/zero_worker in echo mode: a row is [sum of ids,
// token count, 0, …], so every row names its text).

#include "service/inference_service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "tokenizer/tokenizer.h"

namespace muster {
namespace {

using Answer = std::variant<EmbedAnswer, CallError>;

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
    options_.worker_program = std::string(MUSTER_BINARY_DIR) + "/bin/zero_worker";
    options_.cache_folder = folder_ / "cache";
    options_.canary_period = {};
  }
  ~InferenceServiceTest() override {
    service_.reset();
    ::unsetenv("ZERO_WORKER");
    std::filesystem::remove_all(folder_);
  }

  static std::string tiny() {
    return std::string(MUSTER_SOURCE_DIR) + "/src/service/testdata/tiny";
  }

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

  Answer embed(EmbedCall call) {
    return wait_for<Answer>([&](auto on_done) { service_->embed(call, on_done); });
  }
  Answer embed_texts(std::vector<std::string> texts) {
    return embed(EmbedCall{.texts = std::move(texts)});
  }

  /// What a text's row must begin with: the sum of its ids, and their number.
  static std::pair<float, float> echo_of(const std::string& text) {
    const auto tokenizer = *Tokenizer::load(tiny() + "/tokenizer.json");
    const auto scratch = tokenizer->make_scratch();
    std::vector<TokenId> ids;
    tokenizer->encode(text, 32, *scratch, ids);
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

const EmbedAnswer& vectors(const Answer& answer) {
  const auto* failed = std::get_if<CallError>(&answer);
  EXPECT_EQ(failed, nullptr) << (failed ? failed->error.message : "");
  return std::get<EmbedAnswer>(answer);
}

const Error& error(const Answer& answer) { return std::get<CallError>(answer).error; }

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

TEST_F(InferenceServiceTest, TakesTokenIdsAsTheyAre) {
  start();
  const auto answer = embed(EmbedCall{.ids = {{5, 6, 7}, {9}}});
  const auto& got = vectors(answer);
  EXPECT_EQ(got.rows[0], 18.0F);
  EXPECT_EQ(got.rows[got.dim], 9.0F);
  EXPECT_EQ(got.token_count, 4U);
  const auto refused = embed(EmbedCall{.ids = {{5}, {1'000'000}}});
  EXPECT_EQ(error(refused).kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(std::get<CallError>(refused).field, CallField::TokenIds);
  EXPECT_EQ(error(embed(EmbedCall{.ids = {{}}})).kind, ErrorKind::InvalidArgument);
}

TEST_F(InferenceServiceTest, RefusesAModelThatIsNotServedNamingTheNearest) {
  start();
  const auto answer = embed(EmbedCall{.options = {.model = "tinny"}, .texts = {"a"}});
  EXPECT_EQ(error(answer).kind, ErrorKind::NotFound);
  EXPECT_EQ(error(answer).message, "the model does not exist: tinny; did you mean tiny?");
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
  EXPECT_EQ(service_->fleet().pending_count(), 0U);
}

TEST_F(InferenceServiceTest, ACallPastItsDeadlineIsToldSo) {
  start();
  const auto answer =
      embed(EmbedCall{.options = {.deadline = std::chrono::nanoseconds(1)}, .texts = {"too late"}});
  EXPECT_EQ(error(answer).kind, ErrorKind::DeadlineExceeded);
  EXPECT_EQ(service_->status().expired_count, 1U);
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

}  // namespace
}  // namespace muster
