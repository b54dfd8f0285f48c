#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bench/child/child_server.h"
#include "run_muster.h"
#include "sweep/point_store.h"
#include "sweep/record_table.h"

namespace muster {

/// `muster bench run` in a folder of its own: with zero_worker as the engine, and the null server
/// as one that runs already. A busy machine may make a point invalid (exit code 22); what is kept
/// is looked at all the same.
class BenchRunCommand : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;
  static constexpr int kInvalid = 22;

  BenchRunCommand() {
    muster_.set("MUSTER_WORKER_PROGRAM", MUSTER_BINARY_DIR "/bin/zero_worker");
    muster_.set("ZERO_WORKER", "echo dim=32");  // rows as the model has
    muster_.set("MUSTER_TORCH_ROOT", (muster_.folder() / "torch").string());
  }

  // The least file that measures something on one CPU.
  static std::string small_file(const std::string& more = "") {
    return "backend: {model: " + tiny_model() +
           ", device_ids: 1xcpu, torch_dtype: fp32}\n"
           "scenario: {num_samples: 16, warm_up: none, input_shapes: {batch_size: [1, 8]}}\n"
           "reporter: {output_file: x.csv}\n" +
           more;
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
  std::map<std::string, nlohmann::ordered_json> records(
      const std::string& folder = "x.points") const {
    std::map<std::string, nlohmann::ordered_json> all;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(muster_.folder() / folder, none)) {
      if (entry.path().extension() != ".json") continue;
      const auto name = (std::filesystem::path(folder) / entry.path().filename()).string();
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
      const std::function<void(const nlohmann::ordered_json&, const std::string&)> look =
          [&](const nlohmann::ordered_json& value, const std::string& name) {
            if (value.is_object()) {
              for (const auto& item : value.items()) {
                look(item.value(), name.empty() ? item.key() : name + "_" + item.key());
              }
              return;
            }
            std::string text;
            if (value.is_array()) {
              for (const auto& one : value) {
                text += (text.empty() ? "" : ",") +
                        (one.is_string() ? one.get<std::string>() : one.dump());
              }
            } else if (!value.is_null()) {
              text = value.is_string() ? value.get<std::string>() : value.dump();
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

  // Until so many points are kept, or the run has ended by itself.
  void wait_for_points(std::size_t count, pid_t pid) const {
    siginfo_t ended{};
    while (ended.si_pid == 0) {
      ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT), 0);
      std::size_t there = 0;
      std::error_code none;
      for (const auto& entry :
           std::filesystem::directory_iterator(muster_.folder() / "x.points", none)) {
        there += entry.path().extension() == ".json" ? 1 : 0;
      }
      if (there >= count) return;
      std::this_thread::yield();
    }
  }

  // Until it has said this on standard error; false: it has ended without.
  bool wait_for_words(const std::string& words, pid_t pid) const {
    siginfo_t ended{};
    for (;;) {
      const bool has_ended =
          ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          ended.si_pid != 0;
      if (muster_.read("stderr").find(words) != std::string::npos) return true;
      if (has_ended) return false;
      std::this_thread::yield();
    }
  }

  Muster muster_{"bench_run_command"};
  std::unique_ptr<ChildServer> server_;
};

}  // namespace muster
