// Arguments -> exit code and text, on the real program (exit codes: docs/errors.md).

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <thread>

#include "base/file.h"
#include "run_muster.h"

namespace muster {
namespace {

using Words = std::vector<std::string>;

class CommandLine : public testing::Test {
 protected:
  // One clear sentence on standard error and nothing else anywhere.
  void expect_error(const Words& arguments, int exit_code, const std::string& sentence) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    const auto finished = muster_.run(arguments);
    EXPECT_EQ(finished.exit_code, exit_code);
    EXPECT_EQ(finished.err, "muster: " + sentence + "\n");
    EXPECT_EQ(finished.out, "");
  }

  Muster muster_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(CommandLine, HelpGoesToStandardOutput) {
  for (const auto& arguments : {Words{"--help"}, Words{"-h"}, Words{"help"}}) {
    const auto finished = muster_.run(arguments);
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_NE(finished.out.find("usage: muster COMMAND"), std::string::npos);
    EXPECT_EQ(finished.err, "");
  }
  for (const auto* command : {"embed", "search", "tokenize", "devices", "config", "deploy"}) {
    const auto finished = muster_.run({command, "--help"});
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_NE(finished.out.find(std::string("usage: muster ") + command), std::string::npos);
    EXPECT_EQ(finished.out, muster_.run({"help", command}).out);
  }
}

TEST_F(CommandLine, WithoutACommandHelpIsAnError) {
  const auto finished = muster_.run({});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.out, "");
  EXPECT_NE(finished.err.find("usage: muster COMMAND"), std::string::npos);
}

TEST_F(CommandLine, AWordThatIsNoUtf8IsSentToAServerAllTheSame) {
  for (const auto* action : {"drain", "load", "unload"}) {
    expect_error({"ctl", action, "\xff", "--server", "http://127.0.0.1:1"}, 6,
                 "127.0.0.1:1: cannot connect: Connection refused");
  }
}

TEST_F(CommandLine, AnActionThatCtlDoesNotHaveIsNamedBeforeAServerIsAsked) {
  expect_error(
      {"ctl", "bogus"}, 2,
      "muster ctl does not know bogus; it knows status, drain, resume, restart, load, unload");
  expect_error({"ctl", "drian", "cpu:0"}, 2, "muster ctl does not know drian; did you mean drain?");
}

TEST_F(CommandLine, WhatAnUnsetVariableLeavesEmptyIsRefused) {
  expect_error({"search", "x.npy", "apple", "--filter", ""}, 2,
               "--filter is empty: it wants a condition, such as 'lang=de and year>=2020'");
  expect_error({"monitor", "--"}, 2, "behind -- there is no command: muster monitor -- CMD");
}

TEST_F(CommandLine, GenerateRefusesWhatItWouldNotRead) {
  expect_error({"generate", "m.gguf", "-p", "-"}, 2,
               "-p - takes the prompt from standard input: no text came");
  expect_error({"generate", "m.gguf", "-p", "Hi", "--top-p", "0.9"}, 2,
               "--top-p counts where tokens are drawn: give --temperature as well, such as "
               "--temperature 0.8");
  expect_error({"generate", "m.gguf", "-p", "Hi", "--top-k", "40", "--temperature", "0"}, 3,
               "m.gguf: no such file");
  expect_error({"generate", "m.gguf", "-p", "Hi", "--seed", "abc"}, 2,
               "--seed must be a whole number from 0 to 18446744073709551615: \"abc\"; such as "
               "--seed 7");
  expect_error({"generate", "m.gguf", "-p", "Hi", "--max-tokens", "1e2"}, 2,
               "--max-tokens must be a whole number from 1 to 1048576: \"1e2\"; did you mean 100?");
  expect_error({"generate", "m.gguf", "-p", "Hi", "--temperature", "0,8"}, 2,
               "--temperature must be a number from 0 to 100: \"0,8\"; did you mean 0.8?");
}

TEST_F(CommandLine, TellsItsVersion) {
  const auto finished = muster_.run({"--version"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out.rfind("muster 0.", 0), 0U) << finished.out;
  EXPECT_EQ(muster_.run({"-V"}).out, finished.out);
}

TEST_F(CommandLine, NamesTheNearestCommandAndFlag) {
  expect_error({"embde"}, 2, "unknown command: embde; did you mean embed?");
  expect_error({"--hepl"}, 2, "unknown flag: --hepl; did you mean --help?");
  expect_error({"help", "serach"}, 2, "unknown command: serach; did you mean search?");
  expect_error({"embed", "m", "in.txt", "-o", "x.npy", "--devcies", "cpu"}, 2,
               "unknown flag of muster embed: --devcies; did you mean --devices?");
  expect_error(
      {"devices", "--batch-tokens", "64"}, 2,
      "unknown flag of muster devices: --batch-tokens; `muster devices --help` lists them");
}

TEST_F(CommandLine, SaysWhatIsMissing) {
  expect_error({"embed"}, 2, "something is missing; usage: muster embed MODEL INPUT... -o OUT");
  expect_error(
      {"embed", "model"}, 2,
      "INPUT is missing behind the model model; usage: muster embed MODEL INPUT... -o OUT");
  muster_.write("c.txt", "a text\n");
  expect_error(
      {"embed", "c.txt", "-o", "x.npy"}, 2,
      "MODEL is missing before the input c.txt; usage: muster embed MODEL INPUT... -o OUT");
  expect_error({"embed", "-", "-o", "x.npy"}, 2,
               "MODEL is missing before the input -; usage: muster embed MODEL INPUT... -o OUT");
  expect_error({"embed", "model", "in.txt"}, 2,
               "where should the vectors go? Name a file with -o, such as -o vectors.npy");
  expect_error({"embed", "model", "in.txt", "-o"}, 2, "-o needs a value");
}

TEST_F(CommandLine, ChecksSettingsBeforeAnythingElse) {
  expect_error({"embed", "model", "in.txt", "-o", "x.npy", "--precision", "bf61"}, 2,
               "--precision must be one of auto, fp32, bf16, fp16, int8, or own for models that "
               "generate: \"bf61\"; did you mean bf16?");
  expect_error({"embed", "model", "in.txt", "-o", "x.npy", "--batch-tokens", "-1"}, 2,
               "--batch-tokens must be a whole number from 64 to 1048576: \"-1\"");
  muster_.write("muster.yaml", "batch_token: 64\n");
  const auto finished = muster_.run({"config"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("muster.yaml:1: unknown setting: batch_token; did you mean "
                              "batch_tokens?"),
            std::string::npos)
      << finished.err;
}

// Whoever runs the program does not always say what is in its environment: a Service named "muster"
// makes Kubernetes put its address there.
TEST_F(CommandLine, WarnsOfUnknownVariablesAndGoesOn) {
  muster_.set("MUSTER_PRECISOIN", "fp32");
  muster_.set("MUSTER_PORT", "tcp://10.0.0.1:8000");
  const auto finished = muster_.run({"config"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err,
            "muster: warning: the environment has variables that are no settings, and they are "
            "left out: MUSTER_PRECISOIN (did you mean MUSTER_PRECISION?), MUSTER_PORT (it is "
            "Kubernetes' own, of a Service)\n");
}

TEST_F(CommandLine, NamesWhatIsNotThere) {
  muster_.write("corpus.txt", "a text\n");
  const auto no_model = muster_.run({"embed", "./no-model", "corpus.txt", "-o", "x.npy"});
  EXPECT_EQ(no_model.exit_code, 3) << no_model.err;
  EXPECT_NE(no_model.err.find("no-model"), std::string::npos) << no_model.err;
  const auto no_input = muster_.run({"embed", tiny_model(), "corpus.text", "-o", "x.npy"});
  EXPECT_EQ(no_input.exit_code, 3) << no_input.err;
  EXPECT_NE(no_input.err.find("corpus.txt"), std::string::npos) << no_input.err;
  const auto bad_name = muster_.run({"embed", tiny_model(), "corpus.txt", "-o", "x.pny"});
  EXPECT_EQ(bad_name.exit_code, 2) << bad_name.err;
  EXPECT_FALSE(muster_.exists("x.npy"));
}

TEST_F(CommandLine, ExplainsDevicesThatCannotBe) {
  muster_.write("in.txt", "a text\n");
  const auto embed_on = [](const char* devices) {
    return Words{"embed", tiny_model(), "in.txt", "-o", "x.npy", "--devices", devices};
  };
  expect_error(embed_on("cpx"), 2, "unknown device \"cpx\": did you mean cpu?");
  expect_error(embed_on("sim:8xH100-80G"), 4,
               "simulated machines plan and schedule; they cannot run a model: sim:8xH100-80G");
  const auto many = muster_.run(embed_on("1000xcpu"));
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_NE(many.err.find("asks for more devices than this process has:"), std::string::npos);
}

TEST_F(CommandLine, SaysHowToGetTorch) {
  muster_.write("in.txt", "a text\n");
  expect_error({"embed", tiny_model(), "in.txt", "-o", "x.npy", "--devices", "cpu", "--torch-root",
                "nowhere", "--worker-program", MUSTER_BINARY_DIR "/bin/zero_worker"},
               3, "nowhere: no torch wheel here: lib/libtorch_cpu.so is missing");
}

TEST_F(CommandLine, DevicesShowsTheMachine) {
  const auto text = muster_.run({"devices"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.out.find("cpu:0"), std::string::npos);
  const auto json = nlohmann::json::parse(muster_.run({"devices", "--json"}).out);
  EXPECT_EQ(json["cpus"][0]["name"], "cpu:0");
  EXPECT_GE(json["core_count"], 1);
  EXPECT_EQ(json["gpus"].empty(), json["gpu_absent_reason"].is_string());
}

TEST_F(CommandLine, ConfigShowsWhereValuesCameFrom) {
  muster_.write("muster.yaml", "field: body\n");
  muster_.write("other.yaml", "field: other\n");
  muster_.set("MUSTER_BATCH_TOKENS", "512");
  const auto finished =
      muster_.run({"config", "--json", "--max-length", "128", "--torch-root", "torch"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const auto json = nlohmann::json::parse(finished.out);
  EXPECT_EQ(json["max_length"]["value"], 128);
  EXPECT_EQ(json["max_length"]["origin"], "flag");
  EXPECT_EQ(json["batch_tokens"]["value"], 512);
  EXPECT_EQ(json["batch_tokens"]["place"], "MUSTER_BATCH_TOKENS");
  EXPECT_EQ(json["field"]["origin"], "file");
  EXPECT_EQ(json["devices"]["origin"], "default");
  EXPECT_TRUE(json["pooling"]["value"].is_null());
  const auto other =
      muster_.run({"config", "--json", "--config", "other.yaml", "--torch-root", "torch"});
  EXPECT_EQ(nlohmann::json::parse(other.out)["field"]["value"], "other");
}

TEST_F(CommandLine, TokenizeWritesALineForEachText) {
  muster_.write("in.txt", "one\n\ntwo three\n");
  const auto three = muster_.run({"tokenize", tiny_model(), "in.txt"});
  ASSERT_EQ(three.exit_code, 0) << three.err;
  std::istringstream lines(three.out);
  std::vector<nlohmann::json> parsed;
  for (std::string line; std::getline(lines, line);) parsed.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(parsed.size(), 3U);
  // An empty text has the special tokens alone, and every text has them.
  EXPECT_GT(parsed[0]["ids"].size(), parsed[1]["ids"].size());
  EXPECT_EQ(parsed[0]["ids"].front(), parsed[1]["ids"].front());
  EXPECT_EQ(muster_.run({"tokenize", tiny_model(), "-"}, "in.txt").out, three.out);
  const auto cut = muster_.run({"tokenize", tiny_model(), "in.txt", "--max-length", "3"});
  EXPECT_EQ(nlohmann::json::parse(cut.out.substr(cut.out.rfind("{\"ids\"")))["ids"].size(), 3U);
}

TEST_F(CommandLine, TokenizeTakesNoJsonForText) {
  muster_.write("lines.txt", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
  expect_error(
      {"tokenize", tiny_model(), "lines.txt"}, 2,
      "lines.txt: begins with a JSON object: --format jsonl reads its texts, --format lines "
      "takes each line as it is");
  const auto piped = muster_.run({"tokenize", tiny_model(), "-"}, "lines.txt");
  EXPECT_EQ(piped.exit_code, 2);
  EXPECT_NE(piped.err.find("standard input: begins with a JSON object"), std::string::npos);
  const auto lines = muster_.run({"tokenize", tiny_model(), "lines.txt", "--format", "lines"});
  EXPECT_EQ(lines.exit_code, 0) << lines.err;
}

// The ids are those of llama.cpp: the file is made by tools/fixtures/gguf_tokenizers.py.
const std::string kGguf = MUSTER_SOURCE_DIR "/src/chat/testdata/tokenizers/byte_level.gguf";

TEST_F(CommandLine, TokenizeReadsAGgufFileAndDecodesItsIds) {
  muster_.write("in.txt", "x\nit's <|eot_id|>\n");
  const auto lines = muster_.run({"tokenize", kGguf, "in.txt"});
  ASSERT_EQ(lines.exit_code, 0) << lines.err;
  EXPECT_TRUE(lines.out.starts_with("{\"ids\":[0,"))
      << lines.out;  // BOS, as its pre-tokenizer says
  muster_.write("ids.jsonl", lines.out + "{\"ids\":null}\n");
  EXPECT_EQ(muster_.run({"tokenize", kGguf, "ids.jsonl", "--decode"}).out,
            "{\"text\":\"x\"}\n{\"text\":\"it's \"}\n{\"text\":null}\n");
  const auto special = muster_.run({"tokenize", kGguf, "ids.jsonl", "--decode", "--keep-special"});
  EXPECT_NE(special.out.find("\"<|begin_of_text|>it's <|eot_id|>\""), std::string::npos)
      << special.out;
  muster_.write("bad.jsonl", "[1]\n[99999]\n");
  expect_error({"tokenize", kGguf, "bad.jsonl", "--decode"}, 2,
               "bad.jsonl:2: not a list of ids below 1500, nor an object with one as ids");
}

TEST_F(CommandLine, TokenizeRendersAConversation) {
  muster_.write("messages.json", R"([{"role": "user", "content": "Hi"}])");
  expect_error({"tokenize", kGguf, "--chat", "messages.json"}, 3, "the model has no chat template");
  expect_error({"tokenize", kGguf, "in.txt", "--chat", "messages.json"}, 2,
               "--chat takes no INPUT and no --decode");
  expect_error({"tokenize", kGguf}, 2, "tokenize needs INPUT or --chat");

  std::filesystem::create_directories(muster_.folder() / "model");
  muster_.write("model/tokenizer.json",
                *read_file(MUSTER_SOURCE_DIR "/src/tokenizer/testdata/llama3/tokenizer.json"));
  muster_.write("model/config.json", R"({"model_type": "llama"})");
  muster_.write("model/chat_template.jinja",
                "{% for m in messages %}{{ m.role }}: {{ m.content }}<|eot_id|>{% endfor %}"
                "{% if add_generation_prompt %}{{ x }}{% endif %}");
  const auto plain = muster_.run({"tokenize", "model", "--chat", "messages.json"});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  const auto parsed = nlohmann::json::parse(plain.out);
  EXPECT_EQ(parsed["text"], "user: Hi<|eot_id|>");
  EXPECT_EQ(parsed["ids"].back(), 2);  // <|eot_id|>
  muster_.write("object.json", R"({"messages": [{"role": "user", "content": "Hi"}], "x": "go"})");
  const auto more = muster_.run({"tokenize", "model", "--chat", "object.json"});
  EXPECT_EQ(nlohmann::json::parse(more.out)["text"], "user: Hi<|eot_id|>go");
}

TEST_F(CommandLine, NamesTheLineOfABadRecord) {
  muster_.write("in.jsonl", "{\"text\": \"good\"}\n{\"text\": 7}\n");
  const auto finished = muster_.run({"tokenize", tiny_model(), "in.jsonl"});
  EXPECT_EQ(finished.exit_code, 2) << finished.err;
  EXPECT_NE(finished.err.find("in.jsonl:2"), std::string::npos) << finished.err;
  EXPECT_NE(finished.err.find("; --skip-bad goes on without such records\n"), std::string::npos)
      << finished.err;
  const auto skipped = muster_.run({"tokenize", tiny_model(), "in.jsonl", "--skip-bad"});
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_NE(skipped.out.find("\n{\"ids\":null}\n"), std::string::npos) << skipped.out;
}

TEST_F(CommandLine, EmbedReportsAndSearchFinds) {
  muster_.set("ZERO_WORKER", "echo");
  muster_.write(
      "in.jsonl",
      "{\"text\": \"a b c\", \"key\": \"first\"}\n{\"text\": \"the a\", \"key\": \"second\"}\n");
  const auto embedded =
      muster_.run(with_test_worker({"embed", tiny_model(), "in.jsonl", "-o", "x.npy", "--id-field",
                                    "key", "--precision", "fp32"}));
  ASSERT_EQ(embedded.exit_code, 0) << embedded.err;
  EXPECT_EQ(embedded.out.rfind("2 texts in ", 0), 0U) << embedded.out;
  EXPECT_NE(embedded.out.find("cpu:0"), std::string::npos);
  EXPECT_TRUE(muster_.exists("x.npy.index.jsonl"));

  // The test worker's row is [sum of ids, count of ids, 0, ...]: the same text has cosine 1. The
  // model puts its prompt for questions, "the ", before "a".
  const auto found =
      muster_.run(with_test_worker({"search", "x.npy", "a", "--top", "1", "--json"}));
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const auto json = nlohmann::json::parse(found.out);
  EXPECT_EQ(json["query"], "a");
  ASSERT_EQ(json["hits"].size(), 1U);
  EXPECT_NEAR(json["hits"][0]["score"].get<double>(), 1.0, 1e-6);
  EXPECT_EQ(json["hits"][0]["id"], "second");
  const auto shown = muster_.run(with_test_worker({"search", "x.npy", "a", "--top", "1"}));
  EXPECT_NE(shown.out.find("1.0000  second  the a\n"), std::string::npos) << shown.out;
}

TEST_F(CommandLine, SearchRefusesAModelThatHasChangedSince) {
  muster_.set("ZERO_WORKER", "echo");
  std::filesystem::copy(tiny_model(), muster_.folder() / "model",
                        std::filesystem::copy_options::recursive);
  muster_.write("in.txt", "a b c\n");
  ASSERT_EQ(
      muster_
          .run(with_test_worker({"embed", "model", "in.txt", "-o", "x.npy", "--precision", "fp32"}))
          .exit_code,
      0);
  const auto search = [&] { return muster_.run(with_test_worker({"search", "x.npy", "a"})); };
  ASSERT_EQ(search().exit_code, 0);
  muster_.write("model/config.json", muster_.read("model/config.json") + "\n");
  const auto refused = search();
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("is not the model any more that made these vectors"),
            std::string::npos)
      << refused.err;
}

TEST_F(CommandLine, SearchRefusesFilesThatAreNotOfOneRun) {
  muster_.set("ZERO_WORKER", "echo");
  muster_.write("cats.txt", "a b c\n");
  muster_.write("tax.txt", "the a\n");
  const auto embed = [&](const std::string& input, const std::string& out) {
    return muster_
        .run(with_test_worker({"embed", tiny_model(), input, "-o", out, "--precision", "fp32"}))
        .exit_code;
  };
  const auto search = [&] { return muster_.run(with_test_worker({"search", "cats.npy", "a"})); };
  ASSERT_EQ(embed("cats.txt", "cats.npy"), 0);
  ASSERT_EQ(embed("tax.txt", "cats.safetensors"), 0);
  ASSERT_EQ(embed("tax.txt", "tax.npy"), 0);
  const auto right = search();
  EXPECT_EQ(right.exit_code, 0) << right.err;
  EXPECT_NE(right.out.find("a b c"), std::string::npos) << "the index of another format";
  for (const char* ending : {"", ".index.jsonl", ".run.json"}) {
    SCOPED_TRACE(ending);
    const auto name = std::string("cats.npy") + ending;
    const auto own = muster_.read(name);
    muster_.write(name, muster_.read(std::string("tax.npy") + ending));
    const auto refused = search();
    EXPECT_EQ(refused.exit_code, 7) << refused.err;
    EXPECT_EQ(refused.out, "");
    EXPECT_NE(refused.err.find("not the file that cats.npy.run.json speaks of"), std::string::npos)
        << refused.err;
    muster_.write(name, own);
  }
  EXPECT_EQ(search().exit_code, 0);
}

TEST_F(CommandLine, SearchSaysWhatToDoWithFilesOfAnEarlierVersion) {
  muster_.set("ZERO_WORKER", "echo");
  muster_.write("in.txt", "a\n");
  ASSERT_EQ(
      muster_.run(with_test_worker({"embed", tiny_model(), "in.txt", "-o", "x.npy"})).exit_code, 0);
  std::filesystem::rename(muster_.folder() / "x.npy.index.jsonl",
                          muster_.folder() / "x.index.jsonl");
  std::filesystem::rename(muster_.folder() / "x.npy.run.json", muster_.folder() / "x.run.json");
  const auto refused = muster_.run(with_test_worker({"search", "x.npy", "a"}));
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_NE(refused.err.find("run muster embed again"), std::string::npos) << refused.err;
}

TEST_F(CommandLine, EmbedTakesNoInputForAnOutputAndNoJsonForText) {
  const std::string lines = "{\"text\": \"a\"}\n{\"text\": \"b\"}\n";
  muster_.write("notes.jsonl", lines);
  const auto over =
      muster_.run(with_test_worker({"embed", tiny_model(), "notes.jsonl", "-o", "notes.jsonl"}));
  EXPECT_EQ(over.exit_code, 2);
  EXPECT_NE(over.err.find("notes.jsonl would be overwritten, and it is an input"),
            std::string::npos)
      << over.err;
  EXPECT_EQ(muster_.read("notes.jsonl"), lines);
  EXPECT_FALSE(muster_.exists("notes.jsonl.lock"));
  const auto piped =
      muster_.run(with_test_worker({"embed", tiny_model(), "-", "-o", "x.npy"}), "notes.jsonl");
  EXPECT_EQ(piped.exit_code, 2);
  EXPECT_NE(piped.err.find("standard input: begins with a JSON object: --format jsonl"),
            std::string::npos)
      << piped.err;
  EXPECT_FALSE(muster_.exists("x.npy.part"));
}

TEST_F(CommandLine, EmbedSaysThatAnOutputIsCompleteAndThatAnInputIsEmpty) {
  muster_.write("in.txt", "one\n\ntwo\n");
  const Words words = with_test_worker({"embed", tiny_model(), "in.txt", "-o", "x.npy"});
  const auto first = muster_.run(words);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find("1 blank line was passed over"), std::string::npos) << first.out;
  auto again = words;
  again.emplace_back("--resume");
  const auto complete = muster_.run(again);
  EXPECT_EQ(complete.exit_code, 0) << complete.err;
  EXPECT_EQ(complete.out, "x.npy is complete already [2 x 8]: nothing to do\n");
  muster_.write("in.txt", "");
  const auto replaces = muster_.run(words);
  EXPECT_EQ(replaces.exit_code, 2) << replaces.err;
  EXPECT_NE(replaces.err.find("there is no text in the input, so x.npy is left as it is"),
            std::string::npos)
      << replaces.err;
  const auto empty =
      muster_.run(with_test_worker({"embed", tiny_model(), "in.txt", "-o", "y.npy"}));
  EXPECT_EQ(empty.exit_code, 0) << empty.err;
  EXPECT_NE(empty.err.find("there is no text in the input: y.npy has no rows"), std::string::npos)
      << empty.err;
}

TEST_F(CommandLine, AClosedStandardInputIsNotAnEmptyOne) {
  const Words words = with_test_worker({"embed", tiny_model(), "-", "-o", "x.npy"});
  const auto finished = muster_.wait(muster_.start(words, /*input=*/""));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.err,
            "muster: standard input (-) is closed: give it the texts through a pipe or with <, or "
            "name a file\n");
  EXPECT_FALSE(muster_.exists("x.npy"));
}

TEST_F(CommandLine, EmbedNamesTheVariablesThatItDoesNotRead) {
  muster_.set("GPU_COUNT", "2");
  muster_.set("EMBEDDING_BATCH_SIZE", "32");
  muster_.set("WORLD_SIZE", "4");
  muster_.write("in.txt", "one\n");
  const auto finished =
      muster_.run(with_test_worker({"embed", tiny_model(), "in.txt", "-o", "x.npy"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const std::string sentence =
      "muster: embed does not read GPU_COUNT, EMBEDDING_BATCH_SIZE, as serve does: say it with "
      "--devices, --batch-tokens or --precision\n";
  EXPECT_NE(finished.err.find(sentence), std::string::npos) << finished.err;
}

TEST_F(CommandLine, EmbedIsQuietOrSpeaksJson) {
  muster_.write("in.txt", "one\ntwo\n");
  const Words words =
      with_test_worker({"embed", tiny_model(), "in.txt", "-o", "x.npy", "--precision", "fp32"});
  auto quiet = words;
  quiet.emplace_back("--quiet");
  const auto finished = muster_.run(quiet);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(finished.err, "");
  auto json_words = words;
  json_words.emplace_back("--json");
  const auto json = nlohmann::json::parse(muster_.run(json_words).out);
  EXPECT_EQ(json["text_count"], 2);
  EXPECT_EQ(json["precision"], "fp32");
}

TEST_F(CommandLine, SearchReadsQuestionsFromStandardInput) {
  muster_.set("ZERO_WORKER", "echo");
  muster_.write("in.txt", "a b c\nthe a\n");
  muster_.write("questions.txt", "a\n\na b\n");
  ASSERT_EQ(muster_
                .run(with_test_worker(
                    {"embed", tiny_model(), "in.txt", "-o", "x.npy", "--precision", "fp32"}))
                .exit_code,
            0);
  const auto search = [&](Words questions, const std::string& input) {
    Words words{"search", "x.npy", "--json"};
    words.insert(words.end(), questions.begin(), questions.end());
    return muster_.run(with_test_worker(words), input);
  };
  const auto piped = search({"-"}, "questions.txt");
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(piped.out, search({"a", "a b"}, "/dev/null").out);
  const auto none = search({"-"}, "/dev/null");
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_EQ(none.out, "");
  expect_error({"search", "in.txt", "a"}, 2,
               "in.txt holds no vectors (.npy, .safetensors or .jsonl): make them with `muster "
               "embed MODEL in.txt -o in.npy`, then search in.npy");
}

TEST_F(CommandLine, TablesInAFileAreNotCut) {
  const std::string folder = "/" + std::string(200, 'x');
  const auto finished = muster_.run({"config", "--cache-dir", folder});
  EXPECT_NE(finished.out.find(folder), std::string::npos) << finished.out;
}

TEST_F(CommandLine, SearchSaysWhatItNeeds) {
  const auto missing = muster_.run({"search", "no.npy", "question"});
  EXPECT_EQ(missing.exit_code, 3) << missing.err;
  EXPECT_NE(missing.err.find("no.npy"), std::string::npos) << missing.err;
  expect_error({"search", "no.npy", "question", "--top", "0"}, 2,
               "--top must be a whole number from 1 to 10000: \"0\"");
}

TEST_F(CommandLine, AFullDiskUnderStandardOutputIsAnError) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  const auto finished = muster_.run({"--help"}, "/dev/null", "/dev/full");
  EXPECT_EQ(finished.exit_code, 8);
  EXPECT_EQ(finished.err, "muster: standard output: cannot write: No space left on device\n");
}

// A named pipe as input: opening its other end succeeds when the run has begun to read, so the
// signal can come neither too early nor too late.
class Interrupted : public CommandLine {
 protected:
  Finished interrupt(int signal_number, const Words& inputs = {"in.txt"}) {
    const auto fifo = muster_.folder() / "in.txt";
    EXPECT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    Words words{"embed", tiny_model(), "-o", "x.npy", "--precision", "fp32"};
    words.insert(words.end(), inputs.begin(), inputs.end());
    const auto pid = muster_.start(with_test_worker(words));
    const int fd = open(fifo.c_str(), O_WRONLY | O_CLOEXEC);
    EXPECT_GE(fd, 0);
    kill(pid, signal_number);
    const auto finished = muster_.wait(pid);  // the pipe stays open: the signal alone ends the run
    close(fd);
    return finished;
  }
};

TEST_F(Interrupted, ByCtrlCBeforeAnyRowSaysThatNothingIsKept) {
  const auto finished = interrupt(SIGINT);
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_EQ(finished.out, "");
  EXPECT_NE(finished.err.find("stopped before a row was finished; nothing of this run is kept\n"),
            std::string::npos)
      << finished.err;
  EXPECT_EQ(finished.err.find("--resume"), std::string::npos) << finished.err;
  EXPECT_FALSE(muster_.exists("x.npy"));
}

TEST_F(Interrupted, ByCtrlCSaysWhatWasKeptAndHowToGoOn) {
  // Many more texts than wait in memory at once: when the pipe behind them is opened for reading,
  // most of them are done.
  std::string texts;
  for (int i = 0; i < 20'000; ++i) texts += "a text\n";
  muster_.write("first.txt", texts);
  const auto finished = interrupt(SIGINT, {"first.txt", "in.txt"});
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_EQ(finished.out, "");
  EXPECT_TRUE(
      std::regex_search(finished.err, std::regex("stopped; [0-9,]+ texts are kept, go on with: ")))
      << finished.err;
  EXPECT_NE(finished.err.find("--resume\n"), std::string::npos) << finished.err;
  EXPECT_FALSE(muster_.exists("x.npy"));
}

TEST_F(CommandLine, APipeThatNobodyWritesCanBeInterrupted) {
  const auto fifo = muster_.folder() / "in.txt";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const auto pid = muster_.start(
      with_test_worker({"embed", tiny_model(), "in.txt", "-o", "x.npy", "--precision", "fp32"}));
  const std::filesystem::path fds("/proc/" + std::to_string(pid) + "/fd");
  const auto is_open = [&] {
    std::error_code ignored;
    for (const auto& fd : std::filesystem::directory_iterator(fds, ignored)) {
      if (std::filesystem::read_symlink(fd.path(), ignored) == fifo) return true;
    }
    return false;
  };
  while (!is_open()) std::this_thread::yield();
  kill(pid, SIGINT);
  EXPECT_EQ(muster_.wait(pid).exit_code, 130);
}

TEST_F(Interrupted, BySigtermEndsTheSameWay) {
  EXPECT_EQ(interrupt(SIGTERM).exit_code, 143);
  EXPECT_FALSE(muster_.exists("x.npy"));
}

}  // namespace
}  // namespace muster
