// muster embed --keep and -o -, muster search on what they leave, and muster serve --search.

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "net/http_client.h"
#include "run_muster.h"

namespace muster {
namespace {

using Words = std::vector<std::string>;
using Json = nlohmann::json;

// The test worker's row is [sum of ids, count of ids, model, 0, …].
class SearchCommand : public testing::Test {
 protected:
  SearchCommand() { muster_.set("ZERO_WORKER", "echo dim=32"); }

  void write_corpus() {
    muster_.write("in.jsonl",
                  R"({"doc":{"text":"a b c"},"id":"x","meta":{"year":2019},"lang":"de"})"
                  "\n"
                  R"({"doc":{"text":"the a"},"id":"y","meta":{"year":2021},"lang":"en"})"
                  "\n"
                  R"({"doc":{"text":"a"},"id":"x","tags":["new","old"]})"
                  "\n");
    embedded_ = embed({"in.jsonl", "-ox.npy", "--field", "doc.text", "--id-field", "id", "--keep",
                       "lang,meta.year", "--keep", "tags"});
    ASSERT_EQ(embedded_.exit_code, 0) << embedded_.err;
  }

  Finished embed(const Words& more, const std::string& input = "/dev/null") {
    Words words{"embed", tiny_model(), "--precision", "fp32"};
    words.insert(words.end(), more.begin(), more.end());
    return muster_.run(with_test_worker(words), input);
  }

  Finished search(const Words& more, const std::string& input = "/dev/null") {
    Words words{"search", "x.npy"};
    words.insert(words.end(), more.begin(), more.end());
    return muster_.run(with_test_worker(words), input);
  }

  std::vector<int> rows_of(Words more) {
    more.emplace_back("--json");
    const auto found = search(more);
    EXPECT_EQ(found.exit_code, 0) << found.err;
    std::vector<int> rows;
    if (found.exit_code != 0) return rows;
    const auto json = Json::parse(found.out);
    for (const auto& hit : json["hits"]) rows.push_back(hit["row"]);
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  void expect_refusal(const Finished& finished, const std::string& message) {
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(finished.err, "muster: " + message + "\n");
  }

  using Rows = std::vector<int>;

  Muster muster_{"search_command"};
  Finished embedded_;
};

TEST_F(SearchCommand, FindsWhatFitsTheFilter) {
  write_corpus();
  EXPECT_EQ(rows_of({"a"}), (Rows{0, 1, 2}));
  EXPECT_EQ(rows_of({"a", "--filter", "lang=de"}), (Rows{0}));
  EXPECT_EQ(rows_of({"a", "--filter", "meta.year>=2020 or tags=new"}), (Rows{1, 2}));
  EXPECT_EQ(rows_of({"a", "--filter", "not lang"}), (Rows{2}));
  EXPECT_EQ(rows_of({"a", "--filter", "lang=fr"}), (Rows{}));
  EXPECT_EQ(rows_of({"a", "--top", "1", "--filter", "lang!=de"}).size(), 1U);
  expect_refusal(search({"a", "--filter", "lang=de and meta.yaer>1"}),
                 "filter, column 13: no field \"meta.yaer\"; nearest is \"meta.year\"");
  expect_refusal(search({"a", "--filter", "meta.year > \"x\""}),
                 "filter, column 13: meta.year is a number, and \"x\" is a text: write a number "
                 "without quotes, as meta.year > 2019");
}

// It takes one device, and says which.
TEST_F(SearchCommand, NamesTheOneDeviceThatIsTakenWhereAGpuIsLost) {
  write_corpus();
  muster_.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster_.set("FAKENVML_SCENARIO", (muster_.folder() / "gpus.json").string());
  muster_.write("gpus.json", R"({"fake_nvml":1,"gpus":[
      {"model":"H200","lost":{"from":0}},{"model":"H200"},{"model":"H200"}]})");
  const auto found =
      muster_.run({"search", "x.npy", "a", "--devices", "cuda", "--torch-root", "torch",
                   "--worker-program", MUSTER_BINARY_DIR "/bin/zero_worker"});
  EXPECT_TRUE(found.err.starts_with(
      "muster: warning: cuda:0 is lost: GPU is lost (NVML 15); the work goes to cuda:1\n"))
      << found.err;
}

// The worker for the question starts when the vectors are mapped: it cuts their file.
TEST_F(SearchCommand, VectorsThatAreCutMeanwhileAreASentence) {
  write_corpus();
  const auto worker = muster_.folder() / "worker";
  muster_.write("worker", "#!/bin/sh\n: > '" + (muster_.folder() / "x.npy").string() +
                              "'\nexec '" MUSTER_BINARY_DIR "/bin/zero_worker' \"$@\"\n");
  std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
  const auto found = muster_.run({"search", "x.npy", "a", "--devices", "1xcpu", "--torch-root",
                                  "torch", "--worker-program", worker.string()});
  EXPECT_EQ(found.exit_code, 7);
  EXPECT_EQ(found.out, "");
  EXPECT_EQ(found.err, "muster: x.npy: another program has cut it shorter while it was read\n");
}

TEST_F(SearchCommand, ShowsKeptFieldsAndCountsTheDuplicateId) {
  write_corpus();
  EXPECT_NE(
      embedded_.out.find("\n1 record has the id of an earlier one, the first at in.jsonl:3\n"),
      std::string::npos)
      << embedded_.out;
  const auto json = Json::parse(search({"a b c", "--filter", "lang=de", "--json"}).out);
  EXPECT_EQ(json["hits"][0]["fields"], Json({{"lang", "de"}, {"meta.year", 2019}}));
  EXPECT_EQ(json["hits"][0]["text"], "a b c");
  const auto shown = search({"a", "--filter", "tags~ol"});
  EXPECT_NE(shown.out.find("tags=[\"new\",\"old\"]  a\n"), std::string::npos) << shown.out;
}

TEST_F(SearchCommand, BoundsAndReordersHits) {
  write_corpus();
  // The model's prompt for questions makes "the a" of "a", which is row 1.
  EXPECT_EQ(rows_of({"a", "--min-score", "1"}), (Rows{1}));
  const auto first = [&](const Words& more) {
    Words words{"a", "--json", "--top", "2"};
    words.insert(words.end(), more.begin(), more.end());
    const auto found = search(words);
    EXPECT_EQ(found.exit_code, 0) << found.err;
    return Json::parse(found.out)["hits"];
  };
  const auto plain = first({});
  const auto diverse = first({"--mmr", "0"});
  EXPECT_EQ(plain[0]["row"], 1);
  EXPECT_EQ(diverse[0]["row"], 1) << "the nearest is picked first";
  EXPECT_NE(diverse[1]["row"], plain[1]["row"]);
  EXPECT_EQ(first({"--mmr=1"}), plain);
  EXPECT_EQ(first({"--mmr", "--mmr-candidates", "2"})[1]["row"], plain[1]["row"]);
  expect_refusal(search({"a", "--mmr", "2"}), "--mmr must be a number from 0 to 1: \"2\"");
  expect_refusal(search({"a", "--min-score", "high"}),
                 "--min-score must be a number from -1 to 1: \"high\"");
  expect_refusal(search({"a", "--mmr-candidates", "9"}),
                 "--mmr-candidates is for --mmr, which is missing");
  expect_refusal(search({"a", "--mmr", "--mmr-candidates", "4"}),
                 "--mmr-candidates must be a whole number from 5 to 10000: \"4\"");
}

TEST_F(SearchCommand, ReadsQuestionsFromFiles) {
  write_corpus();
  muster_.write("q.txt", "a\n\na b\n");
  muster_.write("q.jsonl", "{\"q\":{\"text\":\"a\"}}\n{\"q\":{\"text\":\"a b\"}}\n");
  const auto lines = search({"--queries", "q.txt", "--json"});
  EXPECT_EQ(lines.exit_code, 0) << lines.err;
  EXPECT_EQ(lines.out, search({"a", "a b", "--json"}).out);
  EXPECT_EQ(lines.out, search({"--queries", "q.jsonl", "--field", "q.text", "--json"}).out);
  EXPECT_EQ(lines.out, search({"-", "--json"}, "q.txt").out);
  muster_.write("one.txt", "a\n");
  muster_.write("two.jsonl", "{\"q\":{\"text\":\"a b\"}}\n");
  const auto of_both =
      search({"--queries", "one.txt", "--queries", "two.jsonl", "--field", "q.text", "--json"});
  EXPECT_EQ(lines.out, of_both.out) << of_both.err;
  expect_refusal(search({"--queries", "q.txt", "--queries", "one.txt", "--field", "q.text"}),
                 "q.txt: a plain line has no field \"q.text\", only \"text\": --format says what "
                 "else it is");
  muster_.set("MUSTER_ID_FIELD", "id");
  EXPECT_EQ(lines.out, search({"--queries", "q.jsonl", "--field", "q.text", "--json"}).out)
      << "questions have no ids, whatever the settings say of texts";
  expect_refusal(search({}),
                 "which question? Write it behind OUT in quotes, or name a file with --queries");
  const auto bad = search({"--queries", "q.jsonl"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_NE(
      bad.err.find("q.jsonl:1: no field \"text\"; there is \"q.text\"; --field names another"),
      std::string::npos)
      << bad.err;
}

TEST_F(SearchCommand, VectorsGoToStandardOutput) {
  muster_.write("in.jsonl",
                "{\"text\":\"a\",\"id\":1,\"lang\":\"de\"}\n{\"text\":7}\n{\"text\":\"b\"}\n");
  const auto file = embed({"in.jsonl", "-o", "x.npy", "--skip-bad"});
  ASSERT_EQ(file.exit_code, 0) << file.err;
  const auto lines =
      embed({"in.jsonl", "-o", "-", "--skip-bad", "--keep", "lang", "--keep", "text"});
  ASSERT_EQ(lines.exit_code, 0) << lines.err;
  std::istringstream stream(lines.out);
  std::vector<Json> parsed;
  for (std::string line; std::getline(stream, line);) parsed.push_back(Json::parse(line));
  ASSERT_EQ(parsed.size(), 3U);
  EXPECT_EQ(parsed[0]["fields"], Json({{"lang", "de"}, {"text", "a"}}));
  EXPECT_EQ(parsed[0]["embedding"].size(), 32U);
  EXPECT_TRUE(parsed[1]["embedding"].is_null());
  EXPECT_EQ(parsed[1]["reason"], "in.jsonl:2: field \"text\" is a number, not a string");
  EXPECT_NE(lines.err.find("standard output [2 x 32]\n"), std::string::npos) << lines.err;
  EXPECT_NE(lines.err.find("1 bad record was skipped; its line says why"), std::string::npos);
  // The same numbers as in the file, behind its head of 128 bytes.
  muster_.write("good.txt", "a\nb\n");
  const auto bare = embed({"good.txt", "-o", "-", "--output-format", "f32", "--quiet"});
  EXPECT_EQ(bare.exit_code, 0) << bare.err;
  EXPECT_EQ(bare.err, "");
  EXPECT_TRUE(bare.out == muster_.read("x.npy").substr(128));
  EXPECT_FALSE(muster_.exists("-.lock"));
  EXPECT_FALSE(muster_.exists("-.part"));
}

TEST_F(SearchCommand, WhatDoesNotGoWithStandardOutputIsRefused) {
  muster_.write("in.txt", "a\n");
  const auto refusal = [&](const Words& more, const std::string& message) {
    Words words{"in.txt"};
    words.insert(words.end(), more.begin(), more.end());
    expect_refusal(embed(words), message);
  };
  refusal({"-o", "-", "--resume"},
          "standard output keeps nothing that --resume could find: name a file with -o");
  refusal({"-o", "-", "--json"},
          "--json prints the report on standard output, where the vectors go (-o -)");
  refusal({"-o", "-", "--output-format", "npy"},
          "--output-format must be jsonl or f32: \"npy\"; its head needs the number of rows first, "
          "so -o names a file");
  refusal({"-o", "x.npy", "--output-format", "jsonl"},
          "--output-format is for standard output (-o -): a file's ending says how it is written: "
          "x.npy");
  refusal({"-o", "-", "--output-format", "f32", "--skip-bad"},
          "bare numbers cannot say which records --skip-bad left out: write jsonl");
  refusal({"-o", "x.npy", "--keep", "lang"},
          "in.txt: a plain line has no field \"lang\" to keep, only \"text\": --format says what "
          "else it is");
  // Whatever is appended to the input would be read, and embedded, without end.
  const auto pid = muster_.start(with_test_worker({"embed", tiny_model(), "in.txt", "-o", "-"}),
                                 "/dev/null", "in.txt");
  const auto itself = muster_.wait(pid);
  EXPECT_EQ(itself.exit_code, 2);
  EXPECT_EQ(itself.err, "muster: standard output goes into the input in.txt: name another file\n");
}

class SearchServer : public SearchCommand {
 protected:
  ~SearchServer() override {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    EXPECT_EQ(muster_.wait(pid_).exit_code, 0);
  }

  static Words words_of(const Words& more) {
    Words words = with_test_worker({"serve", tiny_model(), "--listen", "127.0.0.1:0", "--precision",
                                    "fp32", "--log-dir", "logs"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  std::string log() const { return muster_.read("logs/muster.log"); }

  void serve(const Words& more) {
    pid_ = muster_.start(words_of(more));
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (log().find("listening on ") == std::string::npos) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << log();
      std::this_thread::yield();
    }
    const auto text = log();
    const auto at = text.find("http://", text.find("listening on "));
    client_ = *HttpClient::open(text.substr(at, text.find('\n', at) - at));
  }

  pid_t pid_ = 0;
  std::unique_ptr<HttpClient> client_;
};

TEST_F(SearchServer, AnswersAsTheCommandDoes) {
  write_corpus();
  muster_.write("faq.txt", "a b\n");
  ASSERT_EQ(embed({"faq.txt", "-o", "faq.npy"}).exit_code, 0);
  serve({"--search", "x.npy", "--search", "answers=faq.npy"});
  EXPECT_NE(log().find("index x: 3 rows, of the model tiny, with the fields lang, meta.year, tags"),
            std::string::npos)
      << log();
  EXPECT_NE(log().find("index answers: 1 rows, of the model tiny, without kept fields"),
            std::string::npos)
      << log();
  const auto ask = [&](const Json& body) {
    const auto answer =
        client_->call("POST", "/v1/search", {{"Content-Type", "application/json"}}, body.dump());
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().message);
    EXPECT_EQ(answer->status, 200) << answer->body;
    return Json::parse(answer->body);
  };
  const auto hits = ask({{"query", "a"}, {"index", "x"}, {"k", 3}})["results"][0]["hits"];
  const auto told = Json::parse(search({"a", "--json", "--top", "3"}).out)["hits"];
  ASSERT_EQ(hits.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    for (const char* key : {"row", "score", "id", "text"}) EXPECT_EQ(hits[i][key], told[i][key]);
    EXPECT_EQ(hits[i].value("fields", Json()), told[i].value("fields", Json()));
    EXPECT_FALSE(hits[i].contains("input")) << "a path of this machine";
  }
  const auto filtered = ask({{"query", "a"}, {"index", "x"}, {"filter", "meta.year>2020"}});
  ASSERT_EQ(filtered["results"][0]["hits"].size(), 1U);
  EXPECT_EQ(filtered["results"][0]["hits"][0]["id"], "y");
  EXPECT_EQ(ask({{"query", "a"}, {"index", "answers"}})["results"][0]["hits"][0]["text"], "a b");
}

TEST_F(SearchServer, AnOutputOfAnotherModelIsRefusedAtTheStart) {
  write_corpus();
  std::filesystem::copy(tiny_model(), muster_.folder() / "model",
                        std::filesystem::copy_options::recursive);
  muster_.write("model/config.json", muster_.read("model/config.json") + "\n");
  auto words = words_of({"--search", "x.npy"});
  words[1] = "model";
  const auto refused = muster_.run(words);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("muster: x.npy was made by " + tiny_model()), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("which is none of the models served (model): serve that one, too, or "
                             "run muster embed again\n"),
            std::string::npos)
      << refused.err;
  const auto twice = muster_.run(words_of({"--search", "x.npy,x.npy"}));
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_NE(twice.err.find("--search names x twice: NAME=PATH gives another name"),
            std::string::npos)
      << twice.err;
}

}  // namespace
}  // namespace muster
