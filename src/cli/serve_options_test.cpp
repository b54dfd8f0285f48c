#include "cli/serve_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/live_settings.h"
#include "cli/recommendation.h"
#include "cli/serve_doors.h"
#include "topology/machine_text.h"

namespace muster {
namespace {

Result<Config> load_config(const std::vector<std::pair<SettingId, std::string>>& values) {
  ConfigSources sources;
  sources.working_folder = "/nonexistent";
  for (const auto& [id, value] : values) {
    sources.flags.push_back({id, value, flag_of(setting_of(id).name)});
  }
  return Config::load(sources);
}

Config config_of(const std::vector<std::pair<SettingId, std::string>>& values) {
  auto config = load_config(values);
  EXPECT_TRUE(config) << config.error().message;
  return *config;
}

ServeOptions of_two_devices() {
  ServeOptions options;
  options.devices.resize(2);
  options.devices[1].index = 1;
  return options;
}

std::string fault(const std::vector<std::pair<SettingId, std::string>>& values) {
  auto options = of_two_devices();
  const auto status = apply_live_settings(config_of(values), options);
  return status ? "none" : status.error().message;
}

TEST(ServeSettings, HaveTheDefaultsOfTheParts) {
  auto options = of_two_devices();
  ASSERT_TRUE(apply_live_settings(config_of({}), options));
  const ServeOptions plain;
  EXPECT_EQ(options.dispatch.strategy, Strategy::Auto);
  EXPECT_EQ(options.dispatch.memory_threshold, plain.dispatch.memory_threshold);
  EXPECT_EQ(options.dispatch.batch_time_most, plain.dispatch.batch_time_most);
  EXPECT_EQ(options.admission.queue_budget, plain.admission.queue_budget);
  EXPECT_EQ(options.admission.queued_tokens_most, plain.admission.queued_tokens_most);
  EXPECT_EQ(options.admission.queued_texts_most, plain.admission.queued_texts_most);
  EXPECT_EQ(options.replies_waiting_most, plain.replies_waiting_most);
  EXPECT_EQ(options.texts_most, plain.texts_most);
  EXPECT_EQ(options.auto_truncate, plain.auto_truncate);
  EXPECT_EQ(options.deadline, plain.deadline);
  EXPECT_EQ(options.deadline_most, plain.deadline_most);
  EXPECT_EQ(options.drain_limit, plain.drain_limit);
  EXPECT_EQ(options.canary_limit, plain.canary_limit);
  const auto& cache = plain.cache;
  const auto config = config_of({});
  EXPECT_EQ(config.bytes(SettingId::CacheSize), cache.size_most);
  EXPECT_EQ(config.count(SettingId::CacheEntries), cache.entries_most);
  EXPECT_EQ(config.count(SettingId::ConnectionsMost), plain.http.connections_most);
  EXPECT_EQ(config.bytes(SettingId::MaxBodyBytes), plain.http.limits.body_bytes);
  EXPECT_EQ(config.bytes(SettingId::MemoryMost), plain.http.memory_most);
  EXPECT_EQ(config.is_on(SettingId::PrefixCache), plain.has_prefix_cache);
  EXPECT_EQ(config.count(SettingId::SpeculativeTokens), plain.drafted_tokens_most);
  EXPECT_EQ(config.count(SettingId::MaxNumSeqs), plain.replies_at_once);
  EXPECT_EQ(config.bytes(SettingId::KvCacheSize), plain.kv_cache_bytes);
  EXPECT_EQ(config.time(SettingId::CanaryInterval), plain.canary_period);
  EXPECT_EQ(config.time(SettingId::StatsInterval), plain.stats_interval);
}

TEST(ServeSettings, NameDevicesOfTheServer) {
  auto options = of_two_devices();
  ASSERT_TRUE(
      apply_live_settings(config_of({{SettingId::LoadBalancingStrategy, "task_type"},
                                     {SettingId::TaskTypes, "query=cpu:1;document=cpu:0,cpu:1"}}),
                          options));
  EXPECT_EQ(options.dispatch.pools[0], (std::vector<std::size_t>{1}));
  EXPECT_EQ(options.dispatch.pools[1], (std::vector<std::size_t>{0, 1}));
  EXPECT_TRUE(options.dispatch.pools[2].empty());
  EXPECT_EQ(fault({{SettingId::TaskTypes, "query=cuda:0"}}),
            "--task-types: cuda:0 is none of the server's devices: cpu:0, cpu:1");
  EXPECT_EQ(fault({{SettingId::TaskTypes, "qeury=cpu:0"}}),
            "--task-types: no type of requests: qeury; did you mean query?");
}

TEST(ServeSettings, MustFitTogether) {
  EXPECT_EQ(fault({{SettingId::LoadBalancingStrategy, "expression"}}),
            "--load-balancing-strategy: expression needs the setting placement_expression");
  EXPECT_EQ(fault({{SettingId::LoadBalancingStrategy, "task_type"}}),
            "--load-balancing-strategy: task_type needs the setting task_types");
  EXPECT_EQ(fault({{SettingId::RequestTimeout, "700s"}}),
            "--request-timeout: it must not be above request_timeout_most: 700s and 600s");
  EXPECT_EQ(fault({{SettingId::TlsCert, "/nonexistent/a.pem"}}),
            "--tls-cert: no such file: /nonexistent/a.pem");
  EXPECT_EQ(fault({{SettingId::TlsCert, "/proc/self/stat"}}), "--tls-cert: it needs tls_key, too");
}

TEST(ServeSettings, SayWhatAModelHasThatNamesNoneOfItsOwn) {
  const auto plain = model_defaults(config_of({}));
  EXPECT_EQ(plain.precision, std::nullopt);
  EXPECT_FALSE(plain.wants_own_bits);
  EXPECT_EQ(plain.kv_cache_dtype, KvCacheDtype::Auto);
  const auto named = model_defaults(
      config_of({{SettingId::Precision, "fp32"}, {SettingId::KvCacheDtype, "int8"}}));
  EXPECT_EQ(named.precision, Precision::Fp32);
  EXPECT_EQ(named.kv_cache_dtype, KvCacheDtype::Int8);
  const auto own = model_defaults(config_of({{SettingId::Precision, "own"}}));
  EXPECT_EQ(own.precision, std::nullopt);
  EXPECT_TRUE(own.wants_own_bits);
}

TEST(ServeSettings, BoundWhatClientsMayHold) {
  HttpServerOptions http;
  const auto set = set_listening(config_of({{SettingId::MemoryMost, "16MiB"},
                                            {SettingId::MaxBodyBytes, "1MiB"},
                                            {SettingId::ConnectionsMost, "100"}}),
                                 http);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(http.memory_most, 16U << 20);
  EXPECT_EQ(http.limits.body_bytes, 1U << 20);
  EXPECT_EQ(http.connections_most, 100U);
}

// Of so much seven eighths must be four times a body, which has 16 MiB at most where nothing is
// said: 67,108,864 of 76,695,848.
TEST(ServeSettings, MemoryThatNoWholeBodyFitsIntoIsRefused) {
  const auto refusal = [](const char* memory_most) -> std::string {
    HttpServerOptions http;
    const auto config = load_config({{SettingId::MemoryMost, memory_most}});
    if (!config) return config.error().message;
    const auto set = set_listening(*config, http);
    return set ? "none" : set.error().message;
  };
  EXPECT_EQ(refusal("16MiB"),
            "--memory-most: a body of max_body_bytes takes 67108864 bytes while it is answered, "
            "and an eighth is kept for short requests: expected 76695848 bytes or more");
  EXPECT_EQ(refusal("76695848"), "none");
  for (const char* value : {"16 apples", "-1", "1KiB", "2TiB"}) {
    EXPECT_EQ(refusal(value),
              std::string("--memory-most must be a size such as 64KiB, 256MiB or 1GB, from 1MiB "
                          "to 1TiB: \"") +
                  value + "\"");
  }
}

TEST(LiveServeSettings, ChangeAllOfThemOrNone) {
  const LiveSettings before(config_of({}), of_two_devices());
  const auto after = before.changed({{"queue_budget", "500ms"}, {"log_level", "debug"}});
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->options().admission.queue_budget, std::chrono::milliseconds(500));
  EXPECT_EQ(after->options().log.level, LogLevel::Debug);
  EXPECT_EQ(before.options().log.level, LogLevel::Info);
  const auto json = nlohmann::json::parse(after->json(true));
  EXPECT_EQ(json["queue_budget"]["value"], "500ms");
  EXPECT_EQ(json["queue_budget"]["source"], "request");
  EXPECT_EQ(json["queue_budget"]["is_live"], true);
  EXPECT_EQ(json["listen"]["source"], "default");
  EXPECT_EQ(json["listen"]["is_live"], false);

  const auto wrong = before.changed({{"queue_budget", "500ms"}, {"log_level", "loud"}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message,
            "log_level must be one of debug, info, warning, error, off: \"loud\"");
}

TEST(LiveServeSettings, SayWhatNeedsARestart) {
  const LiveSettings before(config_of({}), of_two_devices());
  const auto fault_of = [&before](const char* name, const char* value) {
    const auto after = before.changed({{name, value}});
    return after ? "none" : after.error().message;
  };
  EXPECT_EQ(fault_of("listen", "0.0.0.0:80"),
            "listen needs a restart: it is 127.0.0.1:8000 and was to become 0.0.0.0:80");
  EXPECT_EQ(fault_of("cache_size", "1GiB"),
            "cache_size needs a restart: it is 256MiB and was to become 1GiB");
  EXPECT_EQ(fault_of("listen", "127.0.0.1:8000"), "none");  // as it is
  EXPECT_EQ(fault_of("queue_bugdet", "1s"),
            "unknown setting: queue_bugdet; did you mean queue_budget?");
  // The body that document 2 sends to POST /multigpu/config.
  const auto theirs = before.changed({{"use_multi_gpu", "true"},
                                      {"gpu_ids", "0,1,2,3"},
                                      {"batch_size_per_gpu", "8"},
                                      {"mixed_precision", "true"}});
  ASSERT_FALSE(theirs);
  EXPECT_EQ(
      theirs.error().message,
      "unknown settings: batch_size_per_gpu (did you mean batch_tokens?), gpu_ids (did you "
      "mean devices?), mixed_precision (did you mean precision?), use_multi_gpu (did you mean "
      "device_count_most?); `muster config` lists those there are");
}

TEST(LiveServeSettings, AreReadAgainFromTheFile) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("muster_live_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  ConfigSources sources;
  sources.working_folder = folder;
  const auto write = [&](const char* text) { std::ofstream(folder / "muster.yaml") << text; };
  write("queue_budget: 3s\n");
  const auto config = Config::load(sources);
  ASSERT_TRUE(config);
  const LiveSettings before(*config, of_two_devices());
  write("queue_budget: 4s\n");
  const auto after = before.reloaded(sources);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->options().admission.queue_budget, std::chrono::seconds(4));
  write("queue_budget: 4s\nlog_dir: /logs\n");
  EXPECT_FALSE(before.reloaded(sources));
  EXPECT_EQ(before.reloaded(sources).error().message,
            "log_dir needs a restart: it is not set and was to become /logs");
  write("queue_budget: soon\n");
  EXPECT_FALSE(before.reloaded(sources));
  std::filesystem::remove_all(folder);
}

TEST(LiveServeSettings, TellNoSecret) {
  const auto config =
      config_of({{SettingId::KeysFile, "/s/keys"}, {SettingId::CacheFile, "/s/cache"}});
  const auto json = nlohmann::json::parse(serve_config_json(config, true));
  EXPECT_EQ(json["keys_file"]["value"], "(set)");
  EXPECT_EQ(json["tls_key"]["value"], nullptr);
  EXPECT_EQ(json["cache_file"]["value"], "/s/cache");
  const auto guarded = nlohmann::json::parse(serve_config_json(config, false));
  EXPECT_EQ(guarded["cache_file"]["value"], "(set)");
  EXPECT_EQ(guarded["cache_file"]["place"], nullptr);
  EXPECT_EQ(guarded["queue_budget"]["value"], "2s");
}

// A request that could name another keys file, or turn the audit log to another place, would be
// worth more than its key; and its error would tell what the server's machine holds.
TEST(LiveServeSettings, NoRequestSetsAPlaceOrWhoIsLetIn) {
  const LiveSettings before(config_of({}), of_two_devices());
  for (const auto& setting : settings()) {
    if (!setting.is_host_only) continue;
    for (const auto* value : {"/etc/passwd", "/no/such/file"}) {
      const auto after = before.changed({{std::string(setting.name), value}});
      ASSERT_FALSE(after) << setting.name;
      const auto& message = after.error().message;
      EXPECT_TRUE(message.starts_with(std::string(setting.name) + " cannot be set over HTTP"))
          << message;
      EXPECT_NE(message.find(flag_of(setting.name)), std::string::npos) << message;
      EXPECT_EQ(message.find(value), std::string::npos) << message;
    }
  }
  for (const auto id : {SettingId::KeysFile, SettingId::TlsCert, SettingId::TlsKey,
                        SettingId::TlsClientCa, SettingId::AuditLog, SettingId::CacheFile}) {
    EXPECT_TRUE(setting_of(id).is_host_only) << setting_of(id).name;
  }
  const auto said = before.changed({{"keys_file", "/k"}}).error().message;
  EXPECT_EQ(said,
            "keys_file cannot be set over HTTP, because it names a place of the server's machine "
            "or says who is let in: change keys_file in the server's configuration file and send "
            "it SIGHUP, or start the server with MUSTER_KEYS_FILE or --keys-file");
}

// The certificate was moved away after the start: a request that changes something else neither
// looks for it nor tells of it.
TEST(LiveServeSettings, ARequestLooksAtNoFile) {
  const LiveSettings before(
      config_of({{SettingId::TlsCert, "/gone/cert.pem"}, {SettingId::TlsKey, "/gone/key.pem"}}),
      of_two_devices());
  const auto after = before.changed({{"queue_budget", "500ms"}});
  EXPECT_TRUE(after) << after.error().message;
}

TEST(LiveServeSettings, SayWhatChanged) {
  const LiveSettings before(config_of({}), of_two_devices());
  const auto after = before.changed({{"queue_budget", "500ms"}, {"log_level", "debug"}});
  ASSERT_TRUE(after);
  EXPECT_EQ(after->changes_since(before),
            "queue_budget from 2s to 500ms, log_level from info to debug");
  EXPECT_EQ(after->changes_since(*after), "");
}

// A line that is lost from the file, and SIGHUP, must not open the server to everybody.
TEST(LiveServeSettings, AServerWithKeysKeepsThemWhenTheFileNamesNoneAnyMore) {
  ConfigSources nothing;
  nothing.working_folder = testing::TempDir() + "/no/such/folder";
  const LiveSettings with_keys(config_of({{SettingId::KeysFile, "/s/keys"}}), of_two_devices());
  const auto after = with_keys.reloaded(nothing);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().message,
            "keys_file is no longer set: the server goes on with the one it has; to run without "
            "keys_file, restart it");
  const LiveSettings with_clients(config_of({{SettingId::TlsClientCa, "/s/ca"}}), of_two_devices());
  EXPECT_FALSE(with_clients.reloaded(nothing));
  const LiveSettings open(config_of({}), of_two_devices());
  EXPECT_TRUE(open.reloaded(nothing));
}

TEST(ServedRecommendation, IsThatOfThePlannerForTheModelAsItIsServed) {
  const ServedModelStatus tiny{.path = MUSTER_SOURCE_DIR "/tests/models/tiny", .length_max = 32};
  auto machine = *parse_machine("sim:2xA10G-24G");
  const auto text = served_recommendation(tiny, machine, 4096);
  ASSERT_TRUE(text) << text.error().message;
  const auto json = nlohmann::json::parse(*text);
  EXPECT_EQ(json["recommended_device"], machine.devices[0].name());
  ASSERT_EQ(json["devices"].size(), 2);
  EXPECT_TRUE(json["devices"][1]["fits"]);
  EXPECT_EQ(json["hardware"][0]["count"], 1) << "every type of GPU holds so little";
  for (auto& device : machine.devices) device.free_bytes = 1;
  const auto full = nlohmann::json::parse(*served_recommendation(tiny, machine, 4096));
  EXPECT_EQ(full["recommended_device"], nullptr);
  EXPECT_TRUE(full["because"].get<std::string>().starts_with("no device holds it whole"));
}

TEST(ServedRecommendation, OfAModelWhoseFilesAreGoneIsAnError) {
  const auto gone = served_recommendation({.path = "/no/such/model", .length_max = 32},
                                          *parse_machine("sim:1xA10G-24G"), 4096);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, ErrorKind::NotFound);
}

}  // namespace
}  // namespace muster
