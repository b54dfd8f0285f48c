#include "cli/completion/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/completion/scripts.h"

namespace muster {
namespace {

using Words = std::vector<std::string>;

// A machine of two GPUs and a CPU, with two models in its hub cache.
const CompletionSources& sources() {
  static const CompletionSources kSources{
      .devices =
          [] {
            return std::vector<Candidate>{
                {"cuda:0", "NVIDIA L4"}, {"cuda:1", "NVIDIA L4"}, {"cpu:0", "AMD EPYC"}};
          },
      .cached_models =
          [] {
            return Words{"BAAI/bge-m3", "sentence-transformers/all-MiniLM-L6-v2"};
          }};
  return kSources;
}

Candidates complete(const Words& words) { return candidates(all_commands(), words, sources()); }

Words texts(const Words& words) {
  Words all;
  for (const auto& one : complete(words).words) all.push_back(one.text);
  return all;
}

bool has(const Words& all, const std::string& word) {
  return std::find(all.begin(), all.end(), word) != all.end();
}

TEST(Candidates, BeginWithTheCommands) {
  const auto all = complete({""}).words;
  EXPECT_EQ(all.size(), all_commands().size() + 1) << "and help";
  EXPECT_EQ(texts({"de"}), (Words{"devices", "deploy"}));
  EXPECT_EQ(texts({"help", "em"}), Words{"embed"});
  EXPECT_EQ(texts({"--v"}), Words{"--version"});
  EXPECT_EQ(texts({"nosuch", ""}), Words{});
  const auto embed = complete({"embed"});
  ASSERT_EQ(embed.words.size(), 1U);
  EXPECT_EQ(embed.words[0].help, embed_command().spec.summary);
}

TEST(Candidates, OfferFlagsThatAreNotThereYet) {
  EXPECT_EQ(texts({"embed", "--prec"}), Words{"--precision"});
  EXPECT_EQ(texts({"embed", "--precision", "fp32", "--prec"}), Words{});
  EXPECT_EQ(texts({"embed", "--precision=fp32", "--prec"}), Words{});
  EXPECT_EQ(texts({"embed", "--no-n"}), Words{"--no-normalize"});
  EXPECT_EQ(texts({"embed", "--normalize", "--no-n"}), Words{}) << "one switch, two forms";
  EXPECT_EQ(texts({"keys", "new", "--scope", "embed", "--sc"}), Words{"--scope"}) << "it repeats";
  EXPECT_TRUE(has(texts({"embed", "-"}), "-o"));
  EXPECT_FALSE(has(texts({"embed", "--max"}), "--max-seq-length")) << "another program's name";
}

TEST(Candidates, OfferTheValuesThereAre) {
  EXPECT_EQ(texts({"embed", "--precision", ""}), (Words{"auto", "fp32", "bf16", "fp16", "int8"}));
  EXPECT_EQ(texts({"embed", "--precision=b"}), Words{"--precision=bf16"});
  EXPECT_EQ(texts({"plan", "--objective", "l"}), Words{"latency"});
  EXPECT_EQ(texts({"embed", "--batch-tokens", ""}), Words{});
  EXPECT_EQ(texts({"embed", "--normalize", "--precision", "a"}), Words{"auto"});
  const auto file = complete({"embed", "--out", ""});
  EXPECT_EQ(file.paths, Candidates::Paths::Files);
  EXPECT_EQ(complete({"embed", "--torch-root", ""}).paths, Candidates::Paths::Folders);
}

TEST(Candidates, OfferDevicesAsAList) {
  EXPECT_EQ(texts({"embed", "--devices", "cuda:"}), (Words{"cuda:0", "cuda:1"}));
  const auto more = complete({"embed", "--devices", "cuda:0,cu"});
  ASSERT_EQ(more.words.size(), 1U) << "cuda:0 is in the list already";
  EXPECT_EQ(more.words[0].text, "cuda:0,cuda:1");
  EXPECT_TRUE(more.goes_on);
  EXPECT_EQ(texts({"embed", "--devices=cp"}), (Words{"--devices=cpu", "--devices=cpu:0"}));
  EXPECT_EQ(texts({"ctl", "drain", "cuda"}), (Words{"cuda:0", "cuda:1"}));
  EXPECT_EQ(texts({"monitor", "--metrics", "energy_joules,power_inst"}),
            Words{"energy_joules,power_instant_watts"});
}

TEST(Candidates, OfferModelsByWhatTheCommandCanDo) {
  EXPECT_EQ(texts({"embed", "all"}), Words{"all-MiniLM-L6-v2"});
  EXPECT_EQ(texts({"embed", "BAAI/"}), Words{"BAAI/bge-m3"});
  EXPECT_EQ(complete({"embed", ""}).paths, Candidates::Paths::Models);
  EXPECT_EQ(complete({"serve", ""}).paths, Candidates::Paths::Models) << "folders and .gguf files";
  EXPECT_EQ(texts({"generate", "all"}), Words{"all-MiniLM-L6-v2"});
  EXPECT_EQ(complete({"generate", ""}).paths, Candidates::Paths::Models);
  EXPECT_EQ(complete({"generate", "m", ""}).paths, Candidates::Paths::None) << "one model";
  EXPECT_FALSE(has(texts({"serve", "lla"}), "llama-3-8b")) << "it is not on this machine";
  EXPECT_TRUE(has(texts({"plan", "lla"}), "llama-3-8b"));
  EXPECT_TRUE(has(texts({"plan", "all-Mini"}), "all-MiniLM-L6-v2"));
  EXPECT_EQ(texts({"pull", "BAAI/bge-m"}), Words{"BAAI/bge-m3"}) << "once, though in both";
  // Behind the model come the inputs.
  EXPECT_EQ(complete({"embed", "all-MiniLM-L6-v2", ""}).paths, Candidates::Paths::Files);
  EXPECT_EQ(texts({"embed", "--quiet", "-o", "x.npy", "all"}), Words{"all-MiniLM-L6-v2"});
  EXPECT_EQ(texts({"plan", "llama-3-8b", ""}), Words{}) << "one model and no more";
}

TEST(Candidates, OfferMachines) {
  EXPECT_EQ(texts({"plan", "m", "--machine", "sim:8xH200"}),
            (Words{"sim:8xH200-141G", "sim:8xH200-NVL-141G"}));
  EXPECT_TRUE(has(texts({"top", "--machine", "h"}), "here"));
}

TEST(Candidates, OfferVerbsFirst) {
  EXPECT_EQ(texts({"ctl", "re"}), (Words{"resume", "restart"}));
  EXPECT_EQ(texts({"ctl", "drain", ""}), (Words{"all", "cuda:0", "cuda:1", "cpu:0"}));
  EXPECT_EQ(texts({"bench", ""}), (Words{"embed", "rerank", "generate", "http", "run", "init",
                                         "diff", "report", "selftest"}));
  EXPECT_EQ(texts({"bench", "generate", "BAAI/"}), Words{"BAAI/bge-m3"});
  EXPECT_EQ(complete({"bench", "diff", "a.json", ""}).paths, Candidates::Paths::Files);
  EXPECT_EQ(texts({"deploy", "--dry-run", "c"}), Words{"container"});
  EXPECT_EQ(texts({"deploy", "container", "--api", ""}), (Words{"tgi", "tei", "vllm", "muster"}));
}

TEST(Candidates, LeaveTheCommandOfAnotherProgramAlone) {
  EXPECT_EQ(complete({"monitor", "--", "--o"}).words.size(), 0U);
  EXPECT_EQ(complete({"monitor", "--", "py"}).paths, Candidates::Paths::Files);
}

TEST(Candidates, BecomeLinesThatShellsRead) {
  EXPECT_EQ(
      candidate_lines(
          {.words = {{"a", "b\tc\nd"}, {"e"}}, .paths = Candidates::Paths::Files, .goes_on = true}),
      ":files\n:goes-on\na\tb c d\ne\n");
  EXPECT_EQ(candidate_lines({.paths = Candidates::Paths::Folders}), ":folders\n");
  EXPECT_EQ(candidate_lines({.paths = Candidates::Paths::Models}), ":models\n");
  EXPECT_EQ(candidate_lines({}), "");
}

TEST(Candidates, EveryShellHasAScript) {
  for (const auto& shell : shell_names()) EXPECT_TRUE(completion_script(shell)) << shell;
  EXPECT_FALSE(completion_script("csh"));
}

}  // namespace
}  // namespace muster
