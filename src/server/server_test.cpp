#include "server/server.h"

#include <cstring>

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
  const std::string body = R"({"input":[5,6,7],"model":"tiny"})";
  const auto raw = post("/v1/embeddings", body, {{"Accept", "application/octet-stream"}});
  EXPECT_EQ(raw.header("X-Embedding-Dim"), "32");
  EXPECT_EQ(raw.header("X-Embedding-Count"), "1");
  ASSERT_EQ(raw.body.size(), 128U);
  float first[2];
  std::memcpy(first, raw.body.data(), sizeof first);
  EXPECT_EQ(first[0], 18.0F);  // 5 + 6 + 7
  EXPECT_EQ(first[1], 3.0F);
  const Json floats = json(post("/v1/embeddings", body));
  EXPECT_EQ(floats["data"][0]["embedding"][0], 18.0);
}

TEST_F(ServerTest, CutVectorsHaveLengthOne) {
  start();
  const Json answer =
      json(post("/v1/embeddings", R"({"input":[3,1],"model":"tiny","dimensions":2})"));
  // [4, 2] of length sqrt(20).
  EXPECT_NEAR(answer["data"][0]["embedding"][0].get<double>(), 0.894427, 1e-6);
  EXPECT_NEAR(answer["data"][0]["embedding"][1].get<double>(), 0.447214, 1e-6);
}

TEST_F(ServerTest, MoreDimensionsThanTheModelHasAreRefusedBeforeAnythingIsComputed) {
  start();
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

TEST_F(ServerTest, NoAnswerHasACorsHeader) {
  start();
  const auto answer = call("GET", "/livez", {{"Origin", "http://example.com"}});
  for (const auto& [name, value] : answer.headers) {
    EXPECT_NE(name.substr(0, 15), "Access-Control-") << name;
  }
}

// SHA-256 of "test-key", by coreutils' sha256sum.
constexpr std::string_view kKeys = R"(keys:
  - name: reader
    sha256: 62af8704764faf8ea82fc61ce9c4c3908b6cb97d463a634e9e587d7c885db0ef
    scopes: [read]
)";

TEST_F(ServerTest, WithKeysEachRouteWantsItsScope) {
  options_.keys_file = folder_ / "keys.yaml";
  std::ofstream(options_.keys_file) << kKeys;
  std::filesystem::permissions(options_.keys_file, std::filesystem::perms::owner_read);
  start();
  EXPECT_EQ(get("/livez").status, 200);
  EXPECT_EQ(get("/openapi.yaml").status, 200);
  const auto refused = get("/v1/devices");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(json(refused)["error"]["code"], "invalid_api_key");
  EXPECT_EQ(refused.header("WWW-Authenticate"), "Bearer");
  const HttpHeaders key{{"Authorization", "Bearer test-key"}};
  EXPECT_EQ(call("GET", "/v1/devices", key).status, 200);
  EXPECT_EQ(call("GET", "/v1/models", key).status, 403);
  EXPECT_EQ(post("/v1/admin/drain", R"({"device":"cpu:0"})", key).status, 403);
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
