// The server over real connections. Long because every route is asked of the same fixture.

#include "server/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <future>

#include "base/full_disk_fixture.h"
#include "base/unique_fd.h"
#include "net/connect_fixture.h"
#include "server/api_error.h"
#include "server/server_fixture.h"

namespace muster {
namespace {

using ServerTest = ServerFixture;

TEST_F(ServerTest, AnswersTheRowsOfTheTexts) {
  start();
  const Json tokens = json(post("/v1/tokenize", R"({"input":["one","one two"]})"));
  const Json answer = json(post("/v1/embeddings", R"({"input":["one","one two"],"model":"tiny"})"));
  std::size_t token_count = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto ids = tokens["data"][i]["ids"].get<std::vector<double>>();
    double sum = 0;
    for (const double id : ids) sum += id;
    EXPECT_EQ(answer["data"][i]["embedding"][0], sum);
    EXPECT_EQ(answer["data"][i]["embedding"][1], ids.size());
    token_count += ids.size();
  }
  EXPECT_EQ(answer["data"][0]["embedding"].size(), 32U);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], token_count);
  EXPECT_EQ(answer["model"], "tiny");
}

TEST_F(ServerTest, RawRowsAreThoseOfBase64AndJson) {
  start();
  const std::string body = R"({"input":[2,5,6,7,3],"model":"tiny"})";
  const auto raw = post("/v1/embeddings", body, {{"Accept", "application/octet-stream"}});
  EXPECT_EQ(raw.header("X-Embedding-Dim"), "32");
  EXPECT_EQ(raw.header("X-Embedding-Count"), "1");
  ASSERT_EQ(raw.body.size(), 128U);
  float first[2];
  std::memcpy(first, raw.body.data(), sizeof first);
  EXPECT_EQ(first[0], 23.0F);  // 2 + 5 + 6 + 7 + 3
  EXPECT_EQ(first[1], 5.0F);
  const Json floats = json(post("/v1/embeddings", body));
  EXPECT_EQ(floats["data"][0]["embedding"][0], 23.0);
}

// What langchain-openai sends unless it is told not to: ids of OpenAI's own tokenizer.
TEST_F(ServerTest, TheTokenIdsOfAnotherTokenizerAreRefusedAndThoseOfThisOneTaken) {
  start();
  const auto refused = post("/v1/embeddings", R"({"input":[[15,27,8,71,13]],"model":"tiny"})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(json(refused)["error"]["code"], "invalid_token_ids");
  EXPECT_EQ(message(refused),
            "Invalid 'input': the token ids of a text must begin with 2 and end with 3, which are "
            "the model's special tokens. The ids must be those of this model's own tokenizer; with "
            "langchain-openai set check_embedding_ctx_length=False, so that it sends texts.");
  const Json own = json(post("/v1/tokenize", R"({"input":"some words"})"))["data"][0]["ids"];
  const Json body{{"input", {own}}, {"model", "tiny"}};
  EXPECT_EQ(post("/v1/embeddings", body.dump()).status, 200);
}

TEST_F(ServerTest, CutVectorsHaveLengthOne) {
  start();
  const Json answer =
      json(post("/v1/embeddings", R"({"input":[2,3],"model":"tiny","dimensions":2})"));
  // [5, 2] of length sqrt(29).
  EXPECT_NEAR(answer["data"][0]["embedding"][0].get<double>(), 0.928477, 1e-6);
  EXPECT_NEAR(answer["data"][0]["embedding"][1].get<double>(), 0.371391, 1e-6);
}

TEST_F(ServerTest, MoreDimensionsThanTheModelHasAreRefusedBeforeAnythingIsComputed) {
  start();
  EXPECT_EQ(message(post("/v1/embeddings", R"({"input":"a","model":"tiny","dimensions":0})")),
            "Invalid 'dimensions': the model has 32, so expected an integer from 1 to 32, but got "
            "0.");
  const auto refused = post("/v1/embeddings", R"({"input":"a","model":"tiny","dimensions":33})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(message(refused),
            "Invalid 'dimensions': the model has 32, so expected an integer from 1 to 32, but got "
            "33.");
  EXPECT_EQ(json(get("/v1/models"))["data"][0]["texts"], 0);
}

TEST_F(ServerTest, FaultsOfARequestAreToldAsOpenAisClientsKnowThem) {
  start();
  EXPECT_EQ(post("/v1/embeddings", "{").status, 400);
  EXPECT_EQ(post("/v1/embeddings", R"({"input":[],"model":"tiny"})").status, 400);
  EXPECT_EQ(post("/v1/embeddings", R"({"input":["","","","",""],"model":"tiny"})").status, 400);
  const auto unknown = post("/v1/embeddings", R"({"input":"a","model":"tinny"})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(json(unknown)["error"]["code"], "model_not_found");
  const auto ids = post("/v1/embeddings", R"({"input":[100000000],"model":"tiny"})");
  EXPECT_EQ(ids.status, 400);
  EXPECT_NE(message(ids).find("check_embedding_ctx_length=False"), std::string::npos);
  EXPECT_EQ(call("POST", "/v1/embeddings", {{"Content-Type", "text/plain"}}, "{}").status, 415);
  const auto late =
      post("/v1/embeddings", R"({"input":"a","model":"tiny"})", {{"X-Request-Timeout-Ms", "soon"}});
  EXPECT_EQ(late.status, 400);
}

TEST_F(ServerTest, WhatNoRouteTakesIsToldTheNearest) {
  start();
  const auto missing = get("/v1/embedings");
  EXPECT_EQ(missing.status, 404);
  EXPECT_NE(message(missing).find("did you mean /v1/embeddings?"), std::string::npos);
  const auto wrong = get("/v1/embeddings");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("Allow"), "POST");
  EXPECT_TRUE(missing.header("X-Request-Id"));
}

TEST_F(ServerTest, ARequestKeepsItsId) {
  start();
  EXPECT_EQ(call("GET", "/livez", {{"X-Request-Id", "mine-7"}}).header("X-Request-Id"), "mine-7");
  EXPECT_NE(get("/livez").header("X-Request-Id"), get("/livez").header("X-Request-Id"));
}

TEST_F(ServerTest, ABodyOverTheLimitIsAnErrorInJson) {
  options_.http.limits.body_bytes = 1000;
  start();
  const auto answer = post("/v1/embeddings", std::string(2000, ' '));
  EXPECT_EQ(answer.status, 413);
  EXPECT_FALSE(message(answer).empty());
}

TEST_F(ServerTest, ModelsAreListedLoadedAndUnloaded) {
  ::setenv("ZERO_WORKER", "dim=32", 1);  // the same row whatever the model is called
  start();
  EXPECT_EQ(json(get("/v1/models"))["data"][0]["id"], "tiny");
  EXPECT_EQ(json(get("/v1/models/tiny"))["object"], "model");
  EXPECT_EQ(get("/v1/models/other").status, 404);
  const Json wanted{{"model", options_.models[0].model}, {"name", "org/second"}};
  const auto loaded = post("/v1/models/load", wanted.dump());
  EXPECT_EQ(loaded.status, 200) << loaded.body;
  EXPECT_EQ(json(get("/v1/models/org/second"))["state"], "ready");
  EXPECT_EQ(post("/v1/embeddings", R"({"input":"a","model":"org/second"})").status, 200);
  EXPECT_EQ(post("/v1/models/unload", R"({"model":"org/second"})").status, 200);
  EXPECT_EQ(post("/v1/embeddings", R"({"input":"a","model":"org/second"})").status, 404);
  EXPECT_EQ(post("/v1/models/unload", R"({"model":"org/second"})").status, 404);
  EXPECT_EQ(post("/v1/models/load", R"({"model":"/no/such/folder"})").status, 404);
  EXPECT_EQ(post("/v1/models/load", R"({"model":"a","precision":"int4"})").status, 400);
}

TEST_F(ServerTest, HealthAsksEachWorker) {
  start_whole();
  const auto health = get("/health");
  EXPECT_EQ(health.status, 200) << health.body;
  EXPECT_EQ(json(health)["status"], "ok");
  ASSERT_EQ(json(health)["workers"].size(), 2U);
  EXPECT_EQ(json(health)["workers"][1]["device"], "cpu:1");
  EXPECT_EQ(json(health)["workers"][1]["is_well"], true);
}

// One model that works makes a device ready: whoever looks is told of the other one all the same.
TEST_F(ServerTest, AReadyDeviceThatLacksAModelNamesIt) {
  ::setenv("ZERO_WORKER", "dim=32 fail_model=2", 1);  // the same row whatever the model is called
  options_.models.push_back({.name = "second", .model = options_.models[0].model});
  start();
  const auto device = [&] { return json(get("/v1/devices"))["devices"][1]; };
  const auto is_settled = [&] {
    auto now = device();
    return now["models"][0]["state"] == "ready" && now["models"][1]["state"] == "failed";
  };
  while (!is_settled()) std::this_thread::yield();
  EXPECT_EQ(device()["state"], "ready");
  EXPECT_EQ(device()["reason"], "second cannot be loaded: told not to load");
  EXPECT_EQ(get("/readyz").status, 200) << "it serves the first one";
  const auto health = get("/health");
  EXPECT_EQ(health.status, 503) << health.body;
  const auto worker = json(health)["workers"][1];
  EXPECT_EQ(worker["is_well"], false);
  EXPECT_EQ(worker["reason"], "second cannot be loaded: told not to load");
  EXPECT_EQ(json(get("/multigpu/health"))["status"], "degraded");
  const auto metrics = get("/metrics").body;
  for (const auto* line :
       {R"(muster_device_state{device="cpu:1",state="ready"} 1)",
        R"(muster_device_model_state{model="tiny",device="cpu:1",state="ready"} 1)",
        R"(muster_device_model_state{model="second",device="cpu:1",state="failed"} 1)"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line << " is not in\n" << metrics;
  }
}

TEST_F(ServerTest, ADrainedDeviceRestsAndComesBack) {
  start_whole();
  EXPECT_EQ(post("/v1/admin/drain", R"({"device":"cpu:1"})").status, 200);
  const auto state = [&] { return json(get("/v1/devices"))["devices"][1]["state"]; };
  while (state() != "drained") std::this_thread::yield();
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(json(get("/health"))["workers"][1]["is_well"], nullptr);
  EXPECT_EQ(post("/v1/embeddings", R"({"input":"a","model":"tiny"})").status, 200);
  EXPECT_EQ(post("/v1/admin/resume", R"({"device":"cpu:1"})").status, 200);
  while (state() != "ready") std::this_thread::yield();
  const auto unknown = post("/v1/admin/restart", R"({"device":"cpu:7"})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(message(unknown).find("did you mean 'cpu:"), std::string::npos);
}

TEST_F(ServerTest, WhenAllDevicesAreDrainedCallsAreRefusedAtOnce) {
  start_whole();
  const std::string known = R"({"input":"known","model":"tiny"})";
  EXPECT_EQ(post("/v1/embeddings", known).status, 200);
  for (const char* device : {"cpu:0", "cpu:1"}) {
    EXPECT_EQ(post("/v1/admin/drain", Json{{"device", device}}.dump()).status, 200);
  }
  const auto states = [&] {
    const auto devices = json(get("/v1/devices"))["devices"];
    return devices[0]["state"].get<std::string>() + " " + devices[1]["state"].get<std::string>();
  };
  while (states() != "drained drained") std::this_thread::yield();
  const auto refused = post("/v1/embeddings", R"({"input":"a","model":"tiny"})");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(message(refused), "every device is drained");
  EXPECT_TRUE(refused.header("Retry-After"));
  EXPECT_EQ(post("/v1/embeddings", known).status, 200) << "cached: it needs no device";
  EXPECT_EQ(json(get("/v1/models/tiny"))["state"], "drained");
  EXPECT_EQ(json(get("/readyz"))["reason"], "tiny: every device is drained");
  const Json another{{"model", options_.models[0].model}, {"name", "another"}};
  const auto not_loaded = post("/v1/models/load", another.dump());
  EXPECT_EQ(not_loaded.status, 503) << not_loaded.body;
  EXPECT_EQ(message(not_loaded), "every device is drained");

  EXPECT_EQ(post("/v1/admin/resume", R"({"device":"cpu:1"})").status, 200);
  while (json(get("/v1/models/tiny"))["state"] != "ready") std::this_thread::yield();
  EXPECT_EQ(post("/v1/embeddings", R"({"input":"a","model":"tiny"})").status, 200);
}

TEST_F(ServerTest, AdministrationIsForThisMachineAndForJsonAlone) {
  start();
  const std::string body = R"({"device":"cpu:1"})";
  EXPECT_EQ(call("POST", "/v1/admin/resume", {}, body).status, 415);
  EXPECT_EQ(post("/v1/admin/resume", body).status, 200);
}

TEST_F(ServerTest, ADrainingServerSaysSoAndWhenToComeAgain) {
  start();
  loop_.post([this] { service_->drain([] {}); });
  while (get("/readyz").status == 200) std::this_thread::yield();
  const auto unready = get("/readyz");
  EXPECT_EQ(unready.status, 503);
  EXPECT_TRUE(unready.header("Retry-After"));
  EXPECT_EQ(json(unready)["reason"], "the server is shutting down");
  const auto refused = post("/v1/embeddings", R"({"input":"a","model":"tiny"})");
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.header("Retry-After"));
  EXPECT_EQ(get("/livez").status, 200);
}

// Sends `bytes` and reads until `mark` has come or the server closes.
std::string ask_on(const UniqueFd& socket, std::string_view bytes, std::string_view mark) {
  EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  std::string text;
  std::array<char, 4096> piece{};
  while (mark.empty() || text.find(mark) == std::string::npos) {
    pollfd waiting{socket.get(), POLLIN, 0};
    constexpr int kWaitMs = 20'000;  // only ever waited for when a test fails
    if (::poll(&waiting, 1, kWaitMs) <= 0) return text + "<nothing came>";
    const auto size = ::recv(socket.get(), piece.data(), piece.size(), 0);
    if (size <= 0) return text + "<closed>";
    text.append(piece.data(), static_cast<std::size_t>(size));
  }
  return text;
}

// The same on a connection of its own.
std::string ask_raw(std::uint16_t port, std::string_view bytes, std::string_view mark) {
  return ask_on(connect_to(port), bytes, mark);
}

std::string head_of(std::string_view target, std::string_view more) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\nExpect: 100-continue\r\n" +
         std::string(more) + "\r\n";
}

// SHA-256 of "test-key", by coreutils' sha256sum.
constexpr std::string_view kKeys = R"(keys:
  - name: reader
    sha256: 62af8704764faf8ea82fc61ce9c4c3908b6cb97d463a634e9e587d7c885db0ef
    scopes: [read]
)";

// The reader's key shows the workers; without one, or with a wrong one, there is the verdict alone.
TEST_F(ServerTest, AProbeOfHealthNeedsNoKeyAndLearnsNothingElse) {
  use_keys(kKeys);
  start();
  const auto with_key = [&] {
    return call("GET", "/health", {{"Authorization", "Bearer test-key"}});
  };
  while (with_key().status != 200) std::this_thread::yield();
  EXPECT_EQ(json(with_key())["workers"].size(), 2U);
  for (const auto& headers : {HttpHeaders{}, HttpHeaders{{"Authorization", "Bearer of nobody"}}}) {
    const auto answer = call("GET", "/health", headers);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(json(answer), Json({{"status", "ok"}})) << answer.body;
  }
  EXPECT_EQ(get("/metrics").status, 401) << "the other routes want one as before";
}

TEST_F(ServerTest, WhyAServerIsNotReadyIsForThoseWhoMayRead) {
  std::string keys(kKeys);
  keys.replace(keys.find("[read]"), 6, "[read, admin]");
  use_keys(keys);
  start();
  const HttpHeaders key{{"Authorization", "Bearer test-key"}};
  for (const char* device : {"cpu:0", "cpu:1"}) {
    EXPECT_EQ(post("/v1/admin/drain", Json{{"device", device}}.dump(), key).status, 200);
  }
  while (get("/readyz").status == 200) std::this_thread::yield();
  EXPECT_EQ(json(get("/readyz"))["reason"], "a model is not ready");
  EXPECT_EQ(json(call("GET", "/readyz", key))["reason"], "tiny: every device is drained");
}

TEST_F(ServerTest, WhatTheHeadTellsIsRefusedBeforeTheBody) {
  use_keys(kKeys);
  options_.audit_file = folder_ / "audit.jsonl";
  start();
  struct Case {
    std::string_view target, headers;
    int status;
  };
  for (const auto& [target, headers, status] :
       {Case{"/nowhere", "", 404}, Case{"/livez", "", 405}, Case{"/v1/embeddings", "", 401},
        Case{"/v1/embeddings", "Authorization: Bearer test-key\r\n", 403}}) {
    const auto text = ask_raw(server_->port(), head_of(target, headers), "");
    EXPECT_TRUE(text.starts_with("HTTP/1.1 " + std::to_string(status) + " ")) << text;
    EXPECT_NE(text.find("\r\nConnection: close\r\n"), std::string::npos) << text;
    EXPECT_NE(text.find("\r\nX-Request-Id: "), std::string::npos) << text;
  }
  ask_raw(server_->port(), "nonsense\r\n\r\n", "");
  loop_.stop();
  thread_.join();
  server_.reset();
  std::ifstream file(options_.audit_file);
  std::map<int, Json> lines;
  for (std::string line; std::getline(file, line);) {
    auto entry = Json::parse(line);
    const int status = entry["status"];
    lines[status] = std::move(entry);
  }
  for (const int status : {400, 401, 403, 404, 405}) {
    ASSERT_TRUE(lines.contains(status)) << status;
    EXPECT_TRUE(lines[status].contains("peer")) << status;
    EXPECT_TRUE(lines[status].contains("reason")) << status;
  }
  EXPECT_EQ(lines[403]["key"], "reader");
  EXPECT_EQ(lines[404]["path"], "/nowhere");
}

TEST_F(ServerTest, WhatIsNeverARequestIsInTheAuditLog) {
  options_.audit_file = folder_ / "audit.jsonl";
  options_.http.request_limit = std::chrono::seconds(2);
  start();
  const std::string long_head =
      "GET /livez HTTP/1.1\r\nHost: x\r\nX: " + std::string(100 << 10, 'x') + "\r\n\r\n";
  EXPECT_TRUE(ask_raw(server_->port(), long_head, "").starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(
      ask_raw(server_->port(), "GET /livez HTTP/1.1\r\nHost:", "").starts_with("HTTP/1.1 408 "));
  const auto long_body = head_of("/v1/models/load", "Content-Type: application/json\r\n");
  EXPECT_TRUE(ask_raw(server_->port(), long_body, "").starts_with("HTTP/1.1 413 "));
  loop_.stop();
  thread_.join();
  server_.reset();
  std::ifstream file(options_.audit_file);
  std::map<int, Json> lines;
  for (std::string line; std::getline(file, line);) {
    auto entry = Json::parse(line);
    const int status = entry["status"];
    lines[status] = std::move(entry);
  }
  for (const int status : {408, 413, 431}) {
    ASSERT_TRUE(lines.contains(status)) << status;
    EXPECT_TRUE(lines[status].value("peer", "").starts_with("127.0.0.1:")) << status;
    EXPECT_TRUE(lines[status].contains("request_id")) << status;
    EXPECT_TRUE(lines[status].contains("reason")) << status;
  }
  EXPECT_EQ(lines[413]["path"], "/v1/models/load");
}

TEST_F(ServerTest, WithoutKeysSettingsAreNotShownUnderANameOfADomain) {
  start();
  const std::string body = R"({"device":"cpu:1"})";
  const std::string posted =
      "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  struct Case {
    std::string asked, rest;
  };
  for (const auto& [asked, rest] :
       {Case{"GET /v1/config", "\r\n"}, Case{"GET /multigpu/config", "\r\n"},
        Case{"POST /v1/admin/resume", posted}}) {
    const auto ask = [this, asked = asked, rest = rest](const std::string& host) {
      return ask_raw(server_->port(),
                     asked + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + rest, "");
    };
    EXPECT_TRUE(ask("evil.example.com").starts_with("HTTP/1.1 403 ")) << asked;
    EXPECT_TRUE(ask("127.0.0.1").starts_with("HTTP/1.1 200 ")) << asked;
  }
}

// Of one mebibyte, one request may take seven eighths.
TEST_F(ServerTest, WhatIsComputedForARequestIsHeldUntilItsAnswer) {
  options_.http.memory_most = 1 << 20;
  options_.texts_most = 2048;
  start();
  struct Case {
    const char* path;
    std::string before_texts;
  };
  for (const auto& [path, before_texts] : {Case{"/v1/embeddings", R"({"model":"tiny","input":)"},
                                           Case{"/tokenize", R"({"inputs":)"}}) {
    const auto ask = [this, path = path, before_texts = before_texts](std::size_t text_count) {
      return post(path,
                  before_texts + Json(std::vector<std::string>(text_count, "a")).dump() + "}");
    };
    // 992 bytes a text for its row, 1,952 for its tokens.
    const auto refused = ask(2048);
    EXPECT_EQ(refused.status, 503) << path;
    EXPECT_EQ(refused.header("Retry-After"), "1") << path;
    EXPECT_EQ(ask(200).status, 200) << path;
    EXPECT_NE(get("/metrics").body.find("\nmuster_http_memory_bytes 0\n"), std::string::npos)
        << path;
  }
}

TEST_F(ServerTest, ARouteThatComputesNothingTakesNoLongBody) {
  start();
  const auto text = ask_raw(server_->port(),
                            head_of("/v1/models/load", "Content-Type: application/json\r\n"), "");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 413 ")) << text;
}

TEST_F(ServerTest, WhileItEndsWorkIsToldToComeAgainAndProbesAreAnswered) {
  start();
  std::promise<void> begun;
  std::promise<void> sent;
  loop_.post([&] {
    server_->begin_drain([&] { sent.set_value(); });
    begun.set_value();
  });
  begun.get_future().wait();
  const auto refused = post("/v1/embeddings", R"({"input":"a","model":"tiny"})");
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.header("Retry-After"));
  EXPECT_EQ(refused.header("Connection"), "close");
  EXPECT_EQ(get("/livez").status, 200);
  EXPECT_EQ(sent.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST_F(ServerTest, WhatWasComputedTooLateIsNotAskedForAgain) {
  const auto response = error_response(api_error(504, "late"));
  EXPECT_EQ(find_header(response.headers, "x-should-retry"), "false");
  EXPECT_FALSE(find_header(error_response(api_error(503, "")).headers, "x-should-retry"));
}

TEST_F(ServerTest, NoAnswerHasACorsHeader) {
  start();
  const auto answer = call("GET", "/livez", {{"Origin", "http://example.com"}});
  for (const auto& [name, value] : answer.headers) {
    EXPECT_NE(name.substr(0, 15), "Access-Control-") << name;
  }
}

TEST_F(ServerTest, WithKeysEachRouteWantsItsScope) {
  use_keys(kKeys);
  start();
  EXPECT_EQ(get("/livez").status, 200);
  EXPECT_EQ(get("/openapi.yaml").status, 200);
  const auto refused = get("/v1/devices");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(json(refused)["error"]["code"], "invalid_api_key");
  EXPECT_EQ(refused.header("WWW-Authenticate"), "Bearer");
  const HttpHeaders key{{"Authorization", "Bearer test-key"}};
  EXPECT_EQ(call("GET", "/v1/devices", key).status, 200);
  const auto lacking = call("GET", "/v1/models", key);
  EXPECT_EQ(lacking.status, 403);
  EXPECT_EQ(message(lacking), "The key lacks the scope embed: it has read");
  EXPECT_EQ(post("/v1/admin/drain", R"({"device":"cpu:0"})", key).status, 403);
}

TEST_F(ServerTest, AKeyThatIsWithdrawnWhileTheBodyComesIsRefused) {
  std::string keys(kKeys);
  keys.replace(keys.find("[read]"), 6, "[embed]");
  use_keys(keys);
  start();
  const auto client = connect_to(server_->port());
  const auto go_on =
      ask_on(client,
             "POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close"
             "\r\nAuthorization: Bearer test-key\r\nContent-Length: 28\r\n\r\n",
             "\r\n\r\n");
  EXPECT_TRUE(go_on.starts_with("HTTP/1.1 100 ")) << go_on;
  keys.replace(keys.find("62af"), 4, "0000");
  use_keys(keys, "other.yaml");
  std::promise<bool> reloaded;
  loop_.post([&] { reloaded.set_value(static_cast<bool>(server_->reload(options_))); });
  EXPECT_TRUE(reloaded.get_future().get());
  const auto answer = ask_on(client, R"({"input":"a","model":"tiny"})", "");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 401 ")) << answer;
}

// Nothing is said of a path but that there is no model to serve, whatever lies there.
TEST_F(ServerTest, TheErrorOfALoadDoesNotTellWhatLiesAtAPath) {
  std::vector<std::string> lines;
  hooks_.log = [&lines](const LogLine& line) { lines.emplace_back(line.message); };
  std::filesystem::create_directories(folder_ / "secret");
  std::ofstream(folder_ / "secret" / "config.json") << "{\"password\": hunter2";
  start();
  const auto load = [this](const std::string& path) {
    return post("/v1/models/load", Json{{"model", path}}.dump());
  };
  const auto missing = load("/no/such/folder");
  EXPECT_EQ(missing.status, 404);
  for (const std::string& path :
       {folder_.string(), (folder_ / "secret").string(), std::string("/etc/passwd")}) {
    const auto answer = load(path);
    EXPECT_EQ(answer.status, missing.status) << path;
    EXPECT_EQ(answer.body, missing.body) << path;
  }
  const auto said = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("not loaded") != std::string::npos &&
           line.find("config.json") != std::string::npos;
  });
  EXPECT_NE(said, lines.end()) << "the log tells the operator";
}

TEST_F(ServerTest, APathIsShownToAdministratorsAlone) {
  hooks_.config_json = [](bool shows_places) {
    return Json{{"shows_places", shows_places}}.dump();
  };
  start();
  EXPECT_EQ(json(get("/v1/config"))["shows_places"], true);
  const auto foreign = call("GET", "/v1/config", {{"X-Real-IP", "203.0.113.7"}});
  EXPECT_EQ(json(foreign)["shows_places"], false);
  EXPECT_EQ(json(get("/v1/models"))["data"][0]["path"], options_.models[0].model);
  const auto forwarded = call("GET", "/v1/models", {{"X-Forwarded-For", "203.0.113.7"}});
  EXPECT_EQ(forwarded.status, 200);
  EXPECT_FALSE(json(forwarded)["data"][0].contains("path"));
  EXPECT_FALSE(json(call("GET", "/v1/models/tiny", {{"Via", "1.1 proxy"}})).contains("path"));
}

TEST_F(ServerTest, AKeyThatEmbedsIsShownNoPath) {
  std::string keys(kKeys);
  keys.replace(keys.find("[read]"), 6, "[embed]");
  use_keys(keys);
  start();
  const auto models = call("GET", "/v1/models", {{"Authorization", "Bearer test-key"}});
  EXPECT_EQ(models.status, 200) << models.body;
  EXPECT_EQ(json(models)["data"][0]["id"], "tiny");
  EXPECT_FALSE(json(models)["data"][0].contains("path"));
}

TEST_F(ServerTest, ARefusalIsInTheLogAndAnAnswerIsNot) {
  std::vector<std::string> lines;
  hooks_.log = [&lines](const LogLine& line) {
    lines.push_back(std::string(line.message) + " [" + std::string(line.request_id) + "]");
  };
  std::string keys(kKeys);
  keys.replace(keys.find("[read]"), 6, "[embed]\n    requests_per_minute: 1");
  use_keys(keys);
  start();
  const auto ask = [this](const char* id, const char* body) {
    return post("/v1/embeddings", body,
                {{"Authorization", "Bearer test-key"}, {"X-Request-Id", id}})
        .status;
  };
  EXPECT_EQ(ask("r1", R"({"input":"a","model":"tiny"})"), 200);
  EXPECT_EQ(ask("r2", R"({"input":"b","model":"tiny"})"), 429);
  EXPECT_EQ(ask("r3", R"({"input":"c","model":"tinny"})"), 404);
  loop_.stop();
  thread_.join();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("refused with 429 ")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with(": POST /v1/embeddings, key reader [r2]")) << lines[0];
}

TEST_F(ServerTest, AModelIsNotLoadedUnderANameThatIsNone) {
  start();
  for (const std::string name : {"load", "..", "a\r\nb", "a//b"}) {
    const Json wanted{{"model", options_.models[0].model}, {"name", name}};
    const auto answer = post("/v1/models/load", wanted.dump());
    EXPECT_EQ(answer.status, 400) << name;
    EXPECT_EQ(json(answer)["error"]["param"], "name");
  }
  const Json again{{"model", options_.models[0].model}, {"name", "tiny"}};
  EXPECT_EQ(message(post("/v1/models/load", again.dump())),
            "Invalid 'name': a model of that name is there: tiny.");
}

TEST_F(ServerTest, AnAdministratorsDeedsAreInTheLogWithTheirRequest) {
  std::vector<std::string> lines;
  hooks_.log = [&lines](const LogLine& line) {
    lines.push_back(std::string(line.message) + " [" + std::string(line.request_id) + "]");
  };
  start_whole();
  EXPECT_EQ(post("/v1/admin/drain", R"({"device":"cpu:1"})", {{"X-Request-Id", "r1"}}).status, 200);
  EXPECT_EQ(post("/v1/admin/resume", R"({"device":"cpu:1"})", {{"X-Request-Id", "r2"}}).status,
            200);
  EXPECT_EQ(post("/v1/admin/restart", R"({"device":"cpu:1"})", {{"X-Request-Id", "r3"}}).status,
            200);
  loop_.stop();
  thread_.join();
  ASSERT_EQ(lines.size(), 3);
  EXPECT_TRUE(lines[0].starts_with("cpu:1: drain, asked for by 127.0.0.1:")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with(" [r1]")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("cpu:1: resume, asked for by ")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with("cpu:1: restart, asked for by ")) << lines[2];
  EXPECT_TRUE(lines[2].ends_with(" [r3]")) << lines[2];
}

// An answer for which there is no room becomes a 503, whatever the route had answered.
TEST_F(ServerTest, WhatWasSentIsCounted) {
  options_.audit_file = folder_ / "audit.jsonl";
  options_.http.memory_most = 40 << 10;  // less than the description of the routes takes
  start();
  const auto answer = call("GET", "/openapi.yaml", {{"X-Request-Id", "r1"}});
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.header("X-Request-Id"), "r1");
  const auto metrics = get("/metrics").body;
  const auto counted = [&](const std::string& status) {
    return metrics.find(
        R"(muster_http_requests_total{route="/openapi.yaml",method="GET",status=")" + status);
  };
  EXPECT_NE(counted("503"), std::string::npos) << metrics;
  EXPECT_EQ(counted("200"), std::string::npos);
  loop_.stop();
  thread_.join();
  server_.reset();
  std::ifstream file(options_.audit_file);
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.find("/openapi.yaml") != std::string::npos) lines.push_back(Json::parse(line));
  }
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["status"], 503);
  EXPECT_EQ(lines[0]["request_id"], "r1");
  EXPECT_EQ(lines[0]["reason"], "unavailable");
  EXPECT_EQ(lines[0]["bytes_out"], answer.body.size());
}

TEST_F(ServerTest, LostLinesAreToldOfOnceAndCounted) {
  options_.audit_file = "/dev/full";
  std::promise<std::string> told;
  hooks_.log = [&told](const LogLine& line) {
    if (line.message.find("audit log") == std::string_view::npos) return;
    EXPECT_EQ(line.level, LogLevel::Error);
    told.set_value(std::string(line.message));
  };
  hooks_.log_lost_count = [] { return std::uint64_t{3}; };
  start();
  auto line = told.get_future();
  ASSERT_EQ(line.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(line.get(),
            "lines of the audit log are lost: /dev/full: cannot write: No space left on device");
  const auto metrics = get("/metrics").body;
  loop_.stop();
  thread_.join();
  for (const std::string part :
       {"muster_audit_lines_total{outcome=\"written\"} 0\n", "\nmuster_audit_failing 1\n",
        "\nmuster_log_lost_lines_total 3\n"}) {
    EXPECT_NE(metrics.find(part), std::string::npos) << part << metrics;
  }
  const std::string lost = "muster_audit_lines_total{outcome=\"lost\"} ";
  const auto at = metrics.find(lost);
  ASSERT_NE(at, std::string::npos) << metrics;
  EXPECT_GE(std::stoi(metrics.substr(at + lost.size())), 1) << "those of /readyz";
}

TEST_F(ServerTest, ACacheFileThatIsBehindIsCounted) {
  options_.cache.file = folder_ / "vectors";
  start();
  const auto whole = get("/metrics").body;
  const auto answer = [this] {
    const FullDisk disk(1);
    return post("/v1/embeddings", R"({"input":["a","b"],"model":"tiny"})");
  }();
  EXPECT_EQ(answer.status, 200) << answer.body;
  const auto behind = get("/metrics").body;
  EXPECT_NE(whole.find("\nmuster_cache_file_ok 1\n"), std::string::npos) << whole;
  EXPECT_NE(whole.find("\nmuster_cache_file_failures_total 0\n"), std::string::npos) << whole;
  EXPECT_NE(behind.find("\nmuster_cache_file_ok 0\n"), std::string::npos) << behind;
  EXPECT_NE(behind.find("\nmuster_cache_file_failures_total 1\n"), std::string::npos) << behind;
}

TEST_F(ServerTest, TheAuditLogHasEveryRequestAndNoText) {
  options_.audit_file = folder_ / "audit.jsonl";
  start();
  EXPECT_EQ(post("/v1/embeddings", R"({"input":"secretive","model":"tiny"})").status, 200);
  EXPECT_EQ(post("/v1/embeddings", R"({"input":"secretive","model":"none"})").status, 404);
  loop_.stop();
  thread_.join();
  server_.reset();
  std::ifstream file(options_.audit_file);
  const std::string lines((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(lines.find("/v1/embeddings"), std::string::npos);
  EXPECT_NE(lines.find("model_not_found"), std::string::npos);
  EXPECT_EQ(lines.find("secretive"), std::string::npos);
}

}  // namespace
}  // namespace muster
