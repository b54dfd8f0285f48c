// muster deploy, on the real program, with a stand-in for the docker client on the PATH and one for
// the NVIDIA driver. What the real client makes of the words is the accept row plan.9.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "run_muster.h"

namespace muster {
namespace {

using Words = std::vector<std::string>;

constexpr auto kGpu0 = "GPU-00000000-0000-0000-0000-000000000000";
constexpr auto kGpu2 = "GPU-00000002-0000-0000-0000-000000000000";

// Writes each word that it is given on a line of its own, then answers as the client would.
constexpr auto kDocker = R"(#!/bin/sh
printf '%s\n' "$@" --- >> "$HOME/words"
case "$1" in
  run) echo 0123456789abcdef; if [ -e "$HOME/refuse" ]; then echo 'docker: no such driver' >&2; exit 125; fi ;;
  inspect) if [ -e "$HOME/exits" ]; then echo 'exited 3'; else echo 'running 0'; fi ;;
  ps) cat "$HOME/containers" ;;
  logs) echo 'a line of the log' ;;
  stop | rm) if [ -e "$HOME/broken" ]; then echo 'first line' >&2; echo 'Is the docker daemon running?' >&2; exit 1; fi ;;
esac
)";

class DeployCommand : public testing::Test {
 protected:
  DeployCommand() {
    muster_.write("docker", kDocker);
    chmod((muster_.folder() / "docker").c_str(), 0755);
    muster_.write("containers", "");
    const char* path = std::getenv("PATH");
    muster_.set("PATH",
                muster_.folder().string() + ":" + (path == nullptr ? "/usr/bin:/bin" : path));
    muster_.set("LD_LIBRARY_PATH", MUSTER_BINARY_DIR "/fake_driver");
  }

  Finished run(const std::string& verb, const Words& more) {
    Words words{"deploy", verb};
    words.insert(words.end(), more.begin(), more.end());
    return muster_.run(words);
  }

  void expect_error(const std::string& verb, const Words& more, int exit_code,
                    const std::string& sentence) {
    SCOPED_TRACE(testing::PrintToString(more));
    const auto finished = run(verb, more);
    EXPECT_EQ(finished.exit_code, exit_code);
    EXPECT_EQ(finished.err, "muster: " + sentence + "\n");
    EXPECT_EQ(finished.out, "");
  }

  // The commands that docker was given.
  std::vector<Words> commands() const {
    std::vector<Words> result;
    Words words;
    std::istringstream lines(muster_.read("words"));
    for (std::string line; std::getline(lines, line);) {
      if (line == "---") {
        result.push_back(std::exchange(words, {}));
      } else {
        words.push_back(line);
      }
    }
    return result;
  }

  Muster muster_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(DeployCommand, StartsAContainerOnExactlyTheChosenGpus) {
  const auto finished =
      run("container", {"--api", "tgi", "--model", "org/m", "--devices", "cuda:2,cuda:0"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const Words expected{"run",
                       "--detach",
                       "--name",
                       "muster-tgi-m",
                       "--label",
                       "muster.deployment=muster-tgi-m",
                       "--label",
                       "muster.api=tgi",
                       "--label",
                       "muster.model=org/m",
                       "--gpus",
                       "\"device=" + std::string(kGpu2) + "," + kGpu0 + "\"",
                       "--shm-size",
                       "1g",
                       "--env",
                       "CUDA_DEVICE_ORDER=PCI_BUS_ID",
                       "--env",
                       "CUDA_VISIBLE_DEVICES=1,0",
                       "--volume",
                       "muster-hub:/data",
                       "--publish",
                       "127.0.0.1:8080:80",
                       "ghcr.io/huggingface/text-generation-inference:3.3.5",
                       "--model-id",
                       "org/m",
                       "--num-shard",
                       "2"};
  const auto given = commands();
  ASSERT_EQ(given.size(), 2U);
  EXPECT_EQ(given[0], expected);
  EXPECT_EQ(given[1].front(), "inspect");
  EXPECT_NE(finished.out.find("muster-tgi-m runs: http://127.0.0.1:8080\n"), std::string::npos);
  EXPECT_NE(finished.out.find("curl http://127.0.0.1:8080/generate"), std::string::npos);
}

TEST_F(DeployCommand, DryRunPrintsWhatWouldRunAndRunsNothing) {
  const Words words{"--api",         "tgi",   "--model",     "org/m",    "--devices",
                    "cuda:0,cuda:2", "--env", "TOKEN=a b$c", "--dry-run"};
  const auto finished = run("container", words);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_FALSE(muster_.exists("words")) << "docker was run";
  // A shell that reads the line runs the very words.
  muster_.write("line.sh", finished.out);
  ASSERT_EQ(std::system(("cd '" + muster_.folder().string() +
                         "' && HOME=\"$PWD\" PATH=\"$PWD:$PATH\" "
                         "sh line.sh > /dev/null")
                            .c_str()),
            0);
  const auto printed = commands();
  std::filesystem::remove(muster_.folder() / "words");
  auto for_real = words;
  for_real.pop_back();
  EXPECT_EQ(run("container", for_real).exit_code, 0);
  ASSERT_FALSE(printed.empty());
  EXPECT_EQ(printed.front(), commands().front());
}

// The words of document 4 behind the program's name.
TEST_F(DeployCommand, TakesTheWordsOfADocumentAsItWritesThem) {
  const Words theirs{"--model",
                     "facebook/opt-1.3b",
                     "--image",
                     "huggingface/text-generation-inference:latest",
                     "--port",
                     "8080",
                     "--devices",
                     "cuda:0",
                     "cuda:1",
                     "--env",
                     "MAX_BATCH_SIZE=32",
                     "ALLOW_TENSORFLOW=true",
                     "--dry-run"};
  auto words = theirs;
  words.insert(words.end(), {"--api", "tgi"});
  const auto finished = run("container", words);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  for (const auto* part : {"device=GPU-", "MAX_BATCH_SIZE=32", "ALLOW_TENSORFLOW=true",
                           "127.0.0.1:8080:80", "huggingface/text-generation-inference:latest"}) {
    EXPECT_NE(finished.out.find(part), std::string::npos) << part << finished.out;
  }
  const Words with_commas{"--model",   "facebook/opt-1.3b",
                          "--image",   "huggingface/text-generation-inference:latest",
                          "--port",    "8080",
                          "--devices", "cuda:0,cuda:1",
                          "--env",     "MAX_BATCH_SIZE=32",
                          "--env",     "ALLOW_TENSORFLOW=true",
                          "--dry-run", "--api",
                          "tgi"};
  EXPECT_EQ(finished.out, run("container", with_commas).out);
  words.end()[-2] = "--api-type";
  const auto other = run("container", words);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_EQ(other.err, "muster: unknown flag of muster deploy: --api-type; did you mean --api?\n");
}

TEST_F(DeployCommand, ChoosesTheFewestGpusThatHoldTheModel) {
  const auto finished = run("container", {"--api", "vllm", "--model", tiny_model(), "--auto-select",
                                          "--dry-run", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const auto json = nlohmann::json::parse(finished.out);
  // The fourth GPU has the most memory.
  EXPECT_EQ(json["containers"][0]["devices"],
            nlohmann::json({"GPU-00000003-0000-0000-0000-000000000000"}));
  EXPECT_NE(json["notes"][0].get<std::string>().find("chose cuda:3"), std::string::npos);
}

TEST_F(DeployCommand, GivesNoContainerALostGpu) {
  muster_.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster_.set("FAKENVML_SCENARIO", (muster_.folder() / "gpus.json").string());
  muster_.write("gpus.json", R"({"fake_nvml":1,"gpus":[
      {"model":"H200","lost":{"from":0}},{"model":"H200","uuid":"GPU-well"}]})");
  const std::string told = "cuda:0 is lost: GPU is lost (NVML 15)";
  for (const Words& which : {Words{"--auto-select"}, Words{"--devices", "cuda"}}) {
    Words words{"--api", "vllm", "--model", tiny_model(), "--dry-run", "--json"};
    words.insert(words.end(), which.begin(), which.end());
    const auto finished = run("container", words);
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    const auto json = nlohmann::json::parse(finished.out);
    EXPECT_EQ(json["containers"][0]["devices"], nlohmann::json({"GPU-well"}));
    EXPECT_NE(json["notes"].dump().find(told), std::string::npos) << json["notes"];
  }
  expect_error("container", {"--api", "vllm", "--model", tiny_model(), "--devices", "cuda:0"}, 6,
               told);
  const auto shown = run("container", {"--detect-only"});
  const auto listed = nlohmann::json::parse(run("container", {"--detect-only", "--json"}).out);
  EXPECT_TRUE(listed["devices"][0]["container_name"].is_null());
  EXPECT_NE(shown.out.find("NVIDIA: " + told + "\n"), std::string::npos) << shown.out;
  // Docker does not read it, so that a lost GPU would be handed in by its number.
  muster_.set("CUDA_VISIBLE_DEVICES", "1");
  expect_error("container", {"--api", "vllm", "--model", tiny_model(), "--devices", "cuda:0"}, 6,
               told);
}

TEST_F(DeployCommand, ShowsWhatContainersCanUseWithoutAModel) {
  const auto finished = run("container", {"--detect-only"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.out.find(kGpu2), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("docker client: "), std::string::npos);
  const auto json = nlohmann::json::parse(run("container", {"--detect-only", "--json"}).out);
  EXPECT_EQ(json["devices"].size(), 4U);
}

// The same machine that every other command is shown by the setting.
TEST_F(DeployCommand, LooksForAmdsGpusWhereTheSettingSays) {
  muster_.set("MUSTER_SYSFS_ROOT", MUSTER_SOURCE_DIR "/src/hw/testdata/mi300x_8");
  const auto finished = run("container", {"--detect-only", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.out.find("/dev/dri/renderD"), std::string::npos) << finished.out;
}

TEST_F(DeployCommand, RemovesWhatItStartedWhenAnotherDoesNotStart) {
  muster_.write("refuse", "");
  const auto finished =
      run("container", {"--api", "tei", "--model", "org/m", "--devices", "2xcuda"});
  EXPECT_EQ(finished.exit_code, 6);
  EXPECT_NE(finished.err.find("docker: no such driver\n"), std::string::npos);
  EXPECT_NE(finished.err.find("muster: docker could not start muster-tei-m-0 (exit code 125); what "
                              "it said is above\n"),
            std::string::npos)
      << finished.err;
  const auto given = commands();
  ASSERT_EQ(given.size(), 2U);
  EXPECT_EQ(given[1], (Words{"rm", "--force", "0123456789abcdef"}));
}

TEST_F(DeployCommand, SaysThatAContainerEndedAtOnce) {
  muster_.write("exits", "");
  expect_error("container", {"--api", "tei", "--model", "org/m", "--devices", "none"}, 6,
               "muster-tei-m ended at once with exit code 3; `muster deploy logs muster-tei-m` "
               "shows why, `muster deploy stop muster-tei-m` removes it");
}

TEST_F(DeployCommand, ListsReadsAndStopsItsContainers) {
  muster_.write("containers",
                "id1\tmuster-tei-m-1\tmuster-tei-m\ttei\torg/m\texited\tExited (1)\t\n"
                "id0\tmuster-tei-m-0\tmuster-tei-m\ttei\torg/m\trunning\tUp 5 "
                "minutes\t127.0.0.1:8080->80/tcp\n");
  const auto status = run("status", {});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_NE(status.out.find("muster-tei-m-0  tei  org/m  Up 5 minutes  127.0.0.1:8080->80/tcp\n"),
            std::string::npos)
      << status.out;
  const auto json = nlohmann::json::parse(run("status", {"muster-tei-m", "--json"}).out);
  EXPECT_EQ(json["containers"].size(), 2U);
  EXPECT_EQ(json["containers"][0]["state"], "running");
  const auto logs = run("logs", {"muster-tei-m-0", "--tail", "5"});
  EXPECT_EQ(logs.out, "a line of the log\n");
  EXPECT_EQ(commands().back(), (Words{"logs", "--tail", "5", "id0"}));
  const auto stopped = run("stop", {"muster-tei-m"});
  EXPECT_EQ(stopped.out,
            "muster-tei-m-0 is stopped and removed\nmuster-tei-m-1 is stopped and removed\n");
  const auto given = commands();
  EXPECT_EQ(given[given.size() - 2], (Words{"stop", "id0", "id1"}));
  EXPECT_EQ(given.back(), (Words{"rm", "--force", "id0", "id1"}));
  expect_error("stop", {"other"}, 3,
               "muster started no container of that name: other; there is muster-tei-m");
}

TEST_F(DeployCommand, SaysWhatTheClientSays) {
  muster_.write("containers", "id0\tm\tm\ttei\torg/m\trunning\tUp\t\n");
  muster_.write("broken", "");
  const auto finished = run("stop", {"m"});
  EXPECT_EQ(finished.exit_code, 6);
  EXPECT_NE(finished.err.find("muster: docker could not stop m (exit code 1)"), std::string::npos);
}

TEST_F(DeployCommand, SaysThatThereIsNoClient) {
  muster_.set("PATH", muster_.folder().string() + "/empty");
  expect_error("status", {}, 3,
               "no docker client on the PATH; install one (Debian: docker-cli, Docker's own: "
               "docker-ce-cli), or let --dry-run print the command for another machine");
  const Words words{"--api", "tei", "--model", "m", "--devices", "none", "--dry-run"};
  EXPECT_EQ(run("container", words).exit_code, 0) << "a dry run needs none";
}

TEST_F(DeployCommand, ServesOnTheProcessorByTheNameOfACpu) {
  const auto finished = run("container", {"--api", "tei", "--model", "m", "--devices", "cpu:0"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("note: the server runs on the processor, in one container"),
            std::string::npos)
      << finished.err;
  const auto started = commands();
  ASSERT_EQ(started.size(), 2U) << "run, inspect";
  const auto has = [&](const std::string& begin) {
    return std::any_of(started[0].begin(), started[0].end(),
                       [&](const std::string& word) { return word.starts_with(begin); });
  };
  EXPECT_TRUE(has("ghcr.io/huggingface/text-embeddings-inference:cpu-"));
  EXPECT_FALSE(has("--gpus"));
}

TEST_F(DeployCommand, ServesByMusterWithWhatItNeeds) {
  // A folder is mounted; an id that is not here is fetched first, by a run that ends.
  const auto folder = run("container", {"--api", "muster", "--model", tiny_model(), "--devices",
                                        "2xcpu", "--image", "muster:test"});
  EXPECT_EQ(folder.exit_code, 0) << folder.err;
  EXPECT_NE(folder.out.find("curl http://127.0.0.1:8080/v1/embeddings"), std::string::npos)
      << folder.out;
  const auto fetched = run("container", {"--api", "muster", "--model", "org/model", "--devices",
                                         "cuda:1", "--image", "muster:test"});
  EXPECT_EQ(fetched.exit_code, 0) << fetched.err;
  const auto started = commands();
  ASSERT_EQ(started.size(), 5U) << "run, inspect, run --rm, run, inspect";
  const auto has = [](const Words& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  EXPECT_TRUE(has(started[0], tiny_model() + ":/models/tiny:ro"));
  EXPECT_TRUE(has(started[0], "2xcpu"));
  EXPECT_EQ(started[2].at(1), "--rm");
  EXPECT_EQ(started[2].back(), "org/model");
  EXPECT_EQ(started[3].back(), "cuda");
  EXPECT_TRUE(has(started[3], "device=GPU-00000001-0000-0000-0000-000000000000"));
}

// What the first run prints is not the result: with --json that is one object.
TEST_F(DeployCommand, KeepsTheFirstRunOutOfTheResultAndVariablesOutOfItsError) {
  const Words words{"--api", "muster",  "--model",     "org/model", "--devices",
                    "none",  "--image", "muster:test", "--env",     "HF_TOKEN=hf_secret"};
  auto with_json = words;
  with_json.emplace_back("--json");
  const auto started = run("container", with_json);
  EXPECT_EQ(started.exit_code, 0) << started.err;
  EXPECT_TRUE(nlohmann::json::parse(started.out, nullptr, false).is_object()) << started.out;
  muster_.write("refuse", "");
  const auto refused = run("container", words);
  EXPECT_EQ(refused.exit_code, 6);
  EXPECT_NE(refused.err.find("muster: docker could not run `pull org/model` in muster:test (exit "
                             "code 125); what it said is above\n"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(refused.err.find("hf_secret"), std::string::npos) << refused.err;
}

TEST_F(DeployCommand, TakesTheFlagsOfAllCommandsWithEachVerb) {
  expect_error("logs", {"m", "--color", "never"}, 3,
               "muster started no container of that name: m; there is none");
}

TEST_F(DeployCommand, CarriesOutAPlan) {
  const auto plan = [&](const Words& more) {
    Words words{"plan", "llama-3-8b", "-o", "plan.yaml"};
    words.insert(words.end(), more.begin(), more.end());
    const auto made = muster_.run(words);
    ASSERT_EQ(made.exit_code, 0) << made.err;
  };
  const auto json_of = [&](const Words& more) {
    Words words{"--model", "meta-llama/Meta-Llama-3-8B", "--plan", "plan.yaml", "--dry-run",
                "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto finished = run("container", words);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return nlohmann::json::parse(finished.out, nullptr, false);
  };
  plan({"--machine", "sim:4xH100-80G", "--tensor-parallel", "2", "--data-parallel", "2"});
  const auto two = json_of({"--api", "vllm"});
  ASSERT_EQ(two["containers"].size(), 2U) << two;
  EXPECT_EQ(two["tensor_parallel"], 2);
  EXPECT_EQ(two["containers"][0]["devices"],
            (Words{kGpu0, "GPU-00000001-0000-0000-0000-000000000000"}));
  EXPECT_EQ(two["containers"][1]["devices"][0], kGpu2);

  plan({"--machine", "sim:2xH100-80G", "--pipeline-parallel", "2"});
  EXPECT_EQ(json_of({"--api", "vllm"})["pipeline_parallel"], 2);
  const auto refused = [&](const Words& more, const std::string& sentence) {
    Words words{"--plan", "plan.yaml", "--dry-run"};
    words.insert(words.end(), more.begin(), more.end());
    const auto finished = run("container", words);
    EXPECT_EQ(finished.exit_code == 0 ? "" : finished.err, "muster: " + sentence + "\n");
  };
  refused({"--api", "tgi", "--model", "meta-llama/Meta-Llama-3-8B"},
          "plan.yaml: Text Generation Inference has no pipeline stages, and the plan has 2");
  refused({"--api", "tei", "--model", "meta-llama/Meta-Llama-3-8B"},
          "plan.yaml: a plan to generate, and Text Embeddings Inference can embed");
  refused({"--api", "vllm", "--model", "org/other"},
          "plan.yaml: a plan for meta-llama/Meta-Llama-3-8B, and the model is org/other");
  const auto real = run("container", {"--api", "vllm", "--model", "meta-llama/Meta-Llama-3-8B",
                                      "--plan", "plan.yaml"});
  EXPECT_EQ(real.exit_code, 4);
  EXPECT_NE(real.err.find("sim:2xH100-80G, a simulated machine"), std::string::npos) << real.err;
}

TEST_F(DeployCommand, APlanOfCpuDevicesIsForMusterAlone) {
  const auto made = muster_.run({"plan", "bge-m3", "--machine", "2xcpu", "-o", "plan.yaml"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  expect_error("container",
               {"--api", "tei", "--model", "BAAI/bge-m3", "--plan", "plan.yaml", "--dry-run"}, 4,
               "plan.yaml: the plan shares the cores among CPU devices, and Text Embeddings "
               "Inference has all of them in one container: --devices none");
}

TEST_F(DeployCommand, ChecksItsWordsBeforeDockerIsRun) {
  expect_error("contianer", {}, 2, "muster deploy cannot \"contianer\"; did you mean container?");
  expect_error("container", {"--api", "vlm", "--model", "m", "--devices", "none"}, 2,
               "unknown API: \"vlm\"; did you mean vllm?");
  expect_error("container", {"--api", "vllm", "--model", "m", "--devices", "0", "--plan", "p"}, 2,
               "--plan says which devices: leave out --devices and --auto-select");
  expect_error("container", {"--api", "tgi", "--model", "m", "--devices", "cuda:9"}, 3,
               "no such device: cuda:9; there is cuda:0, cuda:1, cuda:2, cuda:3");
  expect_error("container",
               {"--api", "tgi", "--model", "m", "--devices", "none", "--port", "70000"}, 2,
               "--port must be a whole number from 1 to 65535: \"70000\"");
  expect_error("container", {"--api", "tgi", "--model", "m", "--devices", "none", "--env", "K"}, 2,
               "--env is NAME=VALUE: \"K\"");
  expect_error("status", {"--port", "80"}, 2, "muster deploy status does not take --port");
  expect_error("logs", {"m", "--json"}, 2, "muster deploy logs does not take --json");
  expect_error("logs", {}, 2,
               "which one? `muster deploy status` lists them: muster deploy logs NAME");
  expect_error("logs", {"m", "--tail", "x"}, 2, "--tail must be a whole number: \"x\"");
  EXPECT_FALSE(muster_.exists("words"));
}

}  // namespace
}  // namespace muster
