// `muster plan` and `muster estimate`: verdicts, exit codes and files, on the real program.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_muster.h"

namespace muster {
namespace {

using Words = std::vector<std::string>;

class PlanCommand : public testing::Test {
 protected:
  Muster muster_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(PlanCommand, WritesTheMapOfAPeerWhereItIsTold) {
  const Words words{"plan",      MUSTER_SOURCE_DIR "/tests/plans/models/bert-base/config.json",
                    "--machine", "sim:2xA10G-24G",
                    "--compat",  "accelerate"};
  const auto shown = muster_.run(words);
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  auto with_file = words;
  with_file.insert(with_file.end(), {"-o", "acc.json"});
  const auto written = muster_.run(with_file);
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(muster_.read("acc.json"), shown.out);
  with_file.insert(with_file.end(), {"--format", "vllm"});
  EXPECT_EQ(muster_.run(with_file).exit_code, 2);
}

TEST_F(PlanCommand, AModelOnOneDeviceHasADeviceMapWithoutFurtherFlags) {
  const auto done =
      muster_.run({"plan", MUSTER_SOURCE_DIR "/tests/plans/models/llama-3-8b", "--machine",
                   "sim:8xH100-80G", "--format", "hf_device_map", "-o", "map.json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto map = nlohmann::json::parse(muster_.read("map.json"));
  EXPECT_EQ(map.size(), 2U + 32 + 2) << "embedding, rotary table, layers, norm, head";
  for (const auto& [module, device] : map.items()) EXPECT_EQ(device, 0) << module;
}

TEST_F(PlanCommand, AnOffloadedModelHasADeviceMapToo) {
  const auto done =
      muster_.run({"plan", MUSTER_SOURCE_DIR "/tests/plans/models/llama-3-70b", "--machine",
                   "sim:2xA10G-24G,host=256GB", "--format", "hf_device_map", "-o", "map.json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto map = nlohmann::json::parse(muster_.read("map.json"));
  EXPECT_EQ(map["model.embed_tokens"], 0);
  EXPECT_EQ(map["lm_head"], "cpu");
}

// By its verdict and what stands in the way of carrying it out.
TEST_F(PlanCommand, SaysWhetherADecoderRunsHere) {
  const auto because = [&](const Words& words) {
    auto all = Words{"plan"};
    all.insert(all.end(), words.begin(), words.end());
    all.push_back("--json");
    const auto done = muster_.run(all);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const auto runs = nlohmann::json::parse(done.out)["runs_here"];
    return runs.dump();
  };
  const std::string models = MUSTER_SOURCE_DIR "/tests/plans/models/";
  EXPECT_NE(because({models + "qwen2-0.5b", "--machine", "sim:2xA10G-24G"})
                .find("sim:2xA10G-24G is not this machine"),
            std::string::npos);
  EXPECT_NE(because({models + "llama-3-70b", "--machine", "sim:8xMI300X-192G"})
                .find("this build generates on CPUs and NVIDIA GPUs only"),
            std::string::npos);
  EXPECT_NE(because({models + "llama-3-70b", "--machine", "sim:8xH100-80G"})
                .find("this build generates with a whole copy on each device only"),
            std::string::npos);
  EXPECT_NE(because({models + "qwen2-0.5b", "--machine", "2xcpu", "--context", "64"})
                .find("it has no weights"),
            std::string::npos);
  const std::string gguf = MUSTER_SOURCE_DIR "/src/modelfile/corpus/gguf_fuzz/llama.gguf";
  EXPECT_NE(because({gguf, "--task", "embed", "--machine", "2xcpu"})
                .find("llama.gguf: a GGUF file is a model that generates"),
            std::string::npos);
}

// Of width 32 and 67 ids, by hand: in blocks of 64 inputs and 68 bytes, 224 rows of a layer with
// one; a head of 67 rows, which take the place of 80; the table as it lies in the file, and 8 bytes
// for each of the norms' 160 elements.
TEST_F(PlanCommand, ADecoderIn8BitsIsPlannedForCpus) {
  const std::filesystem::path decoder = MUSTER_SOURCE_DIR "/src/engine/testdata/decoders/llama";
  std::filesystem::create_directory(muster_.folder() / "model");
  for (const auto* name : {"config.json", "model.safetensors"}) {
    std::filesystem::copy(decoder / name, muster_.folder() / "model");
  }
  const auto plan = [&](const std::string& machine) {
    return muster_.run(
        {"plan", "model", "--dtype", "int8", "--kv-dtype", "int8", "--machine", machine, "--json"});
  };
  const auto done = plan("2xcpu");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto json = nlohmann::json::parse(done.out);
  EXPECT_EQ(json["copies"][0]["stages"][0]["memory_per_device"]["weights"],
            2 * 68 * 224 + 68 * 80 + 67 * 32 * 4 + 8 * 160);
  EXPECT_NE(json["runs_here"].dump().find("`muster serve --precision int8 --kv-cache-dtype int8` "),
            std::string::npos)
      << done.out;
  const auto on_gpus = plan("sim:2xA10G-24G");
  EXPECT_EQ(on_gpus.exit_code, 4) << on_gpus.out;
  EXPECT_EQ(on_gpus.err.find("muster: int8 is planned on CPUs alone, for encoders and decoders "),
            0U)
      << on_gpus.err;
}

TEST_F(PlanCommand, CallsTheMachineHereThisMachine) {
  const auto done =
      muster_.run({"plan", MUSTER_SOURCE_DIR "/tests/plans/models/qwen2-0.5b", "--context", "64"});
  EXPECT_NE(done.out.find(" by its config alone) on this machine\n"), std::string::npos)
      << done.out;
}

TEST_F(PlanCommand, WhatItReadsIsNotWrittenOver) {
  const auto folder = muster_.folder() / "model";
  std::filesystem::copy(MUSTER_SOURCE_DIR "/tests/plans/models/llama-3-8b", folder);
  const auto config = muster_.read("model/config.json");
  ASSERT_NE(config, "");
  const auto write_to = [&](const std::string& out) {
    return muster_.run(
        {"plan", "model", "--machine", "sim:8xH100-80G", "-o", out, "--format", "hf_device_map"});
  };
  const auto refused = write_to("model/../model/config.json");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("that is a file of the model; it would be overwritten"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(muster_.read("model/config.json"), config);
  // Beside it a plan may be written, and written again.
  EXPECT_EQ(write_to("model/map.json").exit_code, 0);
  EXPECT_EQ(write_to("model/map.json").exit_code, 0);
}

TEST_F(PlanCommand, WhatIsNoPlanOfThatFormIsNotWrittenOver) {
  const Words words{"plan",      MUSTER_SOURCE_DIR "/tests/plans/models/llama-3-8b",
                    "--machine", "sim:1xH100-80G",
                    "-o",        "out"};
  const std::vector<std::pair<std::string, std::string>> forms{
      {"yaml", "my own notes\n"},
      {"yaml", "# muster_plan: 1\na: 1\n"},
      {"hf_device_map", "{\"mine\": \"x\"}\n"},
      {"hf_device_map", "{\"a\": 70500}\n"},
      {"hf_device_map", "{}\n"},
      {"tensor_split", "1764163200\n"},
      {"tensor_split", "3,,4\n"},
      {"vllm", "--my flags\n"}};
  for (const auto& [form, own] : forms) {
    SCOPED_TRACE(form + ": " + own);
    auto in_form = words;
    in_form.insert(in_form.end(), {"--format", form});
    muster_.write("out", own);
    const auto refused = muster_.run(in_form);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(refused.err, "muster: -o out: that is no plan in the form " + form +
                               ", and it would be overwritten: remove it, or name another file\n");
    EXPECT_EQ(muster_.read("out"), own);
    muster_.write("out", "");
    EXPECT_EQ(muster_.run(in_form).exit_code, 0) << "an empty file is nobody's";
  }
}

TEST_F(PlanCommand, APlanIsWrittenOverByAnotherOfItsForm) {
  const auto model = MUSTER_SOURCE_DIR "/tests/plans/models/llama-3-8b";
  for (const std::string form : {"yaml", "hf_device_map", "tensor_split", "vllm"}) {
    for (const std::string machine : {"sim:1xH100-80G", "sim:2xH100-80G", "sim:4xH100-80G"}) {
      const auto done =
          muster_.run({"plan", model, "--machine", machine, "--format", form, "-o", form});
      EXPECT_EQ(done.exit_code, 0) << form << ": " << done.err;
    }
  }
  const auto write_map = [&](const std::string& out) {
    return muster_.run({"plan", MUSTER_SOURCE_DIR "/tests/plans/models/bert-base/config.json",
                        "--machine", "sim:2xA10G-24G", "--compat", "accelerate", "-o", out});
  };
  EXPECT_EQ(write_map("hf_device_map").exit_code, 0);
  EXPECT_EQ(write_map("hf_device_map").exit_code, 0);
  EXPECT_EQ(write_map("yaml").exit_code, 2);
  muster_.write("outermost", "{\"model\":0,\"lm_head\":1}\n");
  EXPECT_EQ(write_map("outermost").exit_code, 0);
}

// On this machine, whatever it is: lanes, kind of device and usual context are the same.
TEST_F(PlanCommand, PlanAndEstimateCountTheSameMemory) {
  const Words words{"all-MiniLM-L6-v2", "--machine", "1xcpu", "--json"};
  auto plan_words = words;
  plan_words.insert(plan_words.begin(), "plan");
  auto estimate_words = words;
  estimate_words.insert(estimate_words.begin(), "estimate");
  const auto planned = muster_.run(plan_words);
  const auto estimated = muster_.run(estimate_words);
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  ASSERT_EQ(estimated.exit_code, 0) << estimated.err;
  const auto plan = nlohmann::json::parse(planned.out);
  const auto estimate = nlohmann::json::parse(estimated.out);
  EXPECT_EQ(plan["workload"]["context"], 256);
  EXPECT_EQ(plan["workload"], estimate["workload"]);
  // What is usable changes from one moment to the next.
  const auto needed = [](const nlohmann::json& of) {
    const auto text = of["summary"].get<std::string>();
    return text.substr(0, text.find(" of "));
  };
  EXPECT_EQ(needed(plan), needed(estimate));
  bool is_found = false;
  for (const auto& row : estimate["estimates"]) {
    if (row["dtype"] != "as stored" || row["context"] != 256) continue;
    is_found = true;
    EXPECT_EQ(row["memory"], plan["copies"][0]["stages"][0]["memory_per_device"]);
  }
  EXPECT_TRUE(is_found);
}

TEST_F(PlanCommand, APlanThatNeedsTheDiskEndsAsOneThatDoesNotFit) {
  const Words words{"plan",      MUSTER_SOURCE_DIR "/tests/plans/models/llama-3-70b",
                    "--machine", "sim:1xT4-16G",
                    "--json",    "-o",
                    "plan.yaml"};
  const auto done = muster_.run(words);
  EXPECT_EQ(done.exit_code, 8) << done.err;
  const auto plan = nlohmann::json::parse(done.out);
  EXPECT_EQ(plan["verdict"], "does-not-fit");
  EXPECT_EQ(plan["fits"], false);
  EXPECT_TRUE(muster_.exists("plan.yaml")) << "the placement that there is";
}

TEST_F(PlanCommand, AFolderComesBeforeAPublicModelOfItsName) {
  std::filesystem::create_directories(muster_.folder() / "llama-3-8b");
  muster_.write("llama-3-8b/config.json",
                R"({"model_type":"llama","vocab_size":64,"hidden_size":8,"num_hidden_layers":2,
                    "num_attention_heads":2,"intermediate_size":16,"max_position_embeddings":32})");
  const auto done = muster_.run({"estimate", "llama-3-8b", "--machine", "sim:1xT4-16G", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto estimate = nlohmann::json::parse(done.out);
  EXPECT_EQ(estimate["layers"], 2);
  EXPECT_EQ(estimate["model_from"], "llama-3-8b");
}

}  // namespace
}  // namespace muster
