#include "cli/serve_log.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

ServeOptions options_on(const std::string& host) {
  ServeOptions options;
  options.http.listen = {.host = host, .port = 0};
  options.devices.resize(2);
  options.devices[0].model = "AMD EPYC 9R14";
  options.devices[1].index = 1;
  return options;
}

ServedModelStatus tiny() {
  return {.name = "tiny",
          .path = "/models/tiny",
          .state = ModelState::Ready,
          .dim = 32,
          .length_max = 64,
          .precision = Precision::Bf16,
          .precision_reason = "measured",
          .equality_class = "0123456789abcdef0123456789abcdef bf16 cpu"};
}

std::string text_of(const ServeFacts& facts) {
  std::string text;
  for (const auto& line : start_lines(facts)) {
    text += std::string(log_level_name(line.level)) + " " + line.text + "\n";
  }
  return text;
}

TEST(ServeLog, BeginsWithWhatAnOperatorAsksFirst) {
  auto options = options_on("127.0.0.1");
  const auto text = text_of({.options = options, .models = {tiny()}, .port = 8000});
  EXPECT_EQ(text.find("info muster "), 0U) << text;
  EXPECT_NE(text.find("info model tiny: vectors of 32, at most 64 tokens, bf16 (measured), files "
                      "0123456789abcdef, from /models/tiny\n"
                      "info devices: cpu:0 (AMD EPYC 9R14), cpu:1\n"
                      "info cache: 256 MiB, at most 1000000 vectors, in memory alone\n"
                      "info no keys: anyone who reaches 127.0.0.1:8000 may ask, and any user of "
                      "this machine may change settings\n"
                      "info listening on http://127.0.0.1:8000\n"
                      "info to try it: curl -s http://127.0.0.1:8000/v1/embeddings -H "
                      "'Content-Type: application/json' -d "
                      R"('{"model":"tiny","input":"a text"}')"
                      "\n"),
            std::string::npos)
      << text;
}

TEST(ServeLog, WarnsOfAGpuThatIsLost) {
  auto options = options_on("127.0.0.1");
  options.lost_gpus = "cuda:0 is lost: GPU is lost (NVML 15); the work goes to cpu:0";
  const auto text = text_of({.options = options, .models = {tiny()}, .port = 8000});
  EXPECT_NE(text.find("\nwarning cuda:0 is lost: GPU is lost (NVML 15); the work goes to cpu:0\n"),
            std::string::npos)
      << text;
}

TEST(ServeLog, WarnsWhereTheWorldMayAsk) {
  auto options = options_on("0.0.0.0");
  const auto open = text_of({.options = options, .models = {tiny()}, .port = 80});
  EXPECT_NE(open.find("warning no keys: anyone who reaches 0.0.0.0:80 may ask; with --keys-file"),
            std::string::npos)
      << open;
  EXPECT_NE(open.find("curl -s http://127.0.0.1:80/"), std::string::npos) << open;
  options.keys_file = "/etc/muster/keys.yaml";
  const auto keyed = text_of({.options = options, .models = {tiny()}, .key_count = 3, .port = 80});
  EXPECT_NE(keyed.find("info keys: 3 in /etc/muster/keys.yaml\n"), std::string::npos) << keyed;
  EXPECT_NE(keyed.find("each key its own"), std::string::npos) << keyed;
  EXPECT_EQ(keyed.find("warning"), std::string::npos) << keyed;
}

TEST(ServeLog, SaysThatASocketAsksForNoCertificate) {
  auto options = options_on("0.0.0.0");
  options.http.tls = TlsOptions{.certificate_file = "/tls/cert.pem",
                                .key_file = "/tls/key.pem",
                                .client_ca_file = "/tls/ca.pem"};
  const std::string of_the_port =
      "info no keys: anyone who reaches 0.0.0.0:443 with a certificate that /tls/ca.pem has signed "
      "may ask";
  const auto port = text_of({.options = options, .models = {tiny()}, .port = 443});
  EXPECT_NE(port.find(of_the_port + "\n"), std::string::npos) << port;
  options.http.unix_socket = UnixSocketOptions{.path = "/run/m.sock", .mode = 0660};
  const auto both = text_of({.options = options, .models = {tiny()}, .port = 443});
  EXPECT_NE(both.find(of_the_port + ", and who may write /run/m.sock (mode 0660) without one\n"),
            std::string::npos)
      << both;
}

TEST(ServeLog, TheSampleAsksAsTheServerWantsIt) {
  auto options = options_on("::");
  options.http.tls = TlsOptions{.certificate_file = "/tls/cert.pem", .key_file = "/tls/key.pem"};
  auto model = tiny();
  model.name = "it's";
  model.task = ModelTask::Rerank;
  EXPECT_EQ(sample_request({.options = options, .models = {model}, .key_count = 1, .port = 443}),
            "curl -s 'https://[::1]:443/v1/rerank' --cacert /tls/cert.pem -H 'Content-Type: "
            R"(application/json' -d '{"model":"it'\''s","query":"a question","documents":["one )"
            R"(text","another"]}' -H "Authorization: Bearer $KEY")");
  options.http.tls->client_ca_file = "/tls/ca.pem";
  EXPECT_NE(sample_request({.options = options, .models = {model}, .port = 443})
                .find(R"( --cert "$CLIENT_CERT" --key "$CLIENT_KEY")"),
            std::string::npos);
}

TEST(StateWatch, SaysWhatChangesOnce) {
  StateWatch watch;
  std::vector<GroupStatus> devices(1);
  devices[0].name = "cpu:0";
  devices[0].state = GroupState::Ready;
  auto model = tiny();
  model.state = ModelState::Loading;
  const auto lines = [&](const std::vector<ServedModelStatus>& models) {
    std::string text;
    for (const auto& line : watch.changes(devices, models)) {
      text += std::string(log_level_name(line.level)) + " " + line.text + "\n";
    }
    return text;
  };
  EXPECT_EQ(lines({model}), "info device cpu:0: ready\ninfo model tiny: loading\n");
  EXPECT_EQ(lines({model}), "");
  devices[0].state = GroupState::Quarantined;
  devices[0].reason = "a wrong canary";
  model.state = ModelState::Ready;
  EXPECT_EQ(lines({model}),
            "warning device cpu:0: quarantined (was ready): a wrong canary\n"
            "info model tiny: ready (was loading)\n");
  EXPECT_EQ(lines({}), "info model tiny: unloaded\n");
  EXPECT_EQ(lines({}), "");
}

TEST(StateWatch, ARestartThatSomebodyAskedForIsNoWarning) {
  StateWatch watch;
  std::vector<GroupStatus> devices(1);
  devices[0].name = "cpu:0";
  devices[0].state = GroupState::Restarting;
  devices[0].is_asked_for = true;
  devices[0].reason = "started again by an operator";
  EXPECT_EQ(watch.changes(devices, {}).at(0).level, LogLevel::Info);
  devices[0].state = GroupState::Ready;
  EXPECT_EQ(watch.changes(devices, {}).at(0).level, LogLevel::Info);
  devices[0].state = GroupState::Restarting;
  devices[0].is_asked_for = false;
  EXPECT_EQ(watch.changes(devices, {}).at(0).level, LogLevel::Warning);
}

}  // namespace
}  // namespace muster
