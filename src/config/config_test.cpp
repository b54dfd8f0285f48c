#include "config/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace muster {
namespace {

// A folder of its own for each test.
class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    const auto name = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("muster_config_" + std::to_string(getpid()) + "_" + name);
    std::filesystem::create_directories(folder_);
    sources_.working_folder = folder_;
  }
  ~ConfigTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  std::string message() const {
    const auto config = Config::load(sources_);
    return config ? "no error" : config.error().message;
  }

  std::filesystem::path folder_;
  ConfigSources sources_;
};

TEST_F(ConfigTest, HasDefaults) {
  const auto config = Config::load(sources_);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->text(SettingId::Devices), "auto");
  EXPECT_EQ(config->count(SettingId::BatchTokens), 4096U);
  EXPECT_EQ(config->is_on(SettingId::SkipBad), false);
  EXPECT_EQ(config->is_on(SettingId::Normalize), std::nullopt);
  EXPECT_EQ(config->count(SettingId::MaxLength), std::nullopt);
  EXPECT_FALSE(config->file());
}

TEST_F(ConfigTest, PrefersFlagToEnvironmentToFile) {
  write("muster.yaml", "# comment\ndevices: cpu:0\nbatch_tokens: 128\nfield: body\n");
  sources_.environment = {"PATH=/bin", "MUSTER_DEVICES=2xcpu", "MUSTER_BATCH_TOKENS=256"};
  sources_.flags = {{SettingId::BatchTokens, "512", "--batch-tokens"}};
  const auto config = Config::load(sources_);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->at(SettingId::BatchTokens).value, "512");
  EXPECT_EQ(config->at(SettingId::BatchTokens).origin, Origin::Flag);
  EXPECT_EQ(config->at(SettingId::Devices).value, "2xcpu");
  EXPECT_EQ(config->at(SettingId::Devices).place, "MUSTER_DEVICES");
  EXPECT_EQ(config->at(SettingId::Field).value, "body");
  EXPECT_EQ(config->at(SettingId::Field).origin, Origin::File);
  EXPECT_EQ(config->at(SettingId::Field).place, (folder_ / "muster.yaml").string() + ":4");
}

TEST_F(ConfigTest, TakesTheFileOfTheFlagThenOfTheEnvironment) {
  write("muster.yaml", "field: here\n");
  const auto a = write("a.yaml", "field: a\n");
  const auto b = write("b.yaml", "field: b\n");
  sources_.environment = {"MUSTER_CONFIG=" + a.string()};
  EXPECT_EQ(Config::load(sources_)->text(SettingId::Field), "a");
  sources_.file = b;
  EXPECT_EQ(Config::load(sources_)->text(SettingId::Field), "b");
  sources_.file = folder_ / "missing.yaml";
  const auto missing = Config::load(sources_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::NotFound);
}

TEST_F(ConfigTest, NamesTheNearestVariable) {
  sources_.environment = {"MUSTER_DEVCIES=cpu", "MUSTER_ABCDEFGHIJ=1"};
  const auto config = Config::load(sources_);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->warnings(),
            std::vector<std::string>{
                "the environment has variables that are no settings, and they are left out: "
                "MUSTER_DEVCIES (did you mean MUSTER_DEVICES?), MUSTER_ABCDEFGHIJ"});
  EXPECT_EQ(config->at(SettingId::Devices).origin, Origin::Default);
}

// A server must not run without keys for want of a letter.
TEST_F(ConfigTest, AMistypedGuardIsAnError) {
  for (const auto& [wrong, right] : {std::pair{"MUSTER_KEY_FILE", "MUSTER_KEYS_FILE"},
                                     {"MUSTER_KEYS_FIEL", "MUSTER_KEYS_FILE"},
                                     {"MUSTER_TLS_CERTS", "MUSTER_TLS_CERT"},
                                     {"MUSTER_TLSKEY", "MUSTER_TLS_KEY"},
                                     {"MUSTER_TLS_CLIENT_CERT", "MUSTER_TLS_CLIENT_CA"},
                                     {"MUSTER_AUDITLOG", "MUSTER_AUDIT_LOG"}}) {
    sources_.environment = {std::string(wrong) + "=/etc/muster/x"};
    EXPECT_EQ(message(), std::string(wrong) + ": no setting has this name; did you mean " + right +
                             "? It is not left out, as a server without that setting lets in whom "
                             "it should not");
    sources_.environment = {std::string(wrong) + "="};
    EXPECT_EQ(message(), "no error") << "without a value it says nothing";
  }
}

TEST_F(ConfigTest, AnUnknownNameInTheFileIsAnError) {
  write("muster.yaml", "devcies: cpu\n");
  EXPECT_TRUE(message().ends_with("did you mean devices?")) << message();
}

// What Kubernetes gives each container where a Service is called "muster".
TEST_F(ConfigTest, LeavesOutWhatKubernetesSaysOfAServiceNamedAsTheProgram) {
  sources_.environment = {"MUSTER_PORT=tcp://10.0.0.1:8000",
                          "MUSTER_SERVICE_HOST=10.0.0.1",
                          "MUSTER_SERVICE_PORT=8000",
                          "MUSTER_SERVICE_PORT_HTTP=8000",
                          "MUSTER_PORT_8000_TCP=tcp://10.0.0.1:8000",
                          "MUSTER_PORT_8000_TCP_ADDR=10.0.0.1",
                          "MUSTER_LISTEN=tcp://10.0.0.2:80",
                          "MUSTER_FIELD=body"};
  const auto config = Config::load(sources_);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->text(SettingId::Field), "body");
  EXPECT_EQ(config->at(SettingId::Listen).origin, Origin::Default) << "a setting's name, too";
  ASSERT_EQ(config->warnings().size(), 1U);
  const auto& warning = config->warnings().front();
  EXPECT_NE(warning.find("MUSTER_SERVICE_HOST (it is Kubernetes' own"), std::string::npos)
      << warning;
  EXPECT_EQ(warning.find("did you mean"), std::string::npos) << warning;
}

TEST_F(ConfigTest, TheWarningStaysOneLine) {
  for (int i = 0; i < 1000; ++i) {
    sources_.environment.push_back("MUSTER_QQQ" + std::to_string(i) + "=1");
  }
  const auto warnings = Config::load(sources_)->warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(warnings[0].ends_with(" and 992 more")) << warnings[0];
}

TEST_F(ConfigTest, CountsAnEmptyVariableAsNotSet) {
  sources_.environment = {"MUSTER_DEVICES=", "MUSTER_CONFIG="};
  const auto config = Config::load(sources_);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->at(SettingId::Devices).origin, Origin::Default);
}

TEST_F(ConfigTest, RefusesAliasesThatDisagree) {
  sources_.flags = {{SettingId::MaxLength, "128", "--max-length"},
                    {SettingId::MaxLength, "256", "--max-seq-length"}};
  EXPECT_EQ(message(),
            "--max-length and --max-seq-length set the same thing and disagree: 128 and 256");
  sources_.flags[1].value = "0128";  // the same number
  EXPECT_EQ(message(), "no error");
}

TEST_F(ConfigTest, KnowsAliasesEverywhere) {
  write("muster.yaml", "max_seq_length: 64\n");
  EXPECT_EQ(Config::load(sources_)->count(SettingId::MaxLength), 64U);
  sources_.environment = {"MUSTER_MAX_SEQ_LENGTH=65"};
  EXPECT_EQ(Config::load(sources_)->count(SettingId::MaxLength), 65U);
}

TEST_F(ConfigTest, ChecksValuesWhereverTheyStand) {
  write("muster.yaml", "\nbatch_tokens: many\n");
  EXPECT_EQ(message(), (folder_ / "muster.yaml").string() +
                           ":2: batch_tokens must be a whole number from 64 to 1048576: \"many\"");
  write("muster.yaml", "precision: bf61\n");
  EXPECT_EQ(message(), (folder_ / "muster.yaml").string() +
                           ":1: precision must be one of auto, fp32, bf16, fp16, int8, or own for "
                           "models that generate: \"bf61\"; "
                           "did you mean bf16?");
  write("muster.yaml", "");
  sources_.environment = {"MUSTER_NORMALIZE=perhaps"};
  EXPECT_EQ(message(), "MUSTER_NORMALIZE must be true or false: \"perhaps\"");
  sources_.environment = {"MUSTER_CORES_PER_DEVICE=0"};
  EXPECT_EQ(message(), "MUSTER_CORES_PER_DEVICE must be a whole number from 1 to 4096: \"0\"");
}

TEST_F(ConfigTest, TakesADefaultThatHadToBeFound) {
  auto config = Config::load(sources_);
  ASSERT_TRUE(config);
  config->set_default(SettingId::CacheDir, "/var/cache/muster", "HOME");
  EXPECT_EQ(config->text(SettingId::CacheDir), "/var/cache/muster");
  EXPECT_EQ(config->at(SettingId::CacheDir).origin, Origin::Default);
}

TEST(ParseConfigYaml, SaysLineAndReason) {
  struct Case {
    const char* text;
    ErrorKind kind;
    const char* message;
  };
  for (const auto& [text, kind, message] : {
           Case{"devices: cpu\nbatch_token: 1\n", ErrorKind::InvalidArgument,
                "m.yaml:2: unknown setting: batch_token; did you mean batch_tokens?"},
           Case{"backend:\n  device_ids: [0]\n", ErrorKind::InvalidArgument,
                "m.yaml:1: unknown setting: backend; the settings stand side by side here: its "
                "device_ids is devices (cuda:0,cuda:1), its torch_dtype precision; device_map and "
                "max_memory are flags of muster plan (--strategy, --max-memory); a benchmark's "
                "file is "
                "for muster bench run"},
           Case{"devices: [cpu, cuda]\n", ErrorKind::InvalidArgument,
                "m.yaml:1: devices takes a single value, not a list"},
           Case{"devices:\n  a: b\n", ErrorKind::InvalidArgument,
                "m.yaml:2: devices takes a single value, not a mapping"},
           Case{"devices:\n", ErrorKind::InvalidArgument, "m.yaml:1: devices has no value"},
           Case{"just words\n", ErrorKind::InvalidArgument,
                "m.yaml:1: expected lines of the form \"name: value\""},
           Case{"field: &a x\nid_field: *a\n", ErrorKind::InvalidArgument,
                "m.yaml:2: references (*name) are not allowed here"},
           Case{"devices: cpu\nfield: @a\n", ErrorKind::Corrupt,
                "m.yaml:2: no YAML: unknown token"},
           Case{"field: a\n---\nfield: b\n", ErrorKind::InvalidArgument,
                "m.yaml: more than one document (a line \"---\" begins another)"},
       }) {
    SCOPED_TRACE(text);
    const auto given = parse_config_yaml(text, "m.yaml");
    ASSERT_FALSE(given);
    EXPECT_EQ(given.error().kind, kind);
    EXPECT_EQ(given.error().message, message);
  }
}

TEST(ParseConfigYaml, TakesAnEmptyFile) {
  for (const auto* text : {"", "\n", "# nothing\n", "{}\n"}) {
    const auto given = parse_config_yaml(text, "m.yaml");
    ASSERT_TRUE(given) << text << given.error().message;
    EXPECT_TRUE(given->empty());
  }
}

TEST(ParseConfigYaml, SurvivesDeepNesting) {
  EXPECT_FALSE(parse_config_yaml(std::string(100'000, '['), "m.yaml"));
  EXPECT_FALSE(parse_config_yaml(std::string(100'000, '{'), "m.yaml"));
}

TEST(Schema, IsInTheOrderOfItsIdsAndNamesNothingTwice) {
  auto names = setting_names();
  for (const auto& setting : settings()) EXPECT_EQ(&setting_of(setting.id), &setting);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Schema, DefaultsPassTheirOwnCheck) {
  for (const auto& setting : settings()) {
    if (setting.default_value.empty()) continue;
    const auto checked = check_value(setting, setting.default_value, setting.name);
    ASSERT_TRUE(checked) << setting.name;
    EXPECT_EQ(*checked, setting.default_value);
  }
}

}  // namespace
}  // namespace muster
