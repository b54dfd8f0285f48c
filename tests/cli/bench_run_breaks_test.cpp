// `muster bench run` where something is wrong: a file that cannot be measured, a run that is killed
// or interrupted, files of others.

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>

#include "base/unique_fd.h"
#include "bench_run_fixture.h"
#include "net/http_server.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kSlow{"--law", "deterministic", "--mean", "0.02"};

TEST_F(BenchRunCommand, DoesNotStartWhereADeviceIsMissing) {
  muster_.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster_.set("FAKENVML_SCENARIO", (muster_.folder() / "gpus.json").string());
  muster_.write("gpus.json", R"({"fake_nvml":1,"gpus":[{"model":"H200"},{"model":"H200"}]})");
  muster_.write("b.yaml", "backend:\n  model: " + tiny_model() +
                              "\n  device_ids: [[0], [1, 2], [3]]\n  torch_dtype: fp32\n"
                              "scenario: {num_samples: 4, warm_up: none}\n"
                              "reporter: {output_file: x.csv}\n");
  const auto refused = run({});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_NE(refused.err.find("devices: 4 requested, 2 available\nmuster: unavailable: no such "
                             "device: cuda:2; there is cuda:0, cuda:1\n"),
            std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("muster: b.yaml:3: backend.device_ids: 2 of 4 devices cannot be used: "
                             "no such device: cuda:2; there is cuda:0, cuda:1; no such device: "),
            std::string::npos)
      << refused.err;
  EXPECT_FALSE(muster_.exists("x.csv"));
  measure({"--allow-missing"});
  const auto all = records();
  ASSERT_EQ(all.size(), 2U) << "[3] has no device and is left out";
  std::set<std::string> ids;
  for (const auto& [id, record] : all) {
    ids.insert(record["config"]["device_ids"].dump());
    const auto& availability = record["availability"];
    if (record["config"]["device_ids"] == Json{0}) continue;
    EXPECT_EQ(availability["requested"], (Json{"cuda:1", "cuda:2"}));
    EXPECT_EQ(availability["available"], Json{"cuda:1"});
    EXPECT_EQ(availability["unavailable"], Json{"cuda:2"});
    EXPECT_EQ(availability["all_available"], false);
  }
  EXPECT_EQ(ids, (std::set<std::string>{"[0]", "[1]"}));
}

// A kind that is not here is missing as a device is.
TEST_F(BenchRunCommand, DoesNotStartWhereThereIsNoGpu) {
  muster_.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster_.set("FAKENVML_SCENARIO", (muster_.folder() / "gpus.json").string());
  muster_.write("gpus.json", R"({"fake_nvml":1,"gpus":[]})");
  muster_.write("b.yaml", "backend: {model: " + tiny_model() +
                              ", device: cuda, torch_dtype: fp32}\n"
                              "reporter: {output_file: x.csv}\n");
  const auto refused = run({});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_NE(refused.err.find("muster: b.yaml:1: backend.device: 1 of 1 devices cannot be used: "
                             "cuda needs a GPU, and there is none: "),
            std::string::npos)
      << refused.err;
  const auto allowed = run({"--allow-missing"});
  EXPECT_EQ(allowed.exit_code, 3) << allowed.err;
  EXPECT_NE(allowed.err.find("muster: no point has a device that can be used: cuda needs a GPU"),
            std::string::npos)
      << allowed.err;
  EXPECT_FALSE(muster_.exists("x.csv"));
}

TEST_F(BenchRunCommand, DoesNotStartWhereAGpuOfARuleIsLost) {
  muster_.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster_.set("FAKENVML_SCENARIO", (muster_.folder() / "gpus.json").string());
  muster_.write("gpus.json", R"({"fake_nvml":1,"gpus":[
      {"model":"H200","lost":{"from":0}},{"model":"H200"}]})");
  for (const std::string list : {"device: cuda", "device_ids: auto"}) {
    muster_.write("b.yaml", "backend: {model: " + tiny_model() + ", " + list +
                                ", torch_dtype: fp32}\nreporter: {output_file: x.csv}\n");
    refuse({}, 3,
           "b.yaml:1: backend." + list.substr(0, list.find(':')) +
               ": 1 of 2 devices cannot be used: cuda:0 is lost: GPU is lost (NVML 15); "
               "--allow-missing measures without");
  }
  const auto written = muster_.run({"bench", "init", tiny_model()});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.err,
            "muster: warning: cuda:0 is lost: GPU is lost (NVML 15); the work goes to cuda:1\n");
}

TEST_F(BenchRunCommand, LeavesOutAPointWhoseModelNoDeviceCanLoad) {
  muster_.set("ZERO_WORKER", "fail_load");
  muster_.write("b.yaml", small_file());
  const auto finished = run({});
  EXPECT_EQ(finished.exit_code, 7) << finished.err;
  EXPECT_NE(finished.err.find("not measured: told not to load\n"), std::string::npos)
      << finished.err;
  EXPECT_TRUE(records().empty());
}

TEST_F(BenchRunCommand, KeepsWhatIsFinishedWhenItIsKilled) {
  write_slow_sweep(null_server(kSlow));
  const auto pid = muster_.start({"bench", "run", "b.yaml"});
  wait_for_points(2, pid);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  muster_.wait(pid);
  const auto kept = records();  // each reads as a whole
  EXPECT_GE(kept.size(), 2U);
  EXPECT_LT(kept.size(), 6U);
  const auto rows = table().row_count();
  EXPECT_LE(kept.size() - rows, 1U) << "the row comes behind its point";
  const auto resumed = measure({"--resume"});
  EXPECT_EQ(records().size(), 6U);
  expect_table_equals_files();
  for (const auto& [id, record] : kept) {
    if (!record["valid"]) continue;  // it was measured again
    EXPECT_EQ(records()[id], record);
  }
}

TEST_F(BenchRunCommand, KeepsWhatIsFinishedWhenItIsInterrupted) {
  write_slow_sweep(null_server(kSlow));
  const auto pid = muster_.start({"bench", "run", "b.yaml"});
  wait_for_points(1, pid);
  ASSERT_EQ(::kill(pid, SIGINT), 0);
  const auto finished = muster_.wait(pid);
  EXPECT_EQ(finished.exit_code, 130) << finished.err;
  EXPECT_NE(finished.err.find("muster: interrupted; "), std::string::npos) << finished.err;
  EXPECT_TRUE(finished.err.ends_with(" of 6 points are in x.csv; --resume measures the others\n"));
  EXPECT_LT(records().size(), 6U);
  expect_table_equals_files();
  measure({"--resume"});
  EXPECT_EQ(table().row_count(), 6U);
}

// Each point reads its texts anew, and is known by those that there were at the begin.
TEST_F(BenchRunCommand, EndsWhereItsTextsChangeMeanwhile) {
  const auto texts_of = [](const std::string& word) {
    std::string texts;
    for (int i = 0; i < 40; ++i) texts += word + " " + std::to_string(i) + "\n";
    return texts;
  };
  write_slow_sweep(null_server(kSlow));
  muster_.write("texts.txt", texts_of("one"));
  muster_.write("other.txt", texts_of("two"));
  const auto pid = muster_.start({"bench", "run", "b.yaml", "scenario.dataset_name=texts.txt"});
  wait_for_points(1, pid);
  std::filesystem::rename(muster_.folder() / "other.txt", muster_.folder() / "texts.txt");
  const auto finished = muster_.wait(pid);
  EXPECT_EQ(finished.exit_code, 2) << finished.err;
  EXPECT_NE(finished.err.find("muster: command line: scenario.dataset_name: its files have changed "
                              "since the run began; "),
            std::string::npos)
      << finished.err;
  EXPECT_TRUE(finished.err.ends_with(" of 6 points are in x.csv; --resume measures the others\n"))
      << finished.err;
  EXPECT_LT(records().size(), 6U);
  expect_table_equals_files();
  measure({"scenario.dataset_name=texts.txt", "--resume"});
  EXPECT_GE(table().row_count(), 7U) << "those of the new texts are others";
}

// A point that cannot be measured costs itself; the others are measured.
TEST_F(BenchRunCommand, GoesOnWithTheOtherPoints) {
  muster_.write("b.yaml", small_file());
  muster_.set("MUSTER_MAX_CLIENT_BATCH_SIZE", "4");  // of the server that it starts
  const auto finished = run({});
  EXPECT_EQ(finished.exit_code, 6) << finished.err;
  EXPECT_NE(finished.err.find("muster: point 2 of 2"), std::string::npos) << finished.err;
  EXPECT_NE(finished.err.find("muster: not measured: no request was answered: "), std::string::npos)
      << finished.err;
  EXPECT_NE(finished.err.find("muster: batch_size=8: no request was answered: "),
            std::string::npos);
  EXPECT_TRUE(
      finished.err.ends_with("; 1 of 2 points are in x.csv; --resume measures the others\n"));
  ASSERT_EQ(records().size(), 1U);
  EXPECT_EQ(records().begin()->second["config"]["batch_size"], 1);
  expect_table_equals_files();
}

// They are there where their library lies beside the worker.
TEST_F(BenchRunCommand, MeasuresOnStandInsForGpus) {
  muster_.write("b.yaml", "backend: {model: " + tiny_model() +
                              ", device_ids: 2xstandin, torch_dtype: fp32}\n"
                              "scenario: {num_samples: 4, warm_up: none}\n"
                              "reporter: {output_file: x.csv}\n");
  const auto worker = muster_.folder() / "bin/zero_worker";
  std::filesystem::create_directory(worker.parent_path());
  std::filesystem::create_symlink(MUSTER_BINARY_DIR "/bin/zero_worker", worker);
  muster_.set("MUSTER_WORKER_PROGRAM", worker.string());
  EXPECT_EQ(run({}).exit_code, 3);
  muster_.write("bin/libmuster-standin.so", "");
  measure();
  ASSERT_EQ(records().size(), 1U);
  const auto record = records().begin()->second;
  EXPECT_EQ(record["config"]["device_ids"], (Json{"standin:0", "standin:1"}));
  EXPECT_EQ(record["energy"]["missing_reason"], "standin:0 was not watched");
}

// cuda:0 of a table that was made elsewhere is another GPU than cuda:0 here.
TEST_F(BenchRunCommand, MeasuresAgainOnAnotherMachine) {
  muster_.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster_.set("FAKENVML_SCENARIO", (muster_.folder() / "gpus.json").string());
  muster_.write("gpus.json", R"({"fake_nvml":1,"gpus":[{"model":"H200"}]})");
  muster_.write("b.yaml", "backend: {model: " + tiny_model() +
                              ", device_ids: [0], torch_dtype: fp32}\n"
                              "scenario: {num_samples: 4, warm_up: none}\n"
                              "reporter: {output_file: x.csv}\n");
  measure();
  muster_.write("gpus.json", R"({"fake_nvml":1,"gpus":[{"model":"L4"}]})");
  measure({"--resume"});
  muster_.write("torch/version.py", "__version__ = '2.11.1+cpu'\n");
  measure({"--resume"});
  const auto csv = table();
  ASSERT_EQ(csv.row_count(), 3U);
  for (std::size_t row = 0; row < 3; ++row) EXPECT_EQ(csv.cell(row, "config_device_ids"), "0");
}

// Two of them are too long for the time limit; the server is there all the same.
TEST_F(BenchRunCommand, GoesOnWithTheOtherPointsOfAServerThatAnswers) {
  muster_.write("b.yaml", "backend: {url: \"" + null_server({"--token-gap", "0.02"}) +
                              "\", model: \"null\"}\n"
                              "scenario: {num_samples: 2, warm_up: none, timeout: 500ms, "
                              "generate_kwargs: {max_new_tokens: [100, 2, 200]}}\n"
                              "metrics: {enabled: false}\nreporter: {output_file: x.csv}\n");
  const auto finished = run({});
  EXPECT_EQ(finished.exit_code, 6) << finished.err;
  EXPECT_NE(finished.err.find("muster: point 3 of 3"), std::string::npos) << finished.err;
  ASSERT_EQ(records().size(), 1U);
  EXPECT_EQ(records().begin()->second["config"]["max_new_tokens"], 2);
}

// The server is this process. It answers, and knows no key: no point can be measured.
TEST_F(BenchRunCommand, EndsWhereTheFirstThreePointsCannotBeMeasured) {
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  const auto server =
      HttpServer::start(options, [](const HttpRequest&, const HttpRespond& respond) {
        respond({.status = 401, .body = R"({"error":{"message":"no such key"}})"});
      });
  ASSERT_TRUE(server) << server.error().message;
  write_slow_sweep("http://127.0.0.1:" + std::to_string((*server)->port()));
  const auto finished = run({"scenario.num_samples=6"});
  EXPECT_EQ(finished.exit_code, 6) << finished.err;
  EXPECT_NE(finished.err.find("muster: point 3 of 6: "), std::string::npos) << finished.err;
  EXPECT_EQ(finished.err.find("muster: point 4 of 6: "), std::string::npos) << finished.err;
  EXPECT_TRUE(
      finished.err.ends_with("; 0 of 6 points are in x.csv; --resume measures the others\n"))
      << finished.err;
}

// The server answers with the other device, and that is not what the point says.
TEST_F(BenchRunCommand, DoesNotTrustAPointWhoseDeviceFailed) {
  muster_.set("ZERO_WORKER", "echo dim=32 exit_on=1");
  muster_.write("b.yaml", "backend: {model: " + tiny_model() +
                              ", device_ids: 2xcpu, torch_dtype: fp32}\n"
                              "scenario: {num_samples: 16, warm_up: none}\n"
                              "reporter: {output_file: x.csv}\n");
  const auto finished = run({});
  EXPECT_EQ(finished.exit_code, kInvalid) << finished.err;
  ASSERT_EQ(records().size(), 1U);
  const auto reasons = records().begin()->second["invalid_reasons"];
  ASSERT_FALSE(reasons.empty());
  EXPECT_EQ(reasons.back().get<std::string>().substr(0, 6), "cpu:1 ") << reasons;
}

// The server is ready with cpu:0 alone, and cpu:1 loads when this test says so.
TEST_F(BenchRunCommand, SendsNothingBeforeEveryDeviceIsReady) {
  const auto go = muster_.folder() / "go";
  ASSERT_EQ(::mkfifo(go.c_str(), 0600), 0);
  muster_.set("ZERO_WORKER", "echo dim=32 hold_on=1");
  muster_.write("b.yaml", "backend: {model: " + tiny_model() +
                              ", device_ids: 2xcpu, torch_dtype: fp32}\n"
                              "scenario: {num_samples: 16, warm_up: none}\n"
                              "reporter: {output_file: x.csv}\n");
  const auto pid = muster_.start({"bench", "run", "b.yaml"});
  EXPECT_TRUE(wait_for_words("muster: waiting for cpu:1\n", pid)) << "it has measured cpu:0 alone";
  const UniqueFd writer(::open(go.c_str(), O_RDWR | O_CLOEXEC));  // which waits for no reader
  const auto finished = muster_.wait(pid);
  EXPECT_TRUE(finished.exit_code == 0 || finished.exit_code == kInvalid) << finished.err;
  ASSERT_EQ(records().size(), 1U);
  const auto record = records().begin()->second;
  for (const auto& reason : record["invalid_reasons"]) {
    EXPECT_EQ(reason, "the load generator was late: the machine was too busy");
  }
}

// The second reply loses its worker behind its second token, and a new worker ends it. All ten
// tokens have come, and the point has waited for a worker meanwhile.
TEST_F(BenchRunCommand, DoesNotTrustAPointWhoseDecoderCameBack) {
  write_tiny_decoder(muster_, muster_.folder() / "model");
  muster_.set("MUSTER_WORKER_PROGRAM", MUSTER_BINARY_DIR "/bin/counting_worker");
  muster_.set("COUNTING_WORKER", "kill_after=7");
  muster_.write("prompts.txt", "a b\nb c\n");
  muster_.write("b.yaml",
                "backend: {model: model, device_ids: 1xcpu}\n"
                "scenario: {dataset_name: prompts.txt, warm_up: none, generate_kwargs: "
                "{max_new_tokens: 5, min_new_tokens: 5}}\n"
                "reporter: {output_file: x.csv}\n");
  const auto finished = run({});
  EXPECT_EQ(finished.exit_code, kInvalid) << finished.err;
  ASSERT_EQ(records().size(), 1U);
  const auto record = records().begin()->second;
  EXPECT_EQ(record["summary"]["total_completion_tokens"], 10);
  const auto reasons = record["invalid_reasons"];
  ASSERT_FALSE(reasons.empty());
  EXPECT_EQ(reasons.back(),
            "cpu:0 was not ready all the time: its worker was started again or checked");
}

// A point of the first run takes eight seconds, so that it is not over before the second has come.
TEST_F(BenchRunCommand, HasATableForItselfAlone) {
  write_slow_sweep(null_server(kSlow));
  measure({"scenario.clients=1", "scenario.num_samples=2"});
  const auto pid = muster_.start({"bench", "run", "b.yaml", "scenario.num_samples=400"});
  ASSERT_TRUE(wait_for_words("muster: point 1 of 6", pid));
  const auto second = muster_.run({"bench", "run", "b.yaml", "--restart"});
  ASSERT_EQ(::kill(pid, SIGINT), 0);
  muster_.wait(pid);
  EXPECT_EQ(second.exit_code, 6) << second.err;
  EXPECT_TRUE(second.err.ends_with("muster: x.csv: another run is writing it (process " +
                                   std::to_string(pid) +
                                   "): wait for its end, or name another file by "
                                   "reporter.output_file\n"))
      << second.err;
  EXPECT_EQ(records().size(), 1U) << "nothing was dropped";
}

// A link is another name of the same table, and one to nothing is told before anything is measured.
TEST_F(BenchRunCommand, HasATableForItselfAloneByAnyName) {
  write_slow_sweep(null_server(kSlow));
  std::filesystem::create_symlink("x.csv", muster_.folder() / "y.csv");
  const auto unfinished = run({"reporter.output_file=y.csv"});
  EXPECT_EQ(unfinished.exit_code, 3) << unfinished.err;
  EXPECT_NE(unfinished.err.find("muster: y.csv: cannot follow the link: "), std::string::npos)
      << unfinished.err;
  measure({"scenario.clients=1", "scenario.num_samples=2"});
  const auto pid = muster_.start({"bench", "run", "b.yaml", "scenario.num_samples=400"});
  ASSERT_TRUE(wait_for_words("muster: point 1 of 6", pid));
  const auto second = muster_.run({"bench", "run", "b.yaml", "reporter.output_file=y.csv"});
  ASSERT_EQ(::kill(pid, SIGINT), 0);
  muster_.wait(pid);
  EXPECT_EQ(second.exit_code, 6) << second.err;
  EXPECT_NE(second.err.find("muster: y.csv: another run is writing it (process "),
            std::string::npos)
      << second.err;
}

// Equal settings have equal ids: in one output_dir each table has a folder of its own.
TEST_F(BenchRunCommand, KeepsThePointsOfTwoTablesApart) {
  write_slow_sweep(null_server({"--law", "deterministic", "--mean", "0.001"}));
  const Words least{"scenario.clients=[1, 2]", "output_dir=o"};
  const auto with = [&](const Words& more) {
    Words words = least;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  measure(least);
  measure(with({"reporter.output_file=y.csv"}));
  EXPECT_EQ(records("o/x.points").size(), 2U);
  const auto others = records("o/y.points");
  EXPECT_EQ(others.size(), 2U);
  measure(with({"--restart"}));
  EXPECT_EQ(records("o/y.points"), others);
  expect_table_equals_files("x.csv", "o/x.points");
  expect_table_equals_files("y.csv", "o/y.points");
  const auto same = run(with({"reporter.output_file=other/x.csv"}));
  EXPECT_EQ(same.exit_code, 2) << same.err;
  EXPECT_NE(same.err.find("muster: o/x.points has the points of "), std::string::npos) << same.err;
  EXPECT_FALSE(muster_.exists("other/x.csv"));
}

// Neither where the points' files are gone nor where they lie elsewhere.
TEST_F(BenchRunCommand, WritesOverNoRowUnasked) {
  write_slow_sweep(null_server({"--law", "deterministic", "--mean", "0.001"}));
  measure({"scenario.clients=[1, 2]"});
  const auto before = muster_.read("x.csv");
  const auto elsewhere = run({"scenario.clients=[2, 3]", "output_dir=o"});
  EXPECT_EQ(elsewhere.exit_code, 2) << elsewhere.err;
  EXPECT_TRUE(elsewhere.err.ends_with(
      "muster: x.csv and o/x.points have 1 of the 2 points already: --resume measures what is "
      "missing, --restart drops them and measures all\n"))
      << elsewhere.err;
  std::filesystem::remove_all(muster_.folder() / "x.points");
  EXPECT_EQ(run({"scenario.clients=[1, 2]"}).exit_code, 2);
  EXPECT_EQ(muster_.read("x.csv"), before);
  measure({"scenario.clients=[1, 2]", "--resume"});
  EXPECT_EQ(table().row_count(), 2U);
  expect_table_equals_files();
}

TEST_F(BenchRunCommand, HasAFolderForItselfAlone) {
  write_slow_sweep(null_server(kSlow));
  const auto pid =
      muster_.start({"bench", "run", "b.yaml", "output_dir=o", "scenario.num_samples=400"});
  ASSERT_TRUE(wait_for_words("muster: point 1 of 6", pid));
  const auto second = run({"output_dir=o", "reporter.output_file=other/x.csv"});
  ASSERT_EQ(::kill(pid, SIGINT), 0);
  muster_.wait(pid);
  EXPECT_EQ(second.exit_code, 6) << second.err;
  EXPECT_NE(second.err.find("muster: o/x.points: another run is writing it (process "),
            std::string::npos)
      << second.err;
}

// A server that runs already is the same one, whatever build of muster sends the requests.
TEST_F(BenchRunCommand, SaysThatAnotherBuildHasMeasured) {
  write_slow_sweep(null_server({"--law", "deterministic", "--mean", "0.001"}));
  measure({"scenario.clients=1"});
  const auto point = records().begin()->first;
  auto result = Json::parse(muster_.read("x.points/" + point + ".json"));
  result["run"]["valid"] = true;
  result["run"]["backend_info"]["build"] = "0.0.1 (old)";
  muster_.write("x.points/" + point + ".json", result.dump());
  std::filesystem::remove(muster_.folder() / "x.csv");  // it is made anew from the points
  const auto resumed = measure({"scenario.clients=[1, 2]", "--resume"});
  EXPECT_NE(resumed.err.find("muster: x.csv has 1 point of another build of muster (0.0.1 (old)): "
                             "the server is what is measured, so they count\n"),
            std::string::npos)
      << resumed.err;
  EXPECT_NE(resumed.err.find("muster: point 1 of 1: "), std::string::npos) << resumed.err;
}

// The server is this process, and the file leaves the model to it.
TEST_F(BenchRunCommand, MeasuresAgainWhatAServerHasAnotherModelFor) {
  std::atomic<bool> has_second = false;
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  const auto server =
      HttpServer::start(options, [&](const HttpRequest& request, const HttpRespond& respond) {
        const std::string name = has_second ? "second" : "first";
        const std::string vector =
            R"({"data":[{"index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":1}})";
        respond({.status = 200,
                 .body = request.path == "/v1/models" ? R"({"data":[{"id":")" + name + R"("}]})"
                                                      : vector});
      });
  ASSERT_TRUE(server) << server.error().message;
  muster_.write("b.yaml", "backend: {url: \"http://127.0.0.1:" + std::to_string((*server)->port()) +
                              "\", task: embed}\n"
                              "scenario: {num_samples: 4, warm_up: none}\n"
                              "metrics: {enabled: false}\nreporter: {output_file: x.csv}\n");
  EXPECT_NE(measure().err.find("muster: model: first, the first that the server lists\n"),
            std::string::npos);
  has_second = true;
  const auto resumed = measure({"--resume"});
  EXPECT_NE(resumed.err.find("muster: point 1 of 1\n"), std::string::npos) << resumed.err;
  const auto csv = table();
  ASSERT_EQ(csv.row_count(), 2U);
  EXPECT_EQ(csv.cell(0, "config_model"), "first");
  EXPECT_EQ(csv.cell(1, "config_model"), "second");
  expect_table_equals_files();
}

// What only shows when the first point is measured, or kept, is looked for before.
TEST_F(BenchRunCommand, StartsNothingThatCouldNotBeKept) {
  muster_.write("taken", "mine");
  const auto refused = [&](const Words& more, const std::string& place) {
    const auto finished = run(more);
    EXPECT_EQ(finished.err.find("point 1 of"), std::string::npos) << finished.err;
    EXPECT_NE(finished.exit_code, 0);
    EXPECT_NE(finished.err.find("muster: " + place), std::string::npos) << finished.err;
    EXPECT_FALSE(muster_.exists("x.csv"));
  };
  muster_.write("b.yaml", small_file());
  refused({"output_dir=taken/points"}, "taken/points: ");
  refused({"metrics.output_dir=taken/recordings"}, "taken/recordings: ");
  muster_.write("b.yaml",
                "backend: {url: \"http://127.0.0.1:1\", task: generate}\n"
                "scenario: {num_samples: 2}\nreporter: {output_file: x.csv}\n");
  refused({"backend.tokenizer=no/such"}, "command line: backend.tokenizer: no/such");
  refused({"backend.api_key_file=no.key"}, "command line: backend.api_key_file: no.key");
  refused({}, "b.yaml:1: backend.url: 127.0.0.1:1: cannot connect: Connection refused\n");
  // With a model it would be connected to with the first point.
  refused({"backend.model=m", "backend.url=http://a b/v1", "output_dir=o"},
          "command line: backend.url: \"http://a b/v1\" is no server's URL; ");
  EXPECT_FALSE(muster_.exists("o"));
}

TEST_F(BenchRunCommand, SaysInASentenceWhatIsWrong) {
  const auto backend = "backend: {model: " + tiny_model() + ", device_ids: 1xcpu}\n";
  const std::string reporter = "reporter: {output_file: x.csv}\n";
  const auto refuse_file = [&](const std::string& scenario, int code, const std::string& message) {
    muster_.write("b.yaml", backend + reporter + scenario);
    refuse({}, code, message);
  };
  refuse_file("scenario: {num_sampels: 3}\n", 2,
              "b.yaml:3: scenario.num_sampels is not known; did you mean scenario.num_samples?");
  muster_.write("empty.txt", "\n\n");
  refuse_file("scenario: {dataset_name: empty.txt}\n", 2,
              "b.yaml:3: scenario.dataset_name has no text: empty.txt");
  muster_.write("texts.jsonl", "{\"body\": \"a\"}\n");
  muster_.write("texts.csv", "body,id\na,1\n");
  refuse_file("scenario: {dataset_name: AIEnergyScore/text_generation}\n", 3,
              "b.yaml:3: scenario.dataset_name: AIEnergyScore/text_generation: no such file; data "
              "sets are files here (.txt, .jsonl, .csv)");
  for (const std::string file : {"texts.jsonl", "texts.csv"}) {
    muster_.write("b.yaml", backend + reporter + "scenario: {dataset_name: " + file +
                                ", text_column_name: prompt}\n");
    const auto finished = run({});
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_TRUE(finished.err.starts_with("muster: b.yaml:3: scenario.dataset_name: " + file));
    EXPECT_NE(finished.err.find("prompt"), std::string::npos) << finished.err;
    EXPECT_EQ(finished.err.find("--skip-bad"), std::string::npos) << finished.err;
  }
  refuse_file("scenario: {num_samples: 4, input_shapes: {batch_size: [1, 64]}}\n", 2,
              "b.yaml:3: scenario.input_shapes.batch_size wants 64 texts at once, and there are 4");
  refuse_file("scenario: {rate: fast}\n", 2,
              "b.yaml:3: scenario.rate must be requests a second above 0 and up to 1000000, as "
              "100, or 10..200 for a rate that rises: \"fast\"");
  refuse_file("scenario: {rate: \"1,2\"}\n", 2,
              "b.yaml:3: scenario.rate is one rate; a sweep of rates is a list, as [10, 20]");
  refuse_file("scenario: {slo: \"latency_p99<fast\"}\n", 2,
              "b.yaml:3: scenario.slo: latency_p99 wants a time with its unit, as 500ms: \"fast\"");
  refuse_file("scenario: {dataset_name: \"-\"}\n", 2,
              "b.yaml:3: scenario.dataset_name must be a file, which each point reads: \"-\"");
  refuse_file("scenario: {generate_kwargs: {max_new_tokens: 5}}\n", 2,
              "b.yaml:3: scenario.generate_kwargs.max_new_tokens means nothing for the task embed");
  muster_.write("b.yaml", "backend: {model: no/such}\n");
  EXPECT_EQ(run({}).exit_code, 3);
  refuse({"backend.model=" + tiny_model(), "backend.device_ids=gpu0"}, 2,
         "command line: backend.device_ids: unknown device \"gpu0\": did you mean cuda:0?");
  EXPECT_EQ(run({}, "none.yaml").exit_code, 3);
  EXPECT_EQ(run({"--devices", "1xcpu"}).err,
            "muster: --devices has no meaning for muster bench run: its file says it\n");
}

// The server would leave the second one out. A rule means what is left.
TEST_F(BenchRunCommand, NamesNoMoreDevicesThanTheServerMayHave) {
  muster_.set("MUSTER_DEVICE_COUNT_MOST", "1");
  muster_.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster_.set("FAKENVML_SCENARIO", (muster_.folder() / "gpus.json").string());
  muster_.write("gpus.json", R"({"fake_nvml":1,"gpus":[{"model":"H200"},{"model":"H200"}]})");
  muster_.write("b.yaml", "backend:\n  model: " + tiny_model() +
                              "\n  device_ids: [[0], [0, 1]]\n  torch_dtype: fp32\n"
                              "scenario: {num_samples: 4, warm_up: none}\n"
                              "reporter: {output_file: x.csv}\n");
  refuse({}, 2,
         "b.yaml:3: backend.device_ids names 2 devices, and device_count_most is 1 "
         "(MUSTER_DEVICE_COUNT_MOST)");
  measure({"backend.device_ids=cuda"});
  ASSERT_EQ(records().size(), 1U);
  EXPECT_EQ(records().begin()->second["config"]["device_ids"], Json{0});
}

TEST_F(BenchRunCommand, HoldsModelsToTheirPlacement) {
  muster_.write("b.yaml", "backend:\n  model: " + tiny_model() +
                              "\n  device_ids: 2xcpu\n  max_memory: {0: 1GB, 1: 1KB}\n"
                              "scenario: {num_samples: 4}\nreporter: {output_file: x.csv}\n");
  const auto small = run({});
  EXPECT_EQ(small.exit_code, 8) << small.err;
  EXPECT_NE(small.err.find("muster: b.yaml:4: backend.max_memory: a whole copy of "),
            std::string::npos)
      << small.err;
  const auto map = run({"backend.max_memory={0: 1GB}", "backend.device_map=balanced"});
  EXPECT_EQ(map.exit_code, 2);
  EXPECT_TRUE(map.err.ends_with(
      "muster: command line: backend.device_map: balanced cuts one model over 2 devices, and "
      "muster runs a whole copy on each: write auto, or one device\n"))
      << map.err;
  const auto other = run({"backend.max_memory={3: 1GB}"});
  EXPECT_TRUE(
      other.err.ends_with("muster: command line: backend.max_memory: no device 3 in "
                          "backend.device_ids, which are cpu:0, cpu:1\n"))
      << other.err;
  EXPECT_FALSE(muster_.exists("x.csv"));
  measure({"backend.max_memory={0: 4GB, 1: 4GB}", "backend.device_map=auto"});
  EXPECT_EQ(records().begin()->second["config"]["max_memory"], "0=4GB,1=4GB");
  // A limit of a device that only other points have holds for those alone.
  measure({"backend.max_memory={0: 4GB, 1: 4GB}", "backend.device_ids=[[1xcpu], [2xcpu]]"});
  EXPECT_EQ(records().size(), 3U);
}

TEST_F(BenchRunCommand, WritesOverNothingOfOthers) {
  muster_.write("b.yaml", small_file());
  muster_.write("x.csv", "my,own\n1,2\n");
  const auto finished = run({"--restart"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_TRUE(
      finished.err.ends_with("muster: x.csv: that is no table of muster bench run, and it "
                             "would be overwritten: remove it, or name another file\n"))
      << finished.err;
  EXPECT_EQ(muster_.read("x.csv"), "my,own\n1,2\n");
}

}  // namespace
}  // namespace muster
