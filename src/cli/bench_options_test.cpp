#include "cli/bench_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/arguments.h"

namespace muster {
namespace {

Arguments parsed(const std::vector<std::string>& words) {
  auto arguments = parse_arguments(bench_spec(), words);
  EXPECT_TRUE(arguments) << arguments.error().message;
  return arguments ? *arguments : Arguments{};
}

Result<BenchPlan> plan(const std::vector<std::string>& words) {
  const auto arguments = parsed(words);
  const auto task = bench_task(arguments);
  if (!task) return task.error();
  return bench_plan(arguments, *task);
}

std::string refusal(const std::vector<std::string>& words) {
  const auto made = plan(words);
  EXPECT_FALSE(made);
  if (made) return "";
  EXPECT_EQ(made.error().kind, ErrorKind::InvalidArgument);
  return made.error().message;
}

TEST(BenchPlan, IsASingleStreamWithoutFlags) {
  const auto made = plan({"embed", "MODEL"});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(made->is_url());
  EXPECT_TRUE(plan({"embed", "unix:/run/muster.sock"})->is_url());
  EXPECT_EQ(made->api.api, BenchApi::Embeddings);
  ASSERT_EQ(made->points.size(), 1U);
  EXPECT_EQ(made->points[0].name, "1 client");
  EXPECT_EQ(made->points[0].load.seconds, 10);
  EXPECT_EQ(made->trials, 1U);
  EXPECT_FALSE(made->warm_up.seconds);
}

TEST(BenchPlan, MakesALoadOfEachNumber) {
  const auto closed = plan({"generate", "http://h:1", "--clients", "1,8, 32", "--trials=5",
                            "--duration", "30s", "--warm-up=2s", "--completions"});
  ASSERT_TRUE(closed) << closed.error().message;
  EXPECT_EQ(closed->api.api, BenchApi::Completions);
  ASSERT_EQ(closed->points.size(), 3U);
  EXPECT_EQ(closed->points[2].load.clients, 32U);
  EXPECT_EQ(closed->points[2].load.seconds, 30);
  EXPECT_EQ(closed->trials, 5U);
  EXPECT_EQ(closed->warm_up.seconds, 2);
  const auto open = plan({"http", "http://h:1/x", "--rate", "100,10..200", "--arrivals=constant",
                          "--connections=4", "--duration=20s"});
  ASSERT_TRUE(open) << open.error().message;
  EXPECT_EQ(open->points[0].name, "constant 100/s");
  EXPECT_EQ(open->points[0].load.connections_most, 4U);
  EXPECT_EQ(open->points[1].name, "constant 10..200/s");
  EXPECT_EQ(open->points[1].load.arrivals->ramp_seconds, 20);
}

TEST(BenchPlan, RunsByCountForAsLongAsItTakes) {
  EXPECT_GT(plan({"embed", "http://h:1", "--requests=5"})->points[0].load.seconds, 1000);
  EXPECT_EQ(plan({"embed", "http://h:1", "--requests=5", "--duration=1s"})->points[0].load.seconds,
            1);
}

// 105 requests at 10 to 200 a second, 105 at the mean: a second.
TEST(BenchPlan, RaisesARateByCountOverTheRequests) {
  const auto ramp_of = [](std::vector<std::string> more) {
    std::vector<std::string> words{"embed", "http://h:1", "--requests=105"};
    words.insert(words.end(), more.begin(), more.end());
    return plan(words)->points[0].load.arrivals->ramp_seconds;
  };
  EXPECT_EQ(ramp_of({"--rate=10..200"}), 1);
  EXPECT_EQ(ramp_of({"--rate=200..10"}), 1);
  EXPECT_EQ(ramp_of({"--rate=10..200", "--duration=20s"}), 20) << "whichever ends first";
  EXPECT_EQ(ramp_of({"--rate=10"}), 0);
}

TEST(BenchPlan, CoolsDownWhereverThereIsMoreThanOneTrial) {
  for (const std::string more : {"--trials=2", "--clients=1,2", "--rate=5,10"}) {
    const auto made = plan({"embed", "M", "--cooldown=5s", more});
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->cooldown_seconds, 5) << more;
  }
  EXPECT_TRUE(plan({"embed", "M", "--cooldown=5s", "--slo=latency_p99<50ms", "--find-peak"}));
}

TEST(BenchPlan, ReadsATrace) {
  const auto file = ::testing::TempDir() + "bench_trace." + std::to_string(::getpid());
  std::ofstream(file) << "0\n1.5\n";
  const auto made = plan({"embed", "http://h:1", "--trace", file});
  std::filesystem::remove(file);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->points[0].name, "trace of 2 requests");
  EXPECT_EQ(made->points[0].load.seconds, 2.5);
  // A recording of two hours: its begin can be sent.
  std::ofstream(file) << "0\n7200\n";
  const auto begin = plan({"embed", "http://h:1", "--trace", file, "--duration=10s"});
  const auto whole = plan({"embed", "http://h:1", "--trace", file});
  std::filesystem::remove(file);
  ASSERT_TRUE(begin) << begin.error().message;
  EXPECT_EQ(begin->points[0].load.seconds, 10);
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().message,
            file + ":2: a trace takes at most 3600 s: 7200; --duration ends a longer one");
}

TEST(BenchPlan, LooksForAPeakFromTenASecondOn) {
  const auto made = plan({"embed", "http://h:1", "--slo=latency_p99<50ms", "--find-peak"});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->points[0].load.arrivals->rate_begin, 10);
  EXPECT_EQ(made->objectives.size(), 1U);
}

TEST(BenchPlan, WantsAsManyTextsAsTheRunCanUse) {
  EXPECT_EQ(plan({"embed", "http://h:1", "--rate=300", "--duration=10s"})->texts_wanted(), 3'000U);
  EXPECT_EQ(plan({"embed", "http://h:1", "--rate=1", "--duration=10s"})->texts_wanted(), 1'000U);
  EXPECT_EQ(plan({"embed", "http://h:1"})->texts_wanted(), 20'000U);
  EXPECT_EQ(plan({"rerank", "http://h:1", "--requests=200"})->texts_wanted(), 1'800U);
  // It begins with ten a second, and nobody knows where it ends.
  EXPECT_EQ(plan({"embed", "http://h:1", "--slo=latency_p99<50ms", "--find-peak"})->texts_wanted(),
            20'000U);
}

// The words that are made have 5.59 bytes with the space behind them, on average: 32,000 are 179
// kB.
TEST(BenchPlan, WantsNoMoreLongTextsThanHaveRoom) {
  EXPECT_EQ(plan({"embed", "http://h:1", "--prompt-words=32000"})->texts_wanted(), 1'430U)
      << "of 256 MB";
  EXPECT_EQ(plan({"embed", "http://h:1", "--prompt-words=32000", "--requests=5"})->texts_wanted(),
            5U);
  EXPECT_EQ(plan({"embed", "http://h:1", "--batch=4", "--requests=5"})->texts_wanted(), 20U);
  // As many as have room are no fewer than the run can use; one more is not made.
  const auto full = plan({"embed", "http://h:1", "--prompt-words=32000", "--requests=1430"});
  EXPECT_EQ(full->texts_of_use(), 1'430U);
  EXPECT_EQ(full->texts_wanted(), 1'430U);
  const auto over = plan({"embed", "http://h:1", "--prompt-words=32000", "--requests=1431"});
  EXPECT_EQ(over->texts_of_use(), 1'431U);
  EXPECT_EQ(over->texts_wanted(), 1'430U);
  EXPECT_EQ(refusal({"embed", "M", "--prompt-words=1000000", "--batch=4096"}),
            "--prompt-words makes requests of about 22.9 GB, of 4096 texts each, and at most 256 "
            "MB are made: take shorter texts or fewer in a request");
}

TEST(BenchPlan, TakesMoreMembersOfABodyAndTheFieldOfATextFile) {
  const auto made = plan(
      {"embed", "http://h:1", "--extra-body={\"user\":\"x\"}", "--input=a.jsonl", "--field=body"});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->api.extra_body, "{\"user\":\"x\"}");
  EXPECT_EQ(refusal({"generate", "M", "--extra-body={\"stream\":false}"}),
            "--extra-body has stream, which the benchmark itself sets");
  EXPECT_EQ(refusal({"embed", "M", "--field=body"}), "--field counts with --input");
  EXPECT_EQ(refusal({"http", "http://h", "--extra-body={}"}),
            "--extra-body has no meaning for muster bench http");
}

TEST(BenchTaskOf, KnowsFilesOfPointsByTheirOwnFlags) {
  EXPECT_EQ(*bench_task(parsed({"run", "b.yaml", "a.b=c", "--resume", "--json"})), BenchTask::Run);
  EXPECT_EQ(*bench_task(parsed({"init", "-o", "b.yaml"})), BenchTask::Init);
  EXPECT_EQ(*bench_task(parsed({"report", "a.json", "points", "-o", "r.html", "--title=x",
                                "--confidence=95", "--tolerance=2"})),
            BenchTask::Report);
  EXPECT_EQ(refusal({"report", "a.json", "--json"}),
            "--json has no meaning for muster bench report");
  EXPECT_EQ(refusal({"diff", "a", "b", "--title=x"}),
            "--title has no meaning for muster bench diff");
  EXPECT_EQ(refusal({"run", "b.yaml", "--trials=5"}),
            "--trials has no meaning for muster bench run");
  EXPECT_EQ(refusal({"rerank", "M", "--resume"}),
            "--resume has no meaning for muster bench rerank");
  EXPECT_EQ(refusal({"run", "b.yaml", "--devices=2xcpu"}),
            "--devices has no meaning for muster bench run: its file says it");
  EXPECT_EQ(refusal({"diff", "a", "b", "--devices=2xcpu"}),
            "--devices has no meaning for muster bench diff");
}

TEST(BenchPlan, SaysWhatIsWrong) {
  EXPECT_EQ(refusal({"embedd", "M"}), "muster bench does not know embedd; did you mean embed?");
  EXPECT_EQ(refusal({"embed"}), "muster bench embed wants one model or URL");
  EXPECT_EQ(refusal({"embed", "M", "--slo=latency_p99<5"}),
            "--slo: latency_p99 wants a time with its unit, as 500ms: \"5\"");
  EXPECT_EQ(refusal({"embed", "M", "--output-tokens=5"}),
            "--output-tokens has no meaning for muster bench embed");
  EXPECT_EQ(refusal({"diff", "a", "b", "--rate=5"}), "--rate has no meaning for muster bench diff");
  EXPECT_EQ(refusal({"embed", "M", "--clients=0"}),
            "--clients must be a number from 1 to 16384: \"0\"");
  EXPECT_EQ(refusal({"embed", "M", "--clients=2", "--rate=5"}),
            "--clients and --rate are two kinds of load");
  EXPECT_EQ(refusal({"embed", "M", "--rate=fast"}),
            "--rate must be requests a second above 0 and up to 1000000, as 100, or 10..200 for a "
            "rate that rises: \"fast\"");
  for (const auto* rate : {"nan", "5..nan", "inf", "0", "-1"}) {
    EXPECT_TRUE(refusal({"embed", "M", std::string("--rate=") + rate})
                    .starts_with("--rate must be requests a second above 0"))
        << rate;
  }
  EXPECT_EQ(refusal({"embed", "M", "--connections=2"}),
            "--connections counts with --rate or --trace; a closed loop has one for each client");
  EXPECT_EQ(refusal({"embed", "M", "--arrivals=constant"}), "--arrivals counts with --rate");
  EXPECT_EQ(refusal({"embed", "M", "--cooldown=5s"}),
            "--cooldown is between trials, and there is one: it counts with --trials, several "
            "loads or --find-peak");
  EXPECT_EQ(refusal({"embed", "M", "--cooldown=5s", "--trials=1"}),
            refusal({"embed", "M", "--cooldown=5s"}));
  EXPECT_EQ(refusal({"embed", "M", "--rate=5", "--arrivals=normal"}),
            "--arrivals must be poisson or constant: \"normal\"");
  EXPECT_EQ(refusal({"embed", "M", "--warm-up=long"}),
            "--warm-up must be auto, none or a time, as 5s: \"long\"");
  EXPECT_EQ(refusal({"embed", "M", "--clients=8,1,8"}),
            "8 clients is named twice: --trials measures a load several times");
  EXPECT_EQ(refusal({"embed", "M", "--rate=100,1e2"}),
            "poisson 100/s is named twice: --trials measures a load several times");
  EXPECT_EQ(refusal({"embed", "M", "--warm-up=10s"}),
            "--warm-up leaves nothing of the 10 s in which requests are sent");
  EXPECT_EQ(refusal({"embed", "M", "--warm-up=2s", "--duration=1.5s"}),
            "--warm-up leaves nothing of the 1.5 s in which requests are sent");
  EXPECT_EQ(refusal({"embed", "M", "--find-peak"}),
            "--find-peak needs an objective: --slo latency_p99<500ms");
  EXPECT_EQ(refusal({"embed", "M", "--find-peak", "--slo=latency_p99<1s", "--clients=4"}),
            "--find-peak looks for the rate itself: --rate is one number, where it begins");
  EXPECT_EQ(refusal({"embed", "http://h:1", "--devices=2xcpu"}),
            "--devices is for a server that is started here, and http://h:1 runs already");
  for (const std::string flag :
       {"--model", "--api-key-file", "--ca-file", "--client-cert", "--client-key"}) {
    EXPECT_EQ(refusal({"embed", "M", flag + "=x"}), flag + " is for a server that runs already");
  }
  for (const std::string flag : {"--ca-file", "--client-cert", "--client-key"}) {
    EXPECT_EQ(refusal({"embed", "http://h:1/x?key=s", flag + "=x"}),
              flag + " counts with https://, and http://h:1/x has no certificate");
    EXPECT_TRUE(plan({"embed", "https://h:1", flag + "=x"}));
  }
  EXPECT_EQ(refusal({"embed", "M", "--input=a", "--prompt-words=5"}),
            "--input and --prompt-words are two kinds of texts");
}

TEST(BenchPlan, RefusesObjectivesThatCannotBeKnown) {
  EXPECT_EQ(refusal({"embed", "M", "--slo=latency_p99<5s,ttft_p99<5ms"}),
            "--slo: ttft_p99 is of replies that come token by token, as muster bench generate has "
            "them");
  EXPECT_EQ(refusal({"http", "http://h:1", "--slo=token_throughput>5"}),
            "--slo: token_throughput is not known of plain HTTP: embed, rerank and generate count "
            "tokens");
  EXPECT_TRUE(plan({"generate", "M", "--slo=ttft_p99<5ms,itl_p50<1s,token_throughput>5"}));
  EXPECT_TRUE(plan({"embed", "M", "--slo=token_throughput>5"}));
}

// The 99th percentile needs 368 answers.
TEST(BenchPlan, ASearchMayHaveTheRequestsThatItsObjectivesNeed) {
  const std::vector<std::string> search{"generate", "M", "--find-peak", "--slo=latency_p99<1s"};
  EXPECT_EQ(plan(search)->search_seconds_most, 120);
  const auto with = [&search](const std::string& word) {
    auto words = search;
    words.push_back(word);
    return words;
  };
  EXPECT_EQ(plan(with("--duration=10s"))->search_seconds_most, 0);
  EXPECT_EQ(refusal(with("--requests=367")), "--requests 367 are too few: latency_p99 needs 368");
  EXPECT_TRUE(plan(with("--requests=368")));
  EXPECT_TRUE(plan({"generate", "M", "--find-peak", "--slo=itl_p99<1s", "--requests=10"}));
}

TEST(OwnServer, GetsTheSettingsOfTheRunAndNobodysDoors) {
  const auto arguments = parsed({"embed", "M", "--devices", "2xcpu", "--precision=fp32"});
  ConfigSources sources;
  sources.flags = arguments.settings;
  sources.environment = {
      "MUSTER_BATCH_TIME=5ms",   "MUSTER_LOW_LATENCY=false", "MUSTER_NORMALIZE=true",
      "MUSTER_UNIX_SOCKET=s",    "MUSTER_TLS_CERT=c.pem",    "MUSTER_TLS_KEY=k.pem",
      "MUSTER_KEYS_FILE=k.yaml", "MUSTER_API_KEY=secret",    "MUSTER_AUDIT_LOG=a",
      "MUSTER_STATS_FILE=f",     "MUSTER_LOG_LEVEL=error",   "MUSTER_CACHE_FILE=c"};
  sources.working_folder = "/";
  const auto config = Config::load(sources);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(own_server_settings(*config),
            (std::vector<std::string>{"--devices=2xcpu", "--precision=fp32", "--normalize",
                                      "--batch-time=5ms", "--no-low-latency"}));
}

TEST(OwnServer, ReadsNoSettingsFromTheEnvironment) {
  EXPECT_EQ(own_server_environment({"PATH=/bin", "MUSTER_CONFIG=m.yaml", "MUSTER_TLS_CERT=c",
                                    "LOG_LEVEL=ERROR", "HF_HOME=/h", "MUSTERED=1"}),
            (std::vector<std::string>{"PATH=/bin", "HF_HOME=/h", "MUSTERED=1"}));
}

TEST(WordsToShare, HaveNoSecrets) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_to_share({"muster", "bench", "http", "http://h:1/x?token=s", "--api-key-file",
                            "k", "--client-key=k.pem", "--requests=5"}),
            (Words{"muster", "bench", "http", "http://h:1/x?…", "--api-key-file", "…",
                   "--client-key=…", "--requests=5"}));
  // What is no URL keeps its marks, and the last word may be a flag without its value.
  EXPECT_EQ(words_to_share({"bench", "http://h:1", "--input", "what?.txt", "--client-key"}),
            (Words{"bench", "http://h:1", "--input", "what?.txt", "--client-key"}));
}

TEST(GivenFlags, NameNoKeys) {
  const auto arguments = parsed(
      {"embed", "http://h:1", "--clients=4", "--api-key-file=secret", "--input=a", "--input=b"});
  EXPECT_EQ(given_flags(arguments),
            (std::map<std::string, std::string>{{"--clients", "4"}, {"--input", "a,b"}}));
}

std::vector<std::string> flags_of(const CommandSpec& spec) {
  std::vector<std::string> flags;
  for (const auto& group : spec.groups) {
    for (const auto& flag : group.flags) flags.push_back(flag.name);
  }
  return flags;
}

TEST(BenchVerbSpec, HasWhatCountsForTheVerb) {
  const auto whole = bench_spec();
  for (const auto& verb : whole.verbs) {
    const auto spec = bench_verb_spec(verb.name);
    EXPECT_EQ(spec.name, "bench " + verb.name);
    EXPECT_NE(spec.usage, whole.usage);
    const auto flags = flags_of(spec);
    for (const auto& flag : flags_of(whole)) {
      const bool is_shown = std::find(flags.begin(), flags.end(), flag) != flags.end();
      EXPECT_EQ(is_shown, bench_flag_counts(flag, verb.name)) << verb.name << " " << flag;
    }
  }
  const auto diff = bench_verb_spec("diff");
  EXPECT_EQ(flags_of(diff), (std::vector<std::string>{"--confidence", "--tolerance", "--json"}));
  EXPECT_EQ(diff.usage, "A B");
  EXPECT_TRUE(diff.examples.starts_with("  muster bench diff before.json after.json\n\nThe exit"))
      << diff.examples;
  EXPECT_EQ(diff.examples.find("A MODEL"), std::string::npos);
  const auto embed = bench_verb_spec("embed");
  EXPECT_NE(embed.examples.find("\nA MODEL is served here"), std::string::npos) << embed.examples;
  EXPECT_EQ(embed.examples.find("`init`"), std::string::npos) << embed.examples;
}

}  // namespace
}  // namespace muster
