// `muster bench run` and `bench init` on the real program: with zero_worker as the engine, GPUs
// that libfakenvml plays, and the null server as one that runs already. A busy machine may make a
// point invalid (exit code 22); what is kept is looked at all the same.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "bench/child/child_server.h"
#include "run_muster.h"
#include "sweep/point_store.h"
#include "sweep/record_table.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

constexpr int kInvalid = 22;

class BenchRunCommand : public ::testing::Test {
 protected:
  BenchRunCommand() {
    muster_.set("MUSTER_WORKER_PROGRAM", MUSTER_BINARY_DIR "/bin/zero_worker");
    muster_.set("ZERO_WORKER", "echo dim=32");  // rows as the model has
    muster_.set("MUSTER_TORCH_ROOT", (muster_.folder() / "torch").string());
  }

  // address: of a server that was there before.
  std::string null_server(const Words& flags = {}, const std::string& address = "127.0.0.1:0") {
    Words words{MUSTER_BINARY_DIR "/bin/muster-null-server", "--listen", address};
    words.insert(words.end(), flags.begin(), flags.end());
    auto server = ChildServer::start(words, std::chrono::seconds(60), [] { return false; });
    EXPECT_TRUE(server) << server.error().message;
    if (!server) return "";
    server_ = std::move(*server);
    return server_->url();
  }

  Finished run(const Words& more, const std::string& file = "b.yaml") {
    Words words{"bench", "run", file};
    words.insert(words.end(), more.begin(), more.end());
    return muster_.run(words);
  }

  // Measured, whether or not the machine was quiet enough.
  Finished measure(const Words& more = {}, const std::string& file = "b.yaml") {
    auto finished = run(more, file);
    EXPECT_TRUE(finished.exit_code == 0 || finished.exit_code == kInvalid) << finished.err;
    return finished;
  }

  void refuse(const Words& more, int code, const std::string& message) {
    const auto finished = run(more);
    EXPECT_EQ(finished.exit_code, code) << finished.err;
    EXPECT_TRUE(finished.err.ends_with("muster: " + message + "\n")) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_FALSE(muster_.exists("x.csv"));
    EXPECT_FALSE(muster_.exists("x.points"));
  }

  RecordTable table(const std::string& file = "x.csv") const {
    auto table = RecordTable::read(muster_.read(file), file);
    EXPECT_TRUE(table) << table.error().message;
    return table ? *table : RecordTable();
  }

  // The records of the points' files, by their ids.
  std::map<std::string, Json> records(const std::string& folder = "x.points") const {
    std::map<std::string, Json> all;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(muster_.folder() / folder, none)) {
      if (entry.path().extension() != ".json") continue;
      const auto name = (fs::path(folder) / entry.path().filename()).string();
      const auto kept = read_kept_point(muster_.read(name), name);
      EXPECT_TRUE(kept) << kept.error().message;
      if (kept) all[kept->id] = kept->record;
    }
    return all;
  }

  // Every cell of the table is what the point's file says, worked out anew.
  void expect_table_equals_files(const std::string& file = "x.csv",
                                 const std::string& folder = "x.points") const {
    const auto csv = table(file);
    const auto all = records(folder);
    EXPECT_EQ(csv.row_count(), all.size());
    for (std::size_t row = 0; row < csv.row_count(); ++row) {
      const auto found = all.find(csv.cell(row, "point"));
      ASSERT_NE(found, all.end());
      std::set<std::string> seen;
      const std::function<void(const Json&, const std::string&)> look =
          [&](const Json& value, const std::string& name) {
            if (value.is_object()) {
              for (const auto& item : value.items()) {
                look(item.value(), name.empty() ? item.key() : name + "_" + item.key());
              }
              return;
            }
            std::string text;
            if (value.is_array()) {
              for (const auto& one : value) {
                text +=
                    (text.empty() ? "" : ",") + (one.is_string() ? std::string(one) : one.dump());
              }
            } else if (!value.is_null()) {
              text = value.is_string() ? std::string(value) : value.dump();
            }
            seen.insert(name);
            EXPECT_EQ(csv.cell(row, name), text) << name;
          };
      look(found->second, "");
      for (const auto& column : csv.columns()) {
        if (!seen.contains(column)) EXPECT_EQ(csv.cell(row, column), "") << column;
      }
    }
  }

  // Six points of a server that takes 20 ms for each of 40 requests, so that one takes most of a
  // second.
  void write_slow_sweep(const std::string& url) {
    muster_.write("b.yaml", "backend: {url: \"" + url +
                                "\", model: \"null\", task: embed}\n"
                                "scenario: {num_samples: 40, clients: [1, 2, 3, 4, 5, 6]}\n"
                                "metrics: {enabled: false}\n"
                                "reporter: {output_file: x.csv}\n");
  }

  // Until so many points are kept; waits for nothing else.
  void wait_for_points(std::size_t count) const {
    for (;;) {
      std::size_t there = 0;
      std::error_code none;
      for (const auto& entry : fs::directory_iterator(muster_.folder() / "x.points", none)) {
        there += entry.path().extension() == ".json" ? 1 : 0;
      }
      if (there >= count) return;
      std::this_thread::yield();
    }
  }

  Muster muster_{"bench_run_command"};
  std::unique_ptr<ChildServer> server_;
};

const Words kSlow{"--law", "deterministic", "--mean", "0.02"};

// The least file that measures something on one CPU.
std::string small_file(const std::string& more = "") {
  return "backend: {model: " + tiny_model() +
         ", device_ids: 1xcpu, torch_dtype: fp32}\n"
         "scenario: {num_samples: 16, warm_up: none, input_shapes: {batch_size: [1, 8]}}\n"
         "reporter: {output_file: x.csv}\n" +
         more;
}

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
    EXPECT_TRUE(record["cpu_stats"]["utilization_percent"].is_number());
    // Either a counter was read, or it says why not.
    EXPECT_NE(record["energy"]["joules"].is_null(), record["energy"]["missing_reason"].is_null());
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
      "muster: x.csv has 2 of the 2 points already: --resume measures what is missing, --restart "
      "drops it and measures all\n"))
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
}

// A copy of the model on each of one, two, four and eight GPUs, whose readings libfakenvml plays.
// Two seconds each, as memory and temperature are read once a second.
TEST_F(BenchRunCommand, KeepsTheColumnsInTheirPlacesHoweverManyGpusThereAre) {
  muster_.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster_.set("FAKENVML_SCENARIO", (muster_.folder() / "gpus.json").string());
  std::string gpus;
  for (int i = 0; i < 8; ++i)
    gpus += std::string(i > 0 ? "," : "") + R"({"model":"H200","load":0.5})";
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
    EXPECT_EQ(all.cell(row, "energy_method"), "counter");
    EXPECT_GT(std::stod(all.cell(row, "energy_joules")), 0);
    EXPECT_EQ(all.cell(row, "energy_exclusive"), "true");
  }
}

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

TEST_F(BenchRunCommand, KeepsWhatIsFinishedWhenItIsKilled) {
  write_slow_sweep(null_server(kSlow));
  const auto pid = muster_.start({"bench", "run", "b.yaml"});
  wait_for_points(2);
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
  wait_for_points(1);
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

TEST_F(BenchRunCommand, KeepsWhatIsFinishedWhenTheServerIsLost) {
  const auto url = null_server(kSlow);
  write_slow_sweep(url);
  const auto pid = muster_.start({"bench", "run", "b.yaml"});
  wait_for_points(1);
  server_.reset();
  const auto finished = muster_.wait(pid);
  EXPECT_EQ(finished.exit_code, 6) << finished.err;
  EXPECT_NE(finished.err.find(" of 6 points are in x.csv; --resume measures the others\n"),
            std::string::npos)
      << finished.err;
  const auto kept = records().size();
  EXPECT_GE(kept, 1U);
  EXPECT_LT(kept, 6U);
  expect_table_equals_files();
  null_server(kSlow, url.substr(7));
  measure({"--resume"});
  EXPECT_EQ(table().row_count(), 6U);
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
  measure({"backend.max_memory={0: 1GB, 1: 1GB}", "backend.device_map=auto"});
  EXPECT_EQ(records().begin()->second["config"]["max_memory"], "0=1GB,1=1GB");
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
  EXPECT_EQ(gpus.cell(0, "energy_exclusive"), "false") << "other programs are on those GPUs";
  EXPECT_NE(gpus.cell(0, "gpu_stats_gpu_3_power_draw_w"), "");
  measure({"backend.url=" + null_server()}, "remote.yaml");
  EXPECT_EQ(table("results/remote.csv").row_count(), 2U);
}

}  // namespace
}  // namespace muster
