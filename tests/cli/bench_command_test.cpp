// `muster bench` against the null server and against a server that it starts itself. A busy machine
// may make a run invalid (exit code 22); what it measures is looked at all the same.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/child/child_server.h"
#include "net/http_server.h"
#include "run_muster.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr int kInvalid = 22;
constexpr int kWorse = 23;
constexpr int kObjective = 24;
constexpr int kUnknown = 25;

class BenchCommand : public ::testing::Test {
 protected:
  std::string null_server(const Words& flags = {}) {
    Words words{MUSTER_BINARY_DIR "/bin/muster-null-server"};
    words.insert(words.end(), flags.begin(), flags.end());
    auto server = ChildServer::start(words, std::chrono::seconds(60), [] { return false; });
    EXPECT_TRUE(server) << server.error().message;
    if (!server) return "";
    server_ = std::move(*server);
    return server_->url();
  }

  Finished measure(const Words& words) {
    auto finished = muster_.run(words);
    EXPECT_TRUE(finished.exit_code == 0 || finished.exit_code == kInvalid) << finished.err;
    return finished;
  }

  void expect_error(const Words& words, int code, const std::string& message) {
    const auto finished = muster_.run(words);
    EXPECT_EQ(finished.exit_code, code) << finished.err;
    EXPECT_TRUE(finished.err.ends_with("muster: " + message + "\n")) << finished.err;
    EXPECT_EQ(finished.out, "");
  }

  Muster muster_{"bench_command"};
  std::unique_ptr<ChildServer> server_;
};

TEST_F(BenchCommand, MeasuresAnyUrl) {
  const auto url = null_server();
  const auto text = measure({"bench", "http", url, "--requests", "400", "--clients", "2"});
  EXPECT_NE(text.out.find("2 clients"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("requests: "), std::string::npos);
  const auto json = Json::parse(
      measure({"bench", "http", url + "/health?a=b", "--rate=200", "--requests=40", "--json"}).out);
  EXPECT_EQ(json["target"]["api"], "http");
  EXPECT_EQ(json["target"]["url"], url + "/health");
  EXPECT_EQ(json["points"][0]["load"], "poisson 200/s");
  EXPECT_EQ(json["points"][0]["trials"][0]["samples"]["latency_ns"].size(), 40U);
  EXPECT_EQ(json["settings"]["--rate"], "200");
}

TEST_F(BenchCommand, MeasuresTheApisOfModels) {
  const auto url = null_server({"--token-gap", "0.0005"});
  for (const std::string task : {"embed", "rerank"}) {
    const auto json = Json::parse(measure({"bench", task, url, "--requests=20", "--json"}).out);
    EXPECT_EQ(json["target"]["model"], "null");  // the first that it lists
    EXPECT_EQ(json["points"][0]["trials"][0]["requests"]["failed"], Json::object());
    EXPECT_GT(json["points"][0]["trials"][0]["tokens"]["input"], 0);
  }
  const auto json = Json::parse(measure({"bench", "generate", url + "/v1", "--requests=10",
                                         "--warm-up=none", "--output-tokens=6", "--json"})
                                    .out);
  const auto& trial = json["points"][0]["trials"][0];
  EXPECT_EQ(trial["tokens"]["output"], 60);
  EXPECT_EQ(trial["tokens"]["output_source"], "usage");
  EXPECT_EQ(trial["token_gap"]["count"], 50);
  EXPECT_EQ(trial["samples"]["token_gaps_ns"].size(), 50U);
}

TEST_F(BenchCommand, SendsTheTextsOfAFile) {
  const auto url = null_server();
  muster_.write("texts.txt", "one two three\nfour\n");
  const auto json = Json::parse(measure({"bench", "embed", url, "--input", "texts.txt",
                                         "--requests=4", "--warm-up=none", "--json"})
                                    .out);
  EXPECT_EQ(json["points"][0]["trials"][0]["samples"]["request"], (Json{0, 1, 0, 1}));
  expect_error({"bench", "embed", url, "--input", "none.txt"}, 3, "none.txt: no such file");
}

// The server is this process. A line of JSON is a body like any other, and blanks within it stay.
TEST_F(BenchCommand, PostsTheLinesOfAFileAsBodies) {
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  std::mutex mutex;
  std::map<std::string, int> seen;
  const auto server =
      HttpServer::start(options, [&](const HttpRequest& request, const HttpRespond& respond) {
        const std::lock_guard lock(mutex);
        ++seen[request.method + " " + request.path + " " +
               std::string(request.header("Content-Type").value_or("")) + " " + request.body];
        respond({.status = 200, .body = "x"});
      });
  ASSERT_TRUE(server) << server.error().message;
  const auto url = "http://127.0.0.1:" + std::to_string((*server)->port()) + "/echo";
  muster_.write("bodies.txt", "{\"n\": 1}\nplain  text\n");
  const auto json = Json::parse(measure({"bench", "http", url, "--input", "bodies.txt",
                                         "--requests=4", "--clients=1", "--warm-up=none", "--json"})
                                    .out);
  EXPECT_EQ(json["points"][0]["trials"][0]["samples"]["request"], (Json{0, 1, 0, 1}));
  EXPECT_EQ(json["points"][0]["trials"][0]["requests"]["failed"], Json::object());
  const std::lock_guard lock(mutex);
  EXPECT_EQ(seen, (std::map<std::string, int>{{"POST /echo application/json {\"n\": 1}", 2},
                                              {"POST /echo application/json plain  text", 2}}));
}

TEST_F(BenchCommand, ComparesTwoResults) {
  const auto url = null_server({"--law", "deterministic", "--mean", "0.002"});
  const Words run{"bench", "http", url, "--requests=50", "--trials=3", "--cooldown=10ms", "-o"};
  const auto to = [&](const std::string& file) {
    auto words = run;
    words.push_back(file);
    return words;
  };
  measure(to("a.json"));
  server_.reset();
  const auto slower = null_server({"--law", "deterministic", "--mean", "0.02"});
  measure(
      {"bench", "http", slower, "--requests=50", "--trials=3", "--cooldown=10ms", "-o", "b.json"});
  // Whether sends were late depends on what else the machine does, which is not meant here.
  const auto judge = [&](const std::string& file, bool is_valid) {
    auto json = Json::parse(muster_.read(file));
    for (auto& trial : json["points"][0]["trials"]) trial["valid"] = is_valid;
    muster_.write(file, json.dump());
  };
  judge("a.json", true);
  judge("b.json", true);
  const auto worse = muster_.run({"bench", "diff", "a.json", "b.json"});
  EXPECT_EQ(worse.exit_code, kWorse) << worse.err;
  EXPECT_EQ(worse.out.find("B is worse\n"), 0U) << worse.out;
  EXPECT_EQ(muster_.run({"bench", "diff", "b.json", "a.json"}).exit_code, 0);
  const auto same = muster_.run({"bench", "diff", "a.json", "a.json", "--json"});
  EXPECT_EQ(same.exit_code, 0);
  EXPECT_EQ(Json::parse(same.out)["figures"][0]["verdict"], "no difference");
  judge("b.json", false);
  const auto none = muster_.run({"bench", "diff", "a.json", "b.json"});
  EXPECT_EQ(none.exit_code, kInvalid);
  EXPECT_EQ(none.out.find("no verdict: "), 0U) << none.out;
  muster_.write("c.json", "{}");
  // As many answers a second, and 30 % of the requests failed.
  const auto file = [&](const std::string& name, const std::string& answered) {
    const auto one = R"({"valid":true,"counted_seconds":10,"figures":{"throughput":10},)"
                     R"("requests":{"sent":100,"answered":)" +
                     answered + "}}";
    muster_.write(
        name, R"({"schema_version":1,"points":[{"load":"x","trials":[)" + one + "," + one + "]}]}");
  };
  file("whole.json", "100");
  file("failing.json", "70");
  const auto failing = muster_.run({"bench", "diff", "whole.json", "failing.json"});
  EXPECT_EQ(failing.exit_code, kWorse) << failing.out;
  EXPECT_NE(failing.out.find("WORSE by 30 points"), std::string::npos) << failing.out;
  EXPECT_EQ(muster_.run({"bench", "diff", "failing.json", "whole.json"}).exit_code, 0);
  expect_error({"bench", "diff", "a.json", "c.json"}, 7,
               "c.json: this is no result of muster bench: it has no schema_version or no points");
}

TEST_F(BenchCommand, WhatIsNoResultIsNotWrittenOver) {
  const auto url = null_server();
  const Words words{"bench", "http", url, "--requests=20", "--warm-up=none", "-o", "b.jsonl"};
  for (const std::string own :
       {"{\"text\":\"my own\"}\n", "my own notes\n", "{\"schema_version\":1}"}) {
    muster_.write("b.jsonl", own);
    expect_error(words, 2,
                 "-o b.jsonl: that is no result of muster bench, and it would be overwritten: "
                 "remove it, or name another file");
    EXPECT_EQ(muster_.read("b.jsonl"), own);
  }
  muster_.write("b.jsonl", "");
  measure(words);
  EXPECT_TRUE(Json::parse(muster_.read("b.jsonl")).contains("points"));
  // A result is written over by the next, also where jq has laid it out.
  muster_.write("b.jsonl", nlohmann::ordered_json::parse(muster_.read("b.jsonl")).dump(2));
  measure(words);
}

TEST_F(BenchCommand, AFileThatCameWhileItMeasuredIsNotWrittenOver) {
  const auto url = null_server();
  const auto texts = muster_.folder() / "texts";
  ASSERT_EQ(::mkfifo(texts.c_str(), 0600), 0);
  const std::jthread other([&] {
    std::ofstream pipe(texts);  // open as soon as it is read, which is after the first look
    muster_.write("b.json", "my own notes\n");
    pipe << "a text\n";
  });
  const auto refused = muster_.run({"bench", "http", url, "--requests=20", "--warm-up=none",
                                    "--input", texts.string(), "-o", "b.json"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("muster: -o b.json: that is no result of muster bench, and it would "
                             "be overwritten: remove it, or name another file\n"),
            std::string::npos)
      << refused.err;
  EXPECT_NE(refused.out, "") << "what was measured is printed all the same";
  EXPECT_EQ(muster_.read("b.json"), "my own notes\n");
}

// A result by hand: one load of so many trials, each with its throughput.
std::string result_of(const std::vector<double>& throughputs, const Json& run = nullptr) {
  Json json{{"schema_version", 1}, {"tool", {{"name", "muster bench"}}}};
  auto trials = Json::array();
  for (const double throughput : throughputs) {
    trials.push_back({{"valid", true}, {"figures", {{"throughput", throughput}}}});
  }
  json["points"] = Json::array({{{"load", "1 client"}, {"trials", trials}}});
  if (!run.is_null()) json["run"] = run;
  return json.dump();
}

TEST_F(BenchCommand, WritesAReportOfResults) {
  muster_.write("a.json", result_of({100, 101}));
  muster_.write("b.json", result_of({50, 51}));
  const auto finished = muster_.run({"bench", "report", "a.json", "b.json", "--title", "x <y>"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "");
  EXPECT_NE(finished.err.find("report.html is written: 2 results, "), std::string::npos)
      << finished.err;
  const auto page = muster_.read("report.html");
  EXPECT_EQ(page.find("<!DOCTYPE html>\n"), 0U);
  EXPECT_NE(page.find("<title>x &lt;y&gt;</title>"), std::string::npos);
  EXPECT_NE(page.find("WORSE by "), std::string::npos) << "B has half the throughput";
  // A report is written over by the next.
  EXPECT_EQ(muster_.run({"bench", "report", "a.json"}).exit_code, 0);
  EXPECT_EQ(muster_.read("report.html").find("WORSE"), std::string::npos);
}

TEST_F(BenchCommand, WritesAReportOfAFolderOfPoints) {
  std::filesystem::create_directory(muster_.folder() / "x.points");
  std::filesystem::create_directory(muster_.folder() / "none");
  for (const int batch : {1, 8}) {
    const auto id = std::string(15, '0') + std::to_string(batch);
    muster_.write(
        "x.points/" + id + ".json",
        result_of({10.0 * batch}, {{"point", id},
                                   {"valid", true},
                                   {"config", {{"batch_size", batch}}},
                                   {"summary", {{"throughput_prompts_per_second", 10 * batch}}}}));
  }
  muster_.write("x.points/.table", "not a result, and not looked at");
  const auto finished = muster_.run({"bench", "report", "x.points", "-o", "sweep.html"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const auto page = muster_.read("sweep.html");
  EXPECT_NE(page.find("Throughput by batch_size"), std::string::npos);
  EXPECT_NE(page.find("<title>muster bench: x</title>"), std::string::npos);
  const auto one = page.find("<bdi>batch_size=1</bdi>");
  ASSERT_NE(one, std::string::npos) << "a point goes by its settings, not by its file";
  EXPECT_NE(page.find("<bdi>batch_size=8</bdi>", one), std::string::npos);
  expect_error({"bench", "report", "none"}, 3,
               "none: no result (.json) and no recording (.jsonl) is in this folder");
}

TEST_F(BenchCommand, WhatIsNoReportIsNotWrittenOver) {
  muster_.write("a.json", result_of({100}));
  muster_.write("report.html", "<!DOCTYPE html>\n<html>my own</html>\n");
  expect_error({"bench", "report", "a.json"}, 2,
               "-o report.html: that is no report of muster bench, and it would be overwritten: "
               "remove it, or name another file");
  EXPECT_EQ(muster_.read("report.html"), "<!DOCTYPE html>\n<html>my own</html>\n");
  expect_error({"bench", "report", "a.json", "-o", "a.json"}, 2,
               "-o a.json: that is no report of muster bench, and it would be overwritten: remove "
               "it, or name another file");
  muster_.write("report.html", "");
  EXPECT_EQ(muster_.run({"bench", "report", "a.json"}).exit_code, 0);
}

TEST_F(BenchCommand, SaysWhatCannotBeReported) {
  muster_.write("a.json", result_of({100}));
  muster_.write("c.json", "{}");
  muster_.write("w.jsonl", "{}\n");
  muster_.write("later.jsonl",
                "{\"time\": 5, \"machine\": \"here\", \"expected_gpus\": 0, \"devices\": []}\n");
  expect_error({"bench", "report"}, 2,
               "muster bench report wants a result: a file of -o, or a folder of points");
  expect_error({"bench", "report", "no.json"}, 3,
               "no.json: cannot open: No such file or directory");
  expect_error({"bench", "report", "c.json"}, 7,
               "c.json: this is no result of muster bench: it has no schema_version or no points");
  expect_error({"bench", "report", "a.json", "later.jsonl"}, 2,
               "later.jsonl: the recording is of none of the results: no trial of theirs ran while "
               "it was made");
  const auto broken = muster_.run({"bench", "report", "a.json", "w.jsonl"});
  EXPECT_EQ(broken.exit_code, 7);
  EXPECT_NE(broken.err.find("w.jsonl:1: this is no recording of muster: "), std::string::npos)
      << broken.err;
  EXPECT_FALSE(muster_.exists("report.html"));
}

TEST_F(BenchCommand, JudgesObjectives) {
  const auto url = null_server();
  const auto missed =
      muster_.run({"bench", "http", url, "--requests=40", "--slo", "latency_p50<1us"});
  EXPECT_TRUE(missed.exit_code == kObjective || missed.exit_code == kInvalid) << missed.err;
  EXPECT_NE(missed.out.find("objective latency_p50<1us: MISSED"), std::string::npos) << missed.out;
}

// A warm-up that is cut, and a late generator, do not change that 100 requests are too few.
TEST_F(BenchCommand, AnObjectiveOfTooFewRequestsIsNotKnown) {
  const auto url = null_server();
  const Words words{"bench", "http", url, "--slo", "latency_p50<1000s,latency_p99<1000s"};
  auto few = words;
  few.insert(few.end(), {"--requests=100", "--warm-up=none"});
  const auto finished = muster_.run(few);
  EXPECT_TRUE(finished.exit_code == kUnknown || finished.exit_code == kInvalid) << finished.err;
  EXPECT_NE(
      finished.out.find("objective latency_p99<1000s: NOT known (p99 needs 368 counted answers, "
                        "and there were 100)"),
      std::string::npos)
      << finished.out;
  auto search = words;
  search.insert(search.end(), {"--requests=100", "--find-peak"});
  expect_error(search, 2, "--requests 100 are too few: latency_p99 needs 368");
}

TEST_F(BenchCommand, StartsAndEndsAServerOfItsOwn) {
  muster_.set("MUSTER_WORKER_PROGRAM", MUSTER_BINARY_DIR "/bin/zero_worker");
  muster_.set("ZERO_WORKER", "echo dim=32");  // rows as the model has
  muster_.set("MUSTER_TORCH_ROOT", (muster_.folder() / "torch").string());
  const auto finished =
      measure({"bench", "embed", tiny_model(), "--devices=1xcpu", "--requests=20", "--json"});
  ASSERT_FALSE(finished.out.empty()) << finished.err;
  const auto json = Json::parse(finished.out);
  EXPECT_EQ(json["points"][0]["trials"][0]["requests"]["failed"], Json::object());
  EXPECT_EQ(json["settings"]["--devices"], "1xcpu");
  const auto missing = muster_.run({"bench", "embed", "no/such/model"});
  EXPECT_EQ(missing.exit_code, 3) << missing.err;
  EXPECT_NE(missing.err.find("muster: no/such/model: no such model folder\n"), std::string::npos)
      << missing.err;
  EXPECT_EQ(missing.err.find(" ended: "), std::string::npos) << missing.err;
  const auto decoder = muster_.run({"bench", "generate", "No-Such-Decoder"});
  EXPECT_EQ(decoder.exit_code, 3) << decoder.err;
  EXPECT_TRUE(decoder.err.ends_with("fetch it by muster pull ORG/NAME, or give its .gguf file\n"))
      << decoder.err;
  // What is meant for another server does not reach this one.
  muster_.set("MUSTER_API_KEY", "sk-of-mine");
  muster_.set("MUSTER_TLS_CERT", "none.pem");
  muster_.set("MUSTER_CONFIG", "other.yaml");
  muster_.write("other.yaml",
                "unix_socket: s\ntls_key: none.pem\naudit_log: audit.jsonl\nlog_dir: logs\n"
                "stats_file: stats.jsonl\nlow_latency: false\n");
  const auto keyed =
      measure({"bench", "embed", tiny_model(), "--devices=1xcpu", "--requests=20", "--json"});
  ASSERT_FALSE(keyed.out.empty()) << keyed.err;
  EXPECT_EQ(Json::parse(keyed.out)["points"][0]["trials"][0]["requests"]["failed"], Json::object());
  EXPECT_EQ(keyed.out.find("sk-of-mine"), std::string::npos);
  for (const auto* name : {"s", "audit.jsonl", "logs", "stats.jsonl"}) {
    EXPECT_FALSE(muster_.exists(name)) << name;
  }
}

// The server runs on, and would be waited for as long as a large model takes.
TEST_F(BenchCommand, EndsWhenNoDeviceOfItsOwnServerCanLoadTheModel) {
  muster_.set("MUSTER_WORKER_PROGRAM", MUSTER_BINARY_DIR "/bin/zero_worker");
  muster_.set("ZERO_WORKER", "fail_load");
  muster_.set("MUSTER_TORCH_ROOT", (muster_.folder() / "torch").string());
  expect_error({"bench", "embed", tiny_model(), "--devices=2xcpu", "--requests=20"}, 7,
               "told not to load");  // Corrupt, says the worker
}

TEST_F(BenchCommand, HelpOfAVerbHasItsOwnFlags) {
  const auto diff = muster_.run({"bench", "diff", "--help"});
  EXPECT_EQ(diff.exit_code, 0);
  EXPECT_NE(diff.out.find("usage: muster bench diff A B\n"), std::string::npos) << diff.out;
  EXPECT_NE(diff.out.find("--tolerance"), std::string::npos);
  EXPECT_EQ(diff.out.find("--clients"), std::string::npos) << diff.out;
  EXPECT_EQ(diff.out, muster_.run({"help", "bench", "diff"}).out);
  EXPECT_EQ(muster_.run({"bench", "dif", "--help"}).out, muster_.run({"bench", "--help"}).out);
}

// The server is this process; it has its reasons, or an endless list.
TEST_F(BenchCommand, AsksForTheModelNoLongerThanItIsTold) {
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  std::vector<HttpRespond> held;
  std::atomic<bool> is_silent = true;
  const auto server =
      HttpServer::start(options, [&](const HttpRequest&, const HttpRespond& respond) {
        if (is_silent) return held.push_back(respond);
        respond({.status = 200, .body = std::string((8 << 20) + 1, ' ')});
      });
  ASSERT_TRUE(server) << server.error().message;
  const auto address = "127.0.0.1:" + std::to_string((*server)->port());
  const Words words{"bench", "embed", "http://" + address, "--timeout=200ms"};
  expect_error(words, 5,
               address +
                   ": no answer in time to GET /v1/models (--timeout is 0.2 s); with --model "
                   "NAME it is not asked");
  EXPECT_EQ(muster_.run(words).err.find("muster: asking " + address + " for its models\n"), 0U);
  is_silent = false;
  expect_error({"bench", "embed", "http://" + address}, 8,
               address +
                   ": the answer has more than 8388608 bytes to GET /v1/models; with --model "
                   "NAME it is not asked");
}

TEST_F(BenchCommand, SaysInASentenceWhatIsWrong) {
  const auto url = null_server({"--nonsense"});
  expect_error({"bench", "embed", url, "--requests=5"}, 6,
               "no request was answered: the answer is no JSON");
  expect_error({"bench", "generate", url, "--requests=5", "--output-tokens=3"}, 6,
               "no request was answered: the stream has an event that is no JSON");
  expect_error({"bench", "http", url, "--requests=5", "--warm-up=60m"}, 2,
               "no request is counted: all that were answered were sent within the warm-up");
  server_.reset();
  expect_error({"bench", "http", url}, 6, url.substr(7) + ": cannot connect: Connection refused");
  expect_error({"bench", "embed", "unix:/run/m.sock"}, 4,
               "unix:/run/m.sock: many connections at once go to a port, not to a Unix socket: "
               "name the server's http://HOST:PORT");
  expect_error({"bench", "http", "host"}, 2,
               "muster bench http wants a URL, as http://127.0.0.1:8000/health: \"host\"");
  // Nothing is said, and no server is started, before that.
  EXPECT_EQ(muster_.run({"bench", "http", "host"}).err,
            "muster: muster bench http wants a URL, as http://127.0.0.1:8000/health: \"host\"\n");
  EXPECT_EQ(muster_.run({"bench", "embed", tiny_model(), "--input", "none.txt"}).err,
            "muster: none.txt: no such file\n");
  EXPECT_EQ(muster_.run({"bench", "generate", tiny_model()}).err,
            "muster: muster bench generate wants a model that generates, and " + tiny_model() +
                " does not: muster bench embed " + tiny_model() + "\n");
  expect_error({"bench", "selftest", "queu"}, 2,
               "the self-test has no part queu; did you mean queue?");
  EXPECT_EQ(muster_.run({"bench", "selftest", "intervals", "queu"}).err,
            "muster: the self-test has no part queu; did you mean queue?\n");
}

TEST_F(BenchCommand, TriesItself) {
  const auto finished = muster_.run({"bench", "selftest", "intervals", "--json"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const auto json = Json::parse(finished.out);
  EXPECT_EQ(json["checks"][0]["part"], "intervals");
  EXPECT_EQ(json["checks"][0]["met"], true);
}

}  // namespace
}  // namespace muster
