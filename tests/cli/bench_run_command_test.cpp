// `muster bench run` and `bench init` on the real program: what is measured, and what stands in the
// files then.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/text.h"
#include "bench_run_fixture.h"
#include "net/http_server.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

TEST_F(BenchRunCommand, MeasuresEveryPointAndKeepsEach) {
  muster_.write("b.yaml", small_file());
  const auto finished = measure();
  EXPECT_NE(finished.err.find("muster: devices: 1 requested, 1 available: all\n"),
            std::string::npos)
      << finished.err;
  EXPECT_NE(finished.err.find("muster: point 2 of 2: batch_size="), std::string::npos);
  EXPECT_NE(finished.out.find("batch_size  prompts/s"), std::string::npos) << finished.out;
  const auto all = records();
  ASSERT_EQ(all.size(), 2U);
  std::set<int> sizes;
  for (const auto& [id, record] : all) {
    sizes.insert(record["config"]["batch_size"].get<int>());
    EXPECT_EQ(record["summary"]["total_prompts"], 16);
    EXPECT_EQ(record["summary"]["failed_prompts"], 0);
    EXPECT_EQ(record["config"]["device_ids"], Json{"1xcpu"});
    EXPECT_EQ(record["availability"]["all_available"], true);
    EXPECT_EQ(record["backend_info"]["precision"], "fp32");
    for (const auto& reason : record["invalid_reasons"]) {
      EXPECT_EQ(reason, "the load generator was late: the machine was too busy");
    }
    // Either it was read, or it says why not: 16 texts may be answered before a reading is taken.
    const auto& cpus = record["cpu_stats"];
    EXPECT_NE(cpus["utilization_percent"].is_null(), cpus["missing_reason"].is_null()) << cpus;
    const auto& energy = record["energy"];
    EXPECT_NE(energy["joules"].is_null(), energy["missing_reason"].is_null()) << energy;
    const auto result = Json::parse(muster_.read("x.points/" + id + ".json"));
    EXPECT_EQ(result["settings"]["--devices"], "1xcpu");
    EXPECT_EQ(result["points"][0]["trials"][0]["samples"]["latency_ns"].size(),
              record["summary"]["total_requests"].get<std::size_t>());
  }
  EXPECT_EQ(sizes, (std::set<int>{1, 8}));
  expect_table_equals_files();
  EXPECT_FALSE(muster_.exists("x.csv.lock"));
}

TEST_F(BenchRunCommand, ResumesWhatIsMissingOrNotValid) {
  muster_.write("b.yaml", small_file());
  measure();
  const auto first = records();
  ASSERT_EQ(first.size(), 2U);
  const auto file = [](const std::string& id) { return "x.points/" + id + ".json"; };
  // Whatever the machine did: both are valid now.
  for (const auto& [id, record] : first) {
    auto result = Json::parse(muster_.read(file(id)));
    result["run"]["valid"] = true;
    muster_.write(file(id), result.dump());
  }
  const auto refused = run({});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(refused.err.ends_with(
      "muster: x.csv and x.points have 2 of the 2 points already: --resume measures what is "
      "missing, --restart drops them and measures all\n"))
      << refused.err;
  const auto nothing = run({"--resume"});
  EXPECT_EQ(nothing.exit_code, 0) << nothing.err;
  EXPECT_EQ(nothing.err.find("point 1 of"), std::string::npos) << "there is nothing to measure";
  const auto& [lost, lost_record] = *first.begin();
  fs::remove(muster_.folder() / file(lost));
  const auto one = measure({"--resume"});
  EXPECT_NE(one.err.find("point 1 of 1: "), std::string::npos) << one.err;
  EXPECT_TRUE(records().contains(lost));
  // A point that cannot be trusted is measured again.
  const auto& other = first.rbegin()->first;
  auto result = Json::parse(muster_.read(file(other)));
  result["run"]["valid"] = false;
  result["run"]["timestamp"] = "long ago";
  muster_.write(file(other), result.dump());
  measure({"--resume"});
  EXPECT_NE(records()[other]["timestamp"], "long ago");
  expect_table_equals_files();
}

TEST_F(BenchRunCommand, KnowsPointsByAllOfTheirSettings) {
  muster_.write("b.yaml", small_file());
  measure();
  // The same keys are swept over the same values, and what else holds differs.
  const auto more = measure({"scenario.num_samples=24", "--resume"});
  EXPECT_NE(more.err.find("point 2 of 2"), std::string::npos) << more.err;
  EXPECT_EQ(records().size(), 4U);
  expect_table_equals_files();
  muster_.write("x.points/notes.json", "mine");
  const auto restarted = measure({"--restart"});
  EXPECT_EQ(table().row_count(), 2U) << "all older rows are dropped";
  EXPECT_EQ(muster_.read("x.points/notes.json"), "mine");
  fs::remove(muster_.folder() / "x.points/notes.json");
  expect_table_equals_files();
  const auto both = run({"--resume", "--restart"});
  EXPECT_EQ(both.exit_code, 2);
  // Nor does a server with other settings pass for the same.
  muster_.set("MUSTER_BATCH_TOKENS", "512");
  const auto other = measure({"--resume"});
  EXPECT_NE(other.err.find("point 2 of 2"), std::string::npos) << other.err;
  std::size_t told = 0;
  for (const auto& [id, record] : records()) {
    const auto settings = record["backend_info"]["settings"].get<std::string>();
    told += settings.find("--batch-tokens=512") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(told, 2U);
}

// How its vectors are pooled stands in a folder within.
TEST_F(BenchRunCommand, KnowsPointsByAllFilesOfTheModel) {
  fs::copy(tiny_model(), muster_.folder() / "model", fs::copy_options::recursive);
  muster_.write("b.yaml",
                "backend: {model: model, device_ids: 1xcpu, torch_dtype: fp32}\n"
                "scenario: {num_samples: 4, warm_up: none}\nreporter: {output_file: x.csv}\n");
  measure();
  const auto pooling = muster_.read("model/1_Pooling/config.json");
  ASSERT_NE(pooling, "");
  muster_.write("model/1_Pooling/config.json", pooling + "\n");
  muster_.write("model/.cache", "notes of a downloader");
  measure({"--resume"});
  EXPECT_EQ(table().row_count(), 2U);
  muster_.write("model/.cache", "others");
  measure({"--resume"});
  EXPECT_EQ(table().row_count(), 2U) << "which are no part of the model";
}

TEST_F(BenchRunCommand, ReadsTheFieldThatTheSettingsName) {
  muster_.set("MUSTER_FIELD", "body");
  muster_.write("texts.jsonl", "{\"body\": \"a\"}\n{\"body\": \"b\"}\n");
  muster_.write("b.yaml", "backend: {model: " + tiny_model() +
                              ", device_ids: 1xcpu, torch_dtype: fp32}\n"
                              "scenario: {dataset_name: texts.jsonl, warm_up: none}\n"
                              "reporter: {output_file: x.csv}\n");
  measure();
  ASSERT_EQ(records().size(), 1U);
  EXPECT_EQ(records().begin()->second["summary"]["successful_prompts"], 2);
}

// A copy of the model on each of one, two, four and eight GPUs, whose readings libfakenvml plays.
// Two seconds each, as memory and temperature are read once a second.
TEST_F(BenchRunCommand, KeepsTheColumnsInTheirPlacesHoweverManyGpusThereAre) {
  muster_.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster_.set("FAKENVML_SCENARIO", (muster_.folder() / "gpus.json").string());
  std::string gpus;
  // On the last one is a program of somebody else: this one.
  const auto other = R"(,"processes":[{"pid":)" + std::to_string(::getpid()) + "}]";
  for (int i = 0; i < 8; ++i) {
    gpus += std::string(i > 0 ? "," : "") + R"({"model":"H200","load":0.5)" + (i == 7 ? other : "");
    gpus += "}";
  }
  muster_.write("gpus.json", R"({"fake_nvml":1,"gpus":[)" + gpus + "]}");
  const auto file = [](const std::string& ids) {
    return "backend: {model: " + tiny_model() +
           ", type: pytorch, device: cuda, device_ids: " + ids +
           ", torch_dtype: float32}\n"
           "scenario: {num_samples: 16, rate: 8, arrivals: constant, warm_up: none}\n"
           "reporter: {output_file: x.csv}\n";
  };
  muster_.write("b.yaml", file("[0]"));
  measure();
  const auto one = table().columns();
  muster_.write("b.yaml", file("[[0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4, 5, 6, 7]]"));
  measure();
  const auto all = table();
  ASSERT_EQ(all.row_count(), 4U);
  ASSERT_GT(all.columns().size(), one.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(all.columns()[i], one[i]);
  expect_table_equals_files();
  for (std::size_t row = 0; row < all.row_count(); ++row) {
    const auto ids = split(all.cell(row, "config_device_ids"), ',');
    for (std::size_t gpu = 0; gpu < 8; ++gpu) {
      const auto cell = [&](const std::string& key) {
        return all.cell(row, "gpu_stats_gpu_" + std::to_string(gpu) + "_" + key);
      };
      const bool is_there = gpu < ids.size();
      EXPECT_EQ(cell("name").empty(), !is_there) << all.cell(row, "config_device_ids");
      for (const auto* key : {"utilization_percent", "memory_used_mb", "memory_total_mb",
                              "memory_percent", "temperature_c", "power_draw_w"}) {
        EXPECT_EQ(cell(key).empty(), !is_there) << key << " of " << gpu;
      }
    }
    // A busy machine may miss an edge of a counter, and the row says so then.
    EXPECT_EQ(all.cell(row, "energy_method") == "counter",
              all.cell(row, "energy_counter_missing_reason").empty())
        << all.cell(row, "energy_method");
    EXPECT_GT(std::stod(all.cell(row, "energy_joules")), 0);
    EXPECT_NE(all.cell(row, "cpu_stats_utilization_percent"), "") << "two seconds are enough";
    // The driver shows no process of the worker's: who else is there is not known, but where one
    // is seen.
    EXPECT_EQ(all.cell(row, "energy_exclusive"), ids.size() == 8 ? "false" : "");
  }
}

TEST_F(BenchRunCommand, MeasuresRepliesOfAnyServer) {
  const auto url = null_server({"--token-gap", "0.0005"});
  muster_.write("prompts.txt", "one\ntwo\nthree\nfour\n");
  muster_.write("b.yaml", "backend: {type: vllm, endpoint: \"" + url +
                              "/v1\"}\n"
                              "scenario:\n"
                              "  dataset_name: prompts.txt\n"
                              "  warm_up: none\n"
                              "  input_shapes: {batch_size: [1, 2]}\n"
                              "  generate_kwargs: {max_new_tokens: 6, min_new_tokens: 6}\n"
                              "metrics: {carbon_intensity_g_per_kwh: 300, "
                              "carbon_intensity_source: a report}\n"
                              "reporter: {output_file: r/x.csv}\n");
  const auto json = Json::parse(measure({"--json"}).out);
  ASSERT_EQ(json["points"].size(), 2U);
  EXPECT_EQ(json["points"][0]["config"]["batch_size"], 1) << "in the order of the file";
  for (const auto& record : json["points"]) {
    EXPECT_EQ(record["summary"]["total_completion_tokens"], 24);
    EXPECT_TRUE(record["summary"]["avg_time_to_first_token"].is_number());
    EXPECT_EQ(record["energy"]["joules"], nullptr);
    EXPECT_EQ(record["energy"]["missing_reason"],
              "backend.device_ids names no device of this machine to watch");
    EXPECT_EQ(record["energy"]["emissions_missing_reason"], "the energy is not known");
  }
  expect_table_equals_files("r/x.csv", "r/x.points");
  server_.reset();
  const auto nonsense = null_server({"--nonsense"});
  const auto finished = run({"backend.url=" + nonsense});
  EXPECT_EQ(finished.exit_code, 6) << finished.err;
  EXPECT_NE(finished.err.find("no request was answered: the stream has an event that is no JSON"),
            std::string::npos)
      << finished.err;
}

// The server is this process, and never answers.
TEST_F(BenchRunCommand, NamesTheKeysWithWhichAServerIsNotAskedForItsModel) {
  std::vector<HttpRespond> held;
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  const auto server = HttpServer::start(
      options, [&](const HttpRequest&, const HttpRespond& respond) { held.push_back(respond); });
  ASSERT_TRUE(server) << server.error().message;
  const auto address = "127.0.0.1:" + std::to_string((*server)->port());
  muster_.write("b.yaml", "backend: {url: \"http://" + address +
                              "\", task: embed}\n"
                              "scenario: {num_samples: 4, timeout: 200ms}\n"
                              "reporter: {output_file: x.csv}\n");
  refuse({}, 5,
         "b.yaml:1: backend.url: " + address +
             ": no answer in time to GET /v1/models (scenario.timeout is 0.2 s); with "
             "backend.model it is not asked");
}

// 40 requests at 20 to 60 a second take one: 20 t + 20 t^2 are sent within t, so the 21st is sent
// where that is 20 and the last one where it is 39.
TEST_F(BenchRunCommand, RaisesTheRateOverTheRequestsOfAPoint) {
  muster_.write("b.yaml",
                "backend: {url: \"" + null_server() +
                    "\", model: \"null\", task: embed}\n"
                    "scenario: {num_samples: 40, rate: 20..60, arrivals: constant, warm_up: none}\n"
                    "metrics: {enabled: false}\nreporter: {output_file: x.csv}\n");
  measure();
  ASSERT_EQ(records().size(), 1U);
  const auto result = Json::parse(muster_.read("x.points/" + records().begin()->first + ".json"));
  auto times =
      result["points"][0]["trials"][0]["samples"]["intended_ns"].get<std::vector<double>>();
  ASSERT_EQ(times.size(), 40U);
  std::ranges::sort(times);  // they come in the order of their answers
  EXPECT_NEAR(times[20], 1e9 * (std::sqrt(5.0) - 1) / 2, 1e3);
  EXPECT_NEAR(times[39], 1e9 * (std::sqrt(8.8) - 1) / 2, 1e3);
}

TEST_F(BenchRunCommand, MeasuresADecoderByItself) {
  write_tiny_decoder(muster_, muster_.folder() / "model");
  muster_.set("MUSTER_WORKER_PROGRAM", MUSTER_BINARY_DIR "/bin/counting_worker");
  muster_.write("prompts.txt", "a b\nb c\n");
  muster_.write("b.yaml",
                "backend: {model: model, device_ids: 1xcpu}\n"
                "scenario: {dataset_name: prompts.txt, warm_up: none, generate_kwargs: "
                "{max_new_tokens: 5, min_new_tokens: 5}}\n"
                "metrics: {output_dir: recordings}\n"
                "reporter: {output_file: x.csv}\n");
  measure();
  const auto all = records();
  ASSERT_EQ(all.size(), 1U);
  const auto& record = all.begin()->second;
  EXPECT_EQ(record["config"]["task"], "generate");
  EXPECT_EQ(record["summary"]["total_completion_tokens"], 10);
  EXPECT_EQ(record["summary"]["token_source"], "usage");
  const auto recording = "recordings/" + all.begin()->first + ".jsonl";
  EXPECT_TRUE(Json::parse(split(muster_.read(recording), '\n').front()).contains("time"));
  const auto first = split(muster_.read(recording), '\n').front();
  measure({"--restart"});
  EXPECT_EQ(muster_.read(recording).find(first), std::string::npos) << "of this run alone";
  const auto shown = muster_.run({"top", "--replay", recording, "--once"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
}

TEST_F(BenchRunCommand, WritesAFileThatRunsUnedited) {
  const auto written = muster_.run({"bench", "init", tiny_model(), "-o", "b.yaml"});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  const auto finished = measure();
  EXPECT_EQ(table("results/benchmark_results.csv").row_count(), 3U) << finished.err;
  const auto again = muster_.run({"bench", "init", tiny_model(), "-o", "b.yaml"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_EQ(again.err, "muster: -o b.yaml: there is a file already: remove it, or name another\n");
  for (const std::string name : {"", "-"}) {
    EXPECT_EQ(muster_.run({"bench", "init", tiny_model(), "--out=" + name}).err,
              "muster: -o wants the name of a file; without it the file is on standard output\n");
  }
  // Without a word it takes what the hub cache has.
  const auto none = muster_.run({"bench", "init"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_NE(none.err.find("muster pull sentence-transformers/all-MiniLM-L6-v2"), std::string::npos);
  const auto cached = muster_.folder() / ".cache/huggingface/hub/models--org--tiny";
  fs::create_directories(cached / "refs");
  fs::create_directories(cached / "snapshots");
  muster_.write(".cache/huggingface/hub/models--org--tiny/refs/main", "abc");
  fs::copy(tiny_model(), cached / "snapshots/abc", fs::copy_options::recursive);
  const auto found = muster_.run({"bench", "init"});
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_NE(found.out.find("  model: \"org/tiny\"\n"), std::string::npos) << found.out;
}

TEST_F(BenchRunCommand, WritesAFileForItsCpusWhereNoGpuIsFit) {
  muster_.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster_.set("FAKENVML_SCENARIO", (muster_.folder() / "gpus.json").string());
  muster_.write("gpus.json", R"({"fake_nvml":1,"gpus":[{"model":"H200","compute_mode":2}]})");
  const auto written = muster_.run({"bench", "init", tiny_model()});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_NE(written.out.find("  device: cpu\n"), std::string::npos) << written.out;
}

// The files of examples/bench, with the model and the devices of this test.
TEST_F(BenchRunCommand, RunsTheExamples) {
  const fs::path examples = MUSTER_SOURCE_DIR "/examples/bench";
  for (const auto& entry : fs::directory_iterator(examples)) {
    fs::copy(entry.path(), muster_.folder(), fs::copy_options::overwrite_existing);
  }
  measure({"backend.model=" + tiny_model(), "backend.device_ids=1xcpu", "scenario.num_samples=128",
           "scenario.input_shapes.batch_size=[1, 128]"},
          "embed.yaml");
  EXPECT_EQ(table("results/embed.csv").row_count(), 4U);
  muster_.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster_.set("FAKENVML_SCENARIO", MUSTER_SOURCE_DIR "/tests/fake_machines/busy-8xh200.json");
  measure({"backend.model=" + tiny_model(), "scenario.rate=8"}, "multigpu.yaml");
  const auto gpus = table("results/multigpu.csv");
  ASSERT_EQ(gpus.row_count(), 1U);
  EXPECT_EQ(gpus.cell(0, "config_device_ids"), "0,1,2,3");
  EXPECT_EQ(gpus.cell(0, "summary_total_prompts"), "10");
  EXPECT_EQ(gpus.cell(0, "energy_country"), "USA");
  EXPECT_EQ(gpus.cell(0, "energy_exclusive"), "") << "the programs on those GPUs are not of here";
  EXPECT_NE(gpus.cell(0, "gpu_stats_gpu_3_power_draw_w"), "");
  measure({"backend.url=" + null_server()}, "remote.yaml");
  EXPECT_EQ(table("results/remote.csv").row_count(), 2U);
}

}  // namespace
}  // namespace muster
