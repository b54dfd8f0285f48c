// Whole runs over real files against a server of the test's own, which answers as it is told; the
// real one is in tests/integration. A row is [bytes of the text, 1].

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "dataset/vector_file.h"
#include "jobs/embed_fixture.h"
#include "jobs/finished_output.h"
#include "net/http_server.h"

namespace muster {
namespace {

using Json = nlohmann::json;

std::string base64_of(const std::array<float, 2>& row) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<unsigned char, 9> bytes{};
  std::memcpy(bytes.data(), row.data(), sizeof row);
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const unsigned group = (static_cast<unsigned>(bytes[i]) << 16) |
                           (static_cast<unsigned>(bytes[i + 1]) << 8) | bytes[i + 2];
    for (const int shift : {18, 12, 6, 0}) out += kDigits[(group >> shift) & 63];
  }
  out.back() = '=';  // the ninth byte is none
  return out;
}

HttpResponse json_response(const Json& json, int status = 200, HttpHeaders headers = {}) {
  return {.status = status,
          .content_type = "application/json",
          .body = json.dump(),
          .headers = std::move(headers)};
}

HttpResponse refusal(int status, const std::string& message, HttpHeaders headers = {}) {
  return json_response({{"error", {{"message", message}, {"param", nullptr}}}}, status,
                       std::move(headers));
}

class RemoteEmbedTest : public EmbedFixture {
 protected:
  RemoteEmbedTest() : EmbedFixture("remote_embed") {
    options_.model = "org/tiny";
    model_ = {{"id", "org/tiny"},
              {"task", "embed"},
              {"state", "ready"},
              {"path", "/models/tiny"},
              {"dim", 2},
              {"length_max", 32},
              {"prompts", {"query"}},
              {"default_prompt", ""},
              {"pooling", "mean"},
              {"normalize", false},
              {"precision", "fp32"},
              {"precision_reason", "asked for"},
              {"equality_class", "abc fp32 zero"}};
    start_server(0);
    options_.server =
        EmbedServer{.access = {.url = "http://127.0.0.1:" + std::to_string(server_->port())},
                    .first_wait = std::chrono::milliseconds(1)};
  }
  ~RemoteEmbedTest() override { server_.reset(); }

  void start_server(std::uint16_t port) {
    HttpServerOptions options;
    options.listen = {.host = "127.0.0.1", .port = port};
    auto server =
        HttpServer::start(options, [this](const HttpRequest& request, const HttpRespond& respond) {
          respond(answer(request));
        });
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  // On the server's thread.
  HttpResponse answer(const HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    if (request.method == "GET") return json_response(model_);
    const auto body = Json::parse(request.body);
    const auto texts = body["input"].get<std::vector<std::string>>();
    const bool wants_rows = request.path == "/v1/embeddings";
    if (wants_rows) {
      ++request_count_;
      text_count_most_ = std::max(text_count_most_, texts.size());
      if (refuse_) {
        if (auto refused = refuse_(texts)) return *std::move(refused);
      }
    }
    Json data = Json::array();
    for (const auto& text : texts) {
      const auto size = static_cast<float>(text.size());
      Json item{{"index", data.size()}};
      if (wants_rows) item["embedding"] = base64_of({size, 1.0F});
      if (!wants_rows) {
        item["count"] = text.size();
        item["truncated"] = text.size() > 9;
      }
      data.push_back(std::move(item));
    }
    return json_response({{"data", std::move(data)}});
  }

  void write_lines(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += std::string(static_cast<std::size_t>(i % 13), 'x') + std::to_string(i) + "\n";
    }
    write_input("in.txt", text);
  }

  /// Every row is that of its line.
  void expect_rows(std::uint64_t count) {
    const auto vectors = VectorFile::open(options_.out);
    ASSERT_TRUE(vectors) << vectors.error().message;
    ASSERT_EQ((*vectors)->row_count(), count);
    std::ifstream lines(folder_ / "in.txt");
    std::string line;
    for (std::uint64_t row = 0; std::getline(lines, line); ++row) {
      ASSERT_EQ((*vectors)->row(row)[0], static_cast<float>(line.size())) << row;
    }
  }

  std::unique_ptr<HttpServer> server_;

  std::mutex mutex_;  // of what the server's thread looks at
  Json model_;
  std::function<std::optional<HttpResponse>(const std::vector<std::string>&)> refuse_;
  int request_count_ = 0;
  std::size_t text_count_most_ = 0;
};

TEST_F(RemoteEmbedTest, FieldsAreKeptHereAndTheServerHearsOfTextsAlone) {
  write_input("in.jsonl", "{\"doc\":{\"text\":\"abc\"},\"lang\":\"de\"}\n");
  options_.input.field = "doc.text";
  options_.input.keep = {"lang"};
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  const auto entry = read_index_entries(index_path_of(options_.out), std::vector<std::uint64_t>{0});
  ASSERT_TRUE(entry) << entry.error().message;
  EXPECT_EQ(entry->front().fields, R"({"lang":"de"})");
  EXPECT_EQ((*VectorFile::open(options_.out))->row(0)[0], 3);
}

TEST_F(RemoteEmbedTest, WritesARowForEveryLineInInputOrder) {
  write_lines(5000);
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  expect_rows(5000);
  EXPECT_EQ(report->equality_class, "abc fp32 zero");
  EXPECT_EQ(report->dim, 2U);
  EXPECT_EQ(report->progress.devices.at(0).text_count, 5000U);
  EXPECT_FALSE(report->worker_cpu_seconds);
  EXPECT_EQ(text_count_most_, 64U);
  const auto index = read_file(index_path_of(options_.out));
  // Line 12 is eleven x and "11": 13 bytes, which this server calls tokens, and cut.
  EXPECT_NE(index->find(R"("line":12,"tokens":13,"truncated":true)"), std::string::npos);
  EXPECT_NE(read_file(folder_ / "out.npy.run.json")->find(R"("model_hash": "abc")"),
            std::string::npos);
}

TEST_F(RemoteEmbedTest, AnEmptyInputGivesAnEmptyMatrix) {
  write_lines(0);
  ASSERT_TRUE(run());
  EXPECT_EQ((*VectorFile::open(options_.out))->dim(), 2U);
}

TEST_F(RemoteEmbedTest, AsksAgainWhenItIsRefusedForNow) {
  write_lines(300);
  int refused_count = 0;
  refuse_ = [&](const auto&) -> std::optional<HttpResponse> {
    if (++refused_count > 40) return std::nullopt;
    return refusal(refused_count % 2 == 0 ? 429 : 503, "later", {{"Retry-After", "0"}});
  };
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  expect_rows(300);
  EXPECT_GT(refused_count, 40);
}

// One request never ends, and all that is behind it is done before its turn.
TEST_F(RemoteEmbedTest, AResumedRunDoesNotAskAgainForWhatWasDoneBeforeItsTurn) {
  write_lines(3000);
  ASSERT_TRUE(run());
  const auto undisturbed = output_bytes();
  std::filesystem::remove(options_.out);
  std::filesystem::remove(index_path_of(options_.out));
  refuse_ = [](const auto& texts) -> std::optional<HttpResponse> {
    if (texts.front() != "0") return std::nullopt;         // the first line
    return refusal(503, "later", {{"Retry-After", "1"}});  // asked for ten minutes at most
  };
  last_ = {};
  const auto stopped =
      run([this] { return !last_.devices.empty() && last_.devices[0].text_count >= 2000; });
  ASSERT_FALSE(stopped);
  ASSERT_EQ(stopped.error().kind, ErrorKind::Cancelled) << stopped.error().message;
  EXPECT_EQ(last_.text_count, 0U) << "nothing could be written";
  const auto kept_count = kept_record_count(RunFiles(options_.out));
  ASSERT_TRUE(kept_count) << kept_count.error().message;
  EXPECT_GE(*kept_count, 2000U);

  // What the stopped run had sent may still lie before the server: it is not to be counted.
  const auto port = server_->port();
  server_.reset();
  start_server(port);
  std::multiset<std::string> asked;
  refuse_ = [&](const auto& texts) -> std::optional<HttpResponse> {
    asked.insert(texts.begin(), texts.end());
    return std::nullopt;
  };
  options_.resume = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.resumed_count, *kept_count);
  EXPECT_EQ(report->progress.text_count, 3000 - *kept_count);
  EXPECT_EQ(asked.size(), 3000 - *kept_count);
  EXPECT_EQ(asked.count("0"), 1U);
  EXPECT_TRUE(output_bytes() == undisturbed);
  EXPECT_FALSE(std::filesystem::exists(RunFiles(options_.out).ahead));
}

TEST_F(RemoteEmbedTest, WaitsForAModelThatIsLoading) {
  write_lines(3);
  model_["state"] = "loading";
  model_["dim"] = nullptr;
  // The notice comes when it has been seen loading.
  const CorpusEvents events{.on_progress = [](const CorpusProgress&) {},
                            .on_notice =
                                [this](const std::string& notice) {
                                  notices_ += notice + "\n";
                                  const std::lock_guard lock(mutex_);
                                  model_["state"] = "ready";
                                  model_["dim"] = 2;
                                }};
  const auto report = embed_corpus(options_, events, clock_, [] { return false; });
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_NE(notices_.find("is loading org/tiny; trying again"), std::string::npos) << notices_;
  expect_rows(3);
}

// Nobody knows when they come back: what is asked for now cannot be had.
TEST_F(RemoteEmbedTest, AModelWhoseDevicesAreAllDrainedEndsTheRunAtOnce) {
  write_lines(3);
  model_["state"] = "drained";
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(refused.error().message, "every device of org/tiny is drained; muster ctl resume all");
  EXPECT_EQ(notices_.find("is loading"), std::string::npos) << notices_;
  EXPECT_FALSE(std::filesystem::exists(options_.out));
}

// Its requests are refused until they come back; the rows that have come are as they would be.
TEST_F(RemoteEmbedTest, ADrainInTheMiddleOfARunLosesNoRows) {
  write_lines(300);
  refuse_ = [this](const auto&) -> std::optional<HttpResponse> {
    if (request_count_ == 1) {
      model_["state"] = "drained";
      return std::nullopt;
    }
    if (request_count_ < 10) return refusal(503, "every device is drained", {{"Retry-After", "0"}});
    model_["state"] = "ready";
    return std::nullopt;
  };
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  expect_rows(300);
}

TEST_F(RemoteEmbedTest, OnlyTheTextThatTheServerCannotDoFails) {
  write_lines(400);
  // Line 100 is "xxxxxxxx99" with its number behind.
  refuse_ = [](const auto& texts) -> std::optional<HttpResponse> {
    for (const auto& text : texts) {
      if (text.ends_with("xx99")) return refusal(400, "that one is too hot");
    }
    return std::nullopt;
  };
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, (folder_ / "in.txt").string() +
                                         ":100: the server says 400: that one is too hot; "
                                         "--skip-bad goes on without such records");
  EXPECT_FALSE(std::filesystem::exists(options_.out));

  options_.skip_bad = true;
  options_.restart = true;  // what the first run has finished is not kept
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.text_count, 399U);
  EXPECT_EQ(report->progress.bad_count, 1U);
  EXPECT_NE(read_file(index_path_of(options_.out))->find("that one is too hot"), std::string::npos);
}

TEST_F(RemoteEmbedTest, ARefusalThatIsNotOfATextEndsTheRun) {
  write_lines(200);
  options_.skip_bad = true;
  for (const auto& [status, kind] :
       {std::pair(401, ErrorKind::InvalidArgument), std::pair(404, ErrorKind::NotFound)}) {
    {
      const std::lock_guard lock(mutex_);
      request_count_ = 0;
      refuse_ = [status = status](const auto&) { return refusal(status, "no"); };
    }
    const auto report = run();
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().kind, kind);
    // None of the eight connections asked for its texts one by one.
    const std::lock_guard lock(mutex_);
    EXPECT_LE(request_count_, 8);
  }
}

TEST_F(RemoteEmbedTest, AServerThatComputesInAnotherWayMeanwhileIsNotTaken) {
  write_lines(5000);
  refuse_ = [this](const auto&) -> std::optional<HttpResponse> {
    if (request_count_ == 20) model_["equality_class"] = "abc bf16 zero";
    return std::nullopt;
  };
  const auto report = run();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::Unavailable);
  EXPECT_NE(report.error().message.find("its class was abc fp32 zero and is abc bf16 zero"),
            std::string::npos)
      << report.error().message;
  // What --resume finds is of the first class, and is not mixed with the other.
  options_.resume = true;
  EXPECT_NE(run().error().message.find("the equality class"), std::string::npos);
}

TEST_F(RemoteEmbedTest, AServerThatGoesAndComesBackCostsNothing) {
  write_lines(20'000);
  const auto port = server_->port();
  options_.server->first_wait = std::chrono::milliseconds(50);
  bool was_gone = false;
  // It is gone when rows have been written, and back when the run has noticed.
  const CorpusEvents events{.on_progress = [](const CorpusProgress&) {},
                            .on_notice =
                                [&](const std::string& notice) {
                                  notices_ += notice + "\n";
                                  if (!server_) start_server(port);
                                }};
  const auto look = [&] {
    const std::lock_guard lock(mutex_);
    return request_count_ > 30;
  };
  const auto report = embed_corpus(options_, events, clock_, [&] {
    if (!was_gone && look()) {
      was_gone = true;
      server_.reset();
    }
    return false;
  });
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(was_gone);
  EXPECT_GE(report->progress.devices.at(0).restart_count, 1U);
  EXPECT_NE(notices_.find("; trying again"), std::string::npos) << notices_;
  EXPECT_NE(notices_.find("answers again"), std::string::npos) << notices_;
  expect_rows(20'000);
}

TEST_F(RemoteEmbedTest, AServerThatStaysAwayEndsTheRunWithItsAddress) {
  write_lines(10);
  const auto address = "127.0.0.1:" + std::to_string(server_->port());
  server_.reset();
  const auto report = run();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(report.error().message, address + ": cannot connect: Connection refused (9 tries)");
}

TEST_F(RemoteEmbedTest, GoesOnAfterCancellationWithTheSameBytes) {
  write_lines(20'000);
  ASSERT_TRUE(run());
  const auto undisturbed = output_bytes();
  std::filesystem::remove(options_.out);
  std::filesystem::remove(index_path_of(options_.out));

  request_count_ = 0;
  const auto cancelled = run([this] {
    const std::lock_guard lock(mutex_);
    return request_count_ > 100;
  });
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().kind, ErrorKind::Cancelled);
  EXPECT_FALSE(std::filesystem::exists(options_.out));

  options_.resume = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->progress.resumed_count, 0U);
  EXPECT_EQ(report->progress.resumed_count + report->progress.text_count, 20'000U);
  EXPECT_TRUE(output_bytes() == undisturbed);
}

TEST_F(RemoteEmbedTest, RefusesAPromptThatTheModelLacksAndAModelThatRanks) {
  write_lines(1);
  options_.prompt_name = "qeury";
  EXPECT_EQ(run().error().message,
            "the model has no prompt of that name: qeury; did you mean query?");
  options_.prompt_name.reset();
  model_["task"] = "rerank";
  EXPECT_EQ(run().error().kind, ErrorKind::Unsupported);
}

}  // namespace
}  // namespace muster
