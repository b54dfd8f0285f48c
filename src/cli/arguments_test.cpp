#include "cli/arguments.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

bool has_equals(std::string_view word) { return word.find('=') != word.npos; }

bool begins_with_digit(std::string_view word) {
  return !word.empty() && word.front() >= '0' && word.front() <= '9';
}

CommandSpec spec() {
  CommandSpec spec;
  spec.name = "embed";
  spec.usage = "MODEL INPUT... -o OUT";
  spec.positional_least = 1;
  spec.positional_most = 2;
  spec.groups = {
      {"All",
       {SettingId::MaxLength, SettingId::Normalize, SettingId::Devices, SettingId::Search,
        SettingId::Precision},
       {{"--out", "OUT", "", "-o"},
        {"--json", "", ""},
        {"--env", "K=V", "", "", true, has_equals},
        {.name = "--mmr", .value_name = "[LAMBDA]", .help = "", .is_value = begins_with_digit}}}};
  return spec;
}

Result<Arguments> parse(const std::vector<std::string>& words) {
  return parse_arguments(spec(), words);
}

std::string message(const std::vector<std::string>& words) {
  const auto arguments = parse(words);
  return arguments ? "no error" : arguments.error().message;
}

TEST(ParseArguments, SortsWordsFlagsAndSettings) {
  const auto arguments = parse({"model", "-o", "x.npy", "--json", "in.txt", "--max-length=64",
                                "--no-normalize", "--devices", "2xcpu"});
  ASSERT_TRUE(arguments) << arguments.error().message;
  EXPECT_EQ(arguments->positionals, (std::vector<std::string>{"model", "in.txt"}));
  EXPECT_EQ(arguments->value("--out"), "x.npy");
  EXPECT_TRUE(arguments->has("--json"));
  EXPECT_FALSE(arguments->has("--help"));
  ASSERT_EQ(arguments->settings.size(), 3U);
  EXPECT_EQ(arguments->settings[0].id, SettingId::MaxLength);
  EXPECT_EQ(arguments->settings[0].value, "64");
  EXPECT_EQ(arguments->settings[1].value, "false");
  EXPECT_EQ(arguments->settings[1].place, "--no-normalize");
  EXPECT_EQ(arguments->settings[2].value, "2xcpu");
}

TEST(ParseArguments, TakesADashAndWhatFollowsTwoDashesAsWords) {
  const auto arguments = parse({"-", "--", "--json"});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->positionals, (std::vector<std::string>{"-", "--json"}));
}

TEST(ParseArguments, AValueThatMayBeLeftOutIsOnlyWhatLooksLikeOne) {
  const auto value_of = [](const std::vector<std::string>& words) {
    const auto arguments = parse(words);
    EXPECT_TRUE(arguments) << arguments.error().message;
    return arguments->value("--mmr");
  };
  EXPECT_EQ(value_of({"model", "--mmr", "0.7"}), "0.7");
  EXPECT_EQ(value_of({"model", "--mmr=x"}), "x");
  EXPECT_EQ(value_of({"model", "--mmr", "question"}), "");
  EXPECT_EQ(value_of({"model", "--mmr", "--json"}), "");
  EXPECT_EQ(value_of({"model", "--mmr"}), "");
  EXPECT_EQ(parse({"model", "--mmr", "word"})->positionals,
            (std::vector<std::string>{"model", "word"}));
  EXPECT_EQ(value_of({"model"}), std::nullopt);
}

TEST(ParseArguments, AFlagOfFilesMayRepeat) {
  const auto arguments = parse({"model", "--search", "a.npy", "--search=faq=b.npy"});
  ASSERT_TRUE(arguments) << arguments.error().message;
  ASSERT_EQ(arguments->settings.size(), 1U);
  EXPECT_EQ(arguments->settings[0].value, "a.npy,faq=b.npy");
}

TEST(ParseArguments, KeepsEachValueOfAFlagThatMayRepeat) {
  const auto arguments = parse({"model", "--env", "A=1", "--env=B=2", "--env", "A=1"});
  ASSERT_TRUE(arguments) << arguments.error().message;
  EXPECT_EQ(arguments->values("--env"), (std::vector<std::string>{"A=1", "B=2", "A=1"}));
  EXPECT_TRUE(arguments->values("--volume").empty());
}

TEST(ParseArguments, TakesTheValuesOfAListAsWords) {
  const auto arguments =
      parse({"--devices", "cuda:0", "cuda:1", "2xcpu", "model", "--env", "A=1", "B=2", "in.txt"});
  ASSERT_TRUE(arguments) << arguments.error().message;
  ASSERT_EQ(arguments->settings.size(), 1U);
  EXPECT_EQ(arguments->settings[0].value, "cuda:0,cuda:1,2xcpu");
  EXPECT_EQ(arguments->values("--env"), (std::vector<std::string>{"A=1", "B=2"}));
  EXPECT_EQ(arguments->positionals, (std::vector<std::string>{"model", "in.txt"}));
  // A kind alone may as well be a question or a file.
  const auto question = parse({"--devices", "cuda:0", "cpu", "auto"});
  ASSERT_TRUE(question);
  EXPECT_EQ(question->positionals, (std::vector<std::string>{"cpu", "auto"}));
}

TEST(ParseArguments, TakesTheValueOfAShortFlagWithoutASpace) {
  for (const auto* word : {"-ox.npy", "-o=x.npy"}) {
    const auto arguments = parse({"model", word});
    ASSERT_TRUE(arguments) << arguments.error().message;
    EXPECT_EQ(arguments->value("--out"), "x.npy");
  }
  EXPECT_EQ(message({"m", "-hx"}), "-h takes no value: -hx");
  EXPECT_EQ(message({"m", "-devices"}),
            "unknown flag of muster embed: -devices; did you mean --devices?");
}

TEST(ParseArguments, KnowsAliases) {
  const auto arguments = parse({"model", "--max-seq-length", "64"});
  ASSERT_TRUE(arguments) << arguments.error().message;
  ASSERT_EQ(arguments->settings.size(), 1U);
  EXPECT_EQ(arguments->settings[0].id, SettingId::MaxLength);
  EXPECT_EQ(arguments->settings[0].place, "--max-seq-length");
}

TEST(ParseArguments, SaysWhatIsWrong) {
  EXPECT_EQ(message({"m", "--devcies", "cpu"}),
            "unknown flag of muster embed: --devcies; did you mean --devices?");
  EXPECT_EQ(message({"m", "-x"}),
            "unknown flag of muster embed: -x; `muster embed --help` lists them");
  EXPECT_EQ(message({"m", "--completely-else"}),
            "unknown flag of muster embed: --completely-else; `muster embed --help` lists them");
  EXPECT_EQ(message({"m", "--out-type", "x"}),
            "unknown flag of muster embed: --out-type; did you mean --out?");
  EXPECT_EQ(message({"m", "--dtype", "fp32"}),
            "unknown flag of muster embed: --dtype; did you mean --precision?");
  EXPECT_EQ(message({"m", "--out"}), "--out needs a value");
  EXPECT_EQ(message({"m", "--out", "--json"}), "--out needs a value");
  EXPECT_EQ(message({"m", "--json=yes"}), "--json takes no value: --json=yes");
  EXPECT_EQ(message({"m", "-o", "a", "--out=b"}), "--out is given twice: a and b");
  EXPECT_EQ(message({}), "something is missing; usage: muster embed MODEL INPUT... -o OUT");
  EXPECT_EQ(message({"a", "b", "c"}),
            "one word too many: \"c\"; usage: muster embed MODEL INPUT... -o OUT");
}

TEST(ParseArguments, AskedForHelpNeedsNothingElse) {
  for (const auto* flag : {"--help", "-h"}) {
    const auto arguments = parse({flag});
    ASSERT_TRUE(arguments);
    EXPECT_TRUE(arguments->wants_help);
  }
}

TEST(ParseArguments, TakesColoursInEveryCommand) {
  EXPECT_EQ(parse({"m", "--color", "never"})->value("--color"), "never");
  EXPECT_EQ(message({"m", "--color", "yes"}), "--color must be auto, always or never: \"yes\"");
}

TEST(ColorChoiceOf, IsTheLastOneBeforeTheWordsOfAnother) {
  const auto choice = [](const std::vector<std::string>& words) { return color_choice_of(words); };
  EXPECT_EQ(choice({"muster", "plan", "m"}), ColorChoice::Auto);
  EXPECT_EQ(choice({"muster", "plan", "--color", "always"}), ColorChoice::Always);
  EXPECT_EQ(choice({"muster", "plan", "--color=never", "m"}), ColorChoice::Never);
  EXPECT_EQ(choice({"muster", "plan", "--color=never", "--color=always"}), ColorChoice::Always);
  EXPECT_EQ(choice({"muster", "plan", "--color"}), ColorChoice::Auto);
  EXPECT_EQ(choice({"muster", "monitor", "--", "ls", "--color=always"}), ColorChoice::Auto);
}

}  // namespace
}  // namespace muster
