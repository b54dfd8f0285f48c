#include "serving/corpus_searches.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <mutex>
#include <optional>

#include "modelfile/model_folder.h"
#include "serving/corpus_fixture.h"

namespace muster {
namespace {

using Outcome = std::variant<QueryHits, CallError>;

const std::filesystem::path kTiny = std::filesystem::path(MUSTER_SOURCE_DIR) / "tests/models/tiny";

class CorpusSearchesTest : public testing::Test {
 protected:
  CorpusSearchesTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("corpus_searches." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    write_corpus(folder_ / "notes.npy", kTiny, {"lang"},
                 {{.text = "one", .values = {1, 0}, .fields = R"({"lang":"de"})"},
                  {.text = "two", .values = {4, 3}, .fields = R"({"lang":"en"})"},
                  {.text = "three", .values = {0, 1}}});
    model_.name = "tiny";
    model_.hash = *model_hash(kTiny);
  }
  ~CorpusSearchesTest() override {
    searches_.reset();
    std::filesystem::remove_all(folder_);
  }

  Status open(const std::vector<std::string>& names = {"notes"}) {
    std::vector<SearchedOutput> outputs;
    for (const auto& name : names) outputs.push_back({.name = name, .out = folder_ / "notes.npy"});
    searches_ = MUSTER_TRY(CorpusSearches::open(outputs, {model_}, loop_, clock_));
    return Done{};
  }

  SearchCall call(std::vector<float> query) const {
    return {.corpus = &searches_->corpora().front(),
            .queries = {std::move(query)},
            .rank = {.count = 2},
            .filter = {},
            .deadline = clock_.now() + std::chrono::minutes(1),
            .queue_budget = std::chrono::seconds(1)};
  }

  /// Runs the loop until the search has ended.
  Outcome search(SearchCall call) {
    std::optional<Outcome> outcome;
    searches_->search(std::move(call), [&](Outcome ended) {
      outcome = std::move(ended);
      loop_.stop();
    });
    loop_.run();
    return *std::move(outcome);
  }

  static std::vector<std::uint64_t> rows_of(const Outcome& outcome) {
    const auto* hits = std::get_if<QueryHits>(&outcome);
    if (hits == nullptr) {
      ADD_FAILURE() << std::get_if<CallError>(&outcome)->error.message;
      return {};
    }
    std::vector<std::uint64_t> rows;
    for (const auto& hit : hits->front()) rows.push_back(hit.row);
    return rows;
  }

  static Error error_of(const Outcome& outcome) {
    const auto* error = std::get_if<CallError>(&outcome);
    EXPECT_NE(error, nullptr);
    return error == nullptr ? Error{} : error->error;
  }

  using Rows = std::vector<std::uint64_t>;

  const std::filesystem::path folder_;
  const SteadyClock clock_;
  EventLoop loop_;
  ServedModelStatus model_;
  std::unique_ptr<CorpusSearches> searches_;
};

TEST_F(CorpusSearchesTest, FindsTheNearestRowsBesideTheLoop) {
  ASSERT_TRUE(open());
  EXPECT_EQ(rows_of(search(call({1, 0}))), (Rows{0, 1}));  // cosines 1, 0.8, 0
  EXPECT_EQ(rows_of(search(call({0, 1}))), (Rows{2, 1}));  // 1, 0.6, 0
  auto filtered = call({1, 0});
  filtered.filter = *FieldFilter::parse("lang!=de", {std::vector<std::string>{"lang"}});
  EXPECT_EQ(rows_of(search(std::move(filtered))), (Rows{1, 2}));
  EXPECT_EQ(searches_->status().search_count, 3U);
  EXPECT_EQ(searches_->status().backlog_seconds, 0);
}

TEST_F(CorpusSearchesTest, AQueryOfAnotherLengthIsAnErrorOfTheCall) {
  ASSERT_TRUE(open());
  EXPECT_EQ(error_of(search(call({1, 0, 0}))).message,
            "the query has 3 values and the file's vectors have 2");
}

TEST_F(CorpusSearchesTest, ADeadlineThatIsOverEndsASearch) {
  ASSERT_TRUE(open());
  auto late = call({1, 0});
  late.deadline = clock_.now();
  EXPECT_EQ(error_of(search(std::move(late))).kind, ErrorKind::DeadlineExceeded);
}

TEST_F(CorpusSearchesTest, AFileThatWasWrittenIntoIsNotSearched) {
  ASSERT_TRUE(open());
  std::filesystem::resize_file(folder_ / "notes.npy", 100);
  const auto error = error_of(search(call({1, 0})));
  EXPECT_EQ(error.kind, ErrorKind::Unavailable);
  EXPECT_TRUE(
      error.message.starts_with("The index notes was written into since the server started"));
}

// A task before them holds the thread, so that the searches wait for certain.
TEST_F(CorpusSearchesTest, WhatWouldWaitTooLongIsRefusedAtOnceAndACancelledSearchMakesRoom) {
  ASSERT_TRUE(open());
  std::mutex gate;
  std::unique_lock closed(gate);
  searches_->thread().run(
      [&] {
        const std::lock_guard pass(gate);
        return true;
      },
      [this] { loop_.stop(); });
  const auto first = searches_->search(call({1, 0}), [](const Outcome&) { FAIL() << "cancelled"; });
  EXPECT_GT(searches_->status().backlog_seconds, 0);
  auto hasty = call({1, 0});
  hasty.queue_budget = {};
  std::optional<Outcome> refused;
  searches_->search(hasty, [&](Outcome outcome) { refused = std::move(outcome); });
  ASSERT_TRUE(refused);
  EXPECT_EQ(error_of(*refused).kind, ErrorKind::ResourceExhausted);
  EXPECT_TRUE(std::get_if<CallError>(&*refused)->retry_after);
  EXPECT_EQ(searches_->status().refused_count, 1U);
  searches_->cancel(first);
  EXPECT_EQ(searches_->status().backlog_seconds, 0);
  closed.unlock();
  loop_.run();
  EXPECT_EQ(rows_of(search(std::move(hasty))), (Rows{0, 1})) << "nothing waits any more";
}

TEST_F(CorpusSearchesTest, IndexesHaveNames) {
  ASSERT_TRUE(open());
  EXPECT_EQ((*searches_->find(""))->name, "notes");
  EXPECT_EQ((*searches_->find("notes"))->name, "notes");
  EXPECT_EQ(searches_->find("note").error().message, "no index note; did you mean notes?");
  EXPECT_EQ(searches_->find("note").error().kind, ErrorKind::NotFound);
  searches_.reset();
  ASSERT_TRUE(open({"notes", "faq"}));
  EXPECT_EQ(searches_->find("").error().message, "which index? There are notes, faq");
  EXPECT_EQ(searches_->find("xyz").error().message, "no index xyz; there is notes, faq");
}

TEST_F(CorpusSearchesTest, AServerWithoutAModelThatEmbedsSaysSo) {
  const auto refused =
      CorpusSearches::open({{.name = "notes", .out = folder_ / "notes.npy"}}, {}, loop_, clock_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(refused.error().message,
            (folder_ / "notes.npy").string() + " was made by " + kTiny.string() +
                ", and no model that embeds is served: serve that one, too");
}

TEST_F(CorpusSearchesTest, AnOutputOfAnotherModelIsRefusedInOneSentence) {
  model_.hash = "another";
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(refused.error().message,
            (folder_ / "notes.npy").string() + " was made by " + kTiny.string() +
                " as it was then, which is none of the models served (tiny): serve that one, too, "
                "or run muster embed again");
  model_.hash = *model_hash(kTiny);
  model_.pooling = Pooling::Cls;
  EXPECT_EQ(open().error().message,
            (folder_ / "notes.npy").string() +
                " was made with pooling mean, and tiny is served with cls: serve it with --pooling "
                "mean, or run muster embed again");
  model_.pooling = Pooling::Mean;
  std::filesystem::remove(folder_ / "notes.npy.run.json");
  EXPECT_EQ(open().error().kind, ErrorKind::NotFound);
}

}  // namespace
}  // namespace muster
