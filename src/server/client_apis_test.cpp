// The routes of other servers' clients, on a whole server.

#include <cmath>
#include <numeric>

#include "server/server_fixture.h"

namespace muster {
namespace {

using Floats = std::vector<float>;

class ClientApisTest : public ServerFixture {
 protected:
  /// Sum and count of a text's ids: what its row begins with.
  std::pair<double, double> echo_of(const std::string& text, const std::string& prompt = {}) {
    Json body{{"input", text}};
    if (!prompt.empty()) body["prompt_name"] = prompt;
    const Json ids = json(post("/v1/tokenize", body.dump()))["data"][0]["ids"];
    double sum = 0;
    for (const auto& id : ids) sum += id.get<double>();
    return {sum, static_cast<double>(ids.size())};
  }

  /// A text's row as the native route gives it.
  Floats own_row(const std::string& text) {
    const Json body{{"input", text}, {"model", "tiny"}};
    return json(post("/v1/embeddings", body.dump()))["data"][0]["embedding"].get<Floats>();
  }

  /// The same of length 1.
  Floats unit_row(const std::string& text) {
    Floats row = own_row(text);
    double square_sum = 0;
    for (const double value : row) square_sum += value * value;
    for (float& value : row) value = static_cast<float>(value * (1 / std::sqrt(square_sum)));
    return row;
  }

  /// tiny as a cross-encoder, whose raw score is the sum of the pair's ids.
  void serve_reranker() {
    const auto folder = folder_ / "reranker";
    std::filesystem::copy(options_.models[0].model, folder,
                          std::filesystem::copy_options::recursive);
    std::filesystem::permissions(folder / "config.json", std::filesystem::perms::owner_all);
    std::ifstream file(folder / "config.json");
    Json config = Json::parse(file);
    config["architectures"] = {"BertForSequenceClassification"};
    config["id2label"] = {{"0", "LABEL_0"}};
    std::ofstream(folder / "config.json") << config.dump();
    std::filesystem::remove(folder / "modules.json");
    options_.models.push_back({.name = "ranker", .model = folder.string()});
  }
};

// What Ollama's command line asks before all else: HEAD /.
TEST_F(ClientApisTest, TheRootSaysThatAServerIsThere) {
  start_unready();
  EXPECT_EQ(get("/").body, "muster is running\n");
  EXPECT_EQ(call("HEAD", "/", {}).status, 200);
}

TEST_F(ClientApisTest, TeiEmbedsTextsAndIdsWithLengthOne) {
  start();
  const auto answer = post("/embed", R"({"inputs":["one","two words"]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(json(answer).get<std::vector<Floats>>(),
            (std::vector<Floats>{unit_row("one"), unit_row("two words")}));
  EXPECT_EQ(post("/", R"({"inputs":"one"})").body, post("/embed", R"({"inputs":"one"})").body);
  const Json ids = json(post("/v1/tokenize", R"({"input":"one"})"))["data"][0]["ids"];
  EXPECT_EQ(json(post("/embed", Json{{"inputs", {ids}}}.dump())).get<std::vector<Floats>>()[0],
            unit_row("one"));
}

TEST_F(ClientApisTest, TeiGivesTheModelsOwnLengthWhereAskedAndCutsWhereAsked) {
  start();
  const Json own = json(post("/embed", R"({"inputs":"one","normalize":false})"));
  EXPECT_EQ(own.get<std::vector<Floats>>()[0], own_row("one"));
  EXPECT_EQ(post("/embed", R"({"inputs":"one","dimensions":1})").body, "[[1]]");
}

TEST_F(ClientApisTest, AModelThatNormalizesHasNoVectorsOfTheirOwnLength) {
  options_.models[0].normalize = true;
  start();
  const auto refused = post("/embed", R"({"inputs":"one","normalize":false})");
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(json(refused)["error"],
            "Invalid 'normalize': the model's own last step scales its vectors to length 1, so "
            "there are no others; leave it out or set it to true.");
  // Its rows are sent as they are: the worker of this test scales nothing.
  EXPECT_EQ(json(post("/embed", R"({"inputs":"one"})"))[0][0], echo_of("one").first);
}

TEST_F(ClientApisTest, TeisErrorsAreTeis) {
  start();
  const auto empty = post("/embed", R"({"inputs":[]})");
  EXPECT_EQ(empty.status, 400);
  EXPECT_EQ(json(empty)["error_type"], "Empty");
  const auto missing = post("/embed", "{}");
  EXPECT_EQ(missing.status, 422);
  EXPECT_EQ(json(missing)["error_type"], "Validation");
  EXPECT_EQ(json(missing)["error"], "Missing required parameter: 'inputs'.");
  EXPECT_EQ(json(get("/embed"))["error_type"], "Validation");
  EXPECT_EQ(json(call("POST", "/embed", {{"Content-Type", "text/plain"}}, "{}"))["error_type"],
            "Validation");
  const auto foreign = post("/embed", R"({"inputs":[[15,27]]})");
  EXPECT_EQ(foreign.status, 422);
  EXPECT_NE(json(foreign)["error"].get<std::string>().find("check_embedding_ctx_length"),
            std::string::npos);
}

TEST_F(ClientApisTest, AVectorThatIsNotFiniteIsAFaultInTheFormOfItsApi) {
  ::setenv("ZERO_WORKER", "echo dim=32 nan_on=59", 1);  // the id of "1"
  start();
  const auto answer = post("/embed", R"({"inputs":["a","1"]})");
  EXPECT_EQ(answer.status, 424) << answer.body;
  EXPECT_EQ(json(answer)["error_type"], "Backend");
}

TEST_F(ClientApisTest, TeiTokenizesAndDecodes) {
  start();
  const Json tokens = json(post("/tokenize", R"({"inputs":"ab"})"));
  ASSERT_EQ(tokens.size(), 1U);
  const Json& ids = tokens[0];
  ASSERT_GE(ids.size(), 3U);
  EXPECT_EQ(ids[0].dump(), R"({"id":2,"special":true,"start":null,"stop":null,"text":"[CLS]"})");
  EXPECT_EQ(ids.back()["id"], 3);
  EXPECT_EQ(ids[1]["special"], false);
  const Json bare = json(post("/tokenize", R"({"inputs":"ab","add_special_tokens":false})"));
  EXPECT_EQ(bare[0].size(), ids.size() - 2);
  EXPECT_EQ(bare[0][0], ids[1]);
  Json numbers = Json::array();
  for (const auto& token : ids) numbers.push_back(token["id"]);
  EXPECT_EQ(post("/decode", Json{{"ids", numbers}}.dump()).body, R"(["ab"])");
  EXPECT_EQ(post("/decode", Json{{"ids", {numbers, numbers}}}.dump()).body, R"(["ab","ab"])");
  EXPECT_EQ(post("/decode", Json{{"ids", numbers}, {"skip_special_tokens", false}}.dump()).body,
            R"(["[CLS] ab [SEP]"])");
  const auto foreign = post("/decode", R"({"ids":[100000000]})");
  EXPECT_EQ(foreign.status, 422);
  EXPECT_EQ(post("/decode", R"({"ids":[]})").status, 400);
}

TEST_F(ClientApisTest, TeiTellsHowTheModelIsServed) {
  start();
  const Json info = json(get("/info"));
  EXPECT_EQ(info["model_id"], "tiny");
  EXPECT_EQ(info["model_type"]["embedding"]["pooling"], "mean");
  EXPECT_EQ(info["model_dtype"], "float32");
  EXPECT_EQ(info["max_client_batch_size"], 4);
}

TEST_F(ClientApisTest, TeiComparesOneSentenceWithOthers) {
  start();
  const auto answer =
      post("/similarity", R"({"inputs":{"source_sentence":"one","sentences":["one","x y z"]}})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto cosines = json(answer).get<Floats>();
  ASSERT_EQ(cosines.size(), 2U);
  EXPECT_EQ(cosines[0], 1.0F);
  const auto a = unit_row("one");
  const auto b = unit_row("x y z");
  EXPECT_NEAR(cosines[1], std::inner_product(a.begin(), a.end(), b.begin(), 0.0), 1e-6);
}

TEST_F(ClientApisTest, RankingIsAnsweredInTheFormOfItsBody) {
  serve_reranker();
  start();
  while (json(get("/v1/models/ranker"))["state"] != "ready") std::this_thread::yield();
  const Json tei = json(
      post("/rerank", R"({"query":"a","texts":["b","z z"],"raw_scores":true,"return_text":true})"));
  ASSERT_TRUE(tei.is_array()) << tei.dump();
  EXPECT_EQ(tei[0]["index"], 1);  // z is the higher id, and there are two
  EXPECT_EQ(tei[0]["text"], "z z");
  const Json other =
      json(post("/rerank", R"({"query":"a","documents":["b","z z"],"raw_scores":true})"));
  EXPECT_EQ(other["results"][0]["index"], 1);
  EXPECT_EQ(other["results"][0]["relevance_score"], tei[0]["score"]);
  const Json cohere = json(post(
      "/v2/rerank",
      R"({"model":"ranker","query":"a","documents":["b","z z"],"raw_scores":true,"top_n":1})"));
  EXPECT_EQ(cohere["results"].size(), 1U);
  EXPECT_EQ(cohere["results"][0]["relevance_score"], tei[0]["score"]);
  EXPECT_TRUE(cohere["meta"]["billed_units"]["input_tokens"].is_number());
  const Json score = json(post(
      "/score", R"({"model":"ranker","text_1":"a","text_2":["b","z z"],"use_activation":false})"));
  EXPECT_EQ(score["data"][1]["score"], tei[0]["score"]);
  EXPECT_EQ(score["data"][0]["score"], tei[1]["score"]);
}

TEST_F(ClientApisTest, ScoresArePairsInTheirOrder) {
  serve_reranker();
  start();
  while (json(get("/v1/models/ranker"))["state"] != "ready") std::this_thread::yield();
  const auto of_pair = [&](const std::string& one, const std::string& two) {
    const Json body{{"text_1", one}, {"text_2", two}, {"use_activation", false}};
    return json(post("/v1/score", body.dump()))["data"][0]["score"].get<double>();
  };
  const Json both =
      json(post("/score", R"({"text_1":["a","z"],"text_2":["b","y"],"use_activation":false})"));
  EXPECT_EQ(both["data"][0]["score"], of_pair("a", "b"));
  EXPECT_EQ(both["data"][1]["score"], of_pair("z", "y"));
  EXPECT_NE(of_pair("a", "b"), of_pair("z", "y"));
  const Json cosine = json(post("/score", R"({"model":"tiny","text_1":"a","text_2":"a"})"));
  EXPECT_EQ(cosine["data"][0]["score"], 1.0);
}

TEST_F(ClientApisTest, OllamaEmbedsAndTellsWhatItTook) {
  start();
  const auto answer =
      post("/api/embed",
           R"({"model":"tiny:latest","input":["one","two"],"options":{"num_ctx":8,"stop":["a"]},)"
           R"("keep_alive":"5m","truncate":true})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json body = json(answer);
  EXPECT_EQ(body["model"], "tiny:latest");
  EXPECT_EQ(body["embeddings"].get<std::vector<Floats>>(),
            (std::vector<Floats>{unit_row("one"), unit_row("two")}));
  EXPECT_EQ(body["prompt_eval_count"], echo_of("one").second + echo_of("two").second);
  EXPECT_GT(body["total_duration"], 0);
  EXPECT_EQ(body["load_duration"], 0);
  EXPECT_EQ(json(post("/api/embed", R"({"model":"tiny","input":[]})"))["embeddings"],
            Json::array());
  EXPECT_EQ(json(post("/api/embed", R"({"model":"tiny","input":""})"))["embeddings"],
            Json::array());
  const Json old = json(post("/api/embeddings", R"({"model":"tiny","prompt":"one"})"));
  EXPECT_EQ(old["embedding"][0], echo_of("one").first);
}

TEST_F(ClientApisTest, OllamaListsAndShowsWhatIsServed) {
  start();
  const Json tags = json(get("/api/tags"))["models"];
  ASSERT_EQ(tags.size(), 1U);
  EXPECT_EQ(tags[0]["model"], "tiny");
  EXPECT_EQ(tags[0]["details"]["quantization_level"], "F32");
  const Json loaded = json(get("/api/ps"))["models"];
  ASSERT_EQ(loaded.size(), 1U);
  EXPECT_EQ(loaded[0]["name"], "tiny");
  EXPECT_EQ(loaded[0]["model"], "tiny");
  EXPECT_EQ(loaded[0]["digest"], tags[0]["digest"]);
  EXPECT_EQ(loaded[0]["details"], tags[0]["details"]);
  EXPECT_TRUE(loaded[0]["context_length"].is_number_unsigned());
  for (const char* unknown_field : {"size", "size_vram", "expires_at"}) {
    EXPECT_FALSE(loaded[0].contains(unknown_field)) << unknown_field;
  }
  const Json shown = json(post("/api/show", R"({"model":"tiny"})"));
  EXPECT_EQ(shown["capabilities"], Json{"embedding"});
  EXPECT_EQ(shown["model_info"]["bert.embedding_length"], 32);
  const auto unknown = post("/api/show", R"({"model":"none"})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(json(unknown)["error"], "model 'none' not found");
  EXPECT_EQ(post("/api/embed", R"({"model":"none","input":"a"})").status, 404);
  EXPECT_EQ(post("/api/embed", R"({"model":"none","input":""})").status, 404);
  EXPECT_TRUE(json(get("/api/version"))["version"].is_string());
}

TEST_F(ClientApisTest, WhatOllamaWouldPullIsToldHowItIsDoneHere) {
  start();
  const auto pulled = post("/api/pull", R"({"model":"llama3"})");
  EXPECT_EQ(pulled.status, 404);
  EXPECT_EQ(json(pulled)["error"],
            "There is no route /api/pull; models are pulled by `muster pull`, loaded by POST "
            "/v1/models/load and unloaded by POST /v1/models/unload");
}

TEST_F(ClientApisTest, CohereEmbedsInSeveralTypesAtOnce) {
  start();
  const auto answer = post(
      "/v2/embed", R"({"model":"tiny","texts":["one"],"input_type":"search_document",)"
                   R"("embedding_types":["float","int8","uint8","binary","ubinary","base64"]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json body = json(answer);
  EXPECT_EQ(body["response_type"], "embeddings_by_type");
  EXPECT_EQ(body["embeddings"]["float"][0][0], echo_of("one").first);
  EXPECT_EQ(body["embeddings"]["int8"][0].size(), 32U);
  EXPECT_EQ(body["embeddings"]["uint8"][0][0], body["embeddings"]["int8"][0][0].get<int>() + 128);
  // The first three values are above 0: sum of ids, their number, and the model's.
  EXPECT_EQ(body["embeddings"]["ubinary"][0].dump(), "[224,0,0,0]");
  EXPECT_EQ(body["embeddings"]["binary"][0].dump(), "[96,-128,-128,-128]");
  const Json base64 =
      json(post("/v1/embeddings", R"({"model":"tiny","input":"one","encoding_format":"base64"})"));
  EXPECT_EQ(body["embeddings"]["base64"][0], base64["data"][0]["embedding"]);
  EXPECT_EQ(body["meta"]["billed_units"]["input_tokens"], echo_of("one").second);
  EXPECT_EQ(json(post("/v2/embed", R"({"texts":["a"]})"))["message"],
            "Missing required parameter: 'model'.");
}

TEST_F(ClientApisTest, WhatTextsAreForChoosesAPromptThatTheModelHas) {
  start();
  const auto first = [&](const char* path, const char* body) {
    const Json answer = json(post(path, body));
    return answer.contains("data") ? answer["data"][0]["embedding"][0]
                                   : answer["embeddings"]["float"][0][0];
  };
  const double with_prompt = echo_of("one", "query").first;
  const double without = echo_of("one").first;
  ASSERT_NE(with_prompt, without);
  EXPECT_EQ(first("/v2/embed", R"({"model":"tiny","texts":["one"],"input_type":"search_query"})"),
            with_prompt);
  EXPECT_EQ(first("/v2/embed", R"({"model":"tiny","texts":["one"],"input_type":"clustering"})"),
            without);
  EXPECT_EQ(first("/v1/embeddings", R"({"model":"tiny","input":"one","task":"retrieval.query"})"),
            with_prompt);
  EXPECT_EQ(first("/v1/embeddings", R"({"model":"tiny","input":"one","task":"retrieval.passage"})"),
            without);
}

TEST_F(ClientApisTest, InfinitysPathsAreThoseWithoutTheVersion) {
  start();
  const std::string body = R"({"model":"tiny","input":"one"})";
  EXPECT_EQ(post("/embeddings", body).body, post("/v1/embeddings", body).body);
  EXPECT_EQ(json(get("/models"))["data"][0]["id"], "tiny");
}

TEST_F(ClientApisTest, TheDescriptionIsThereAsJsonToo) {
  start();
  const Json description = json(get("/openapi.json"));
  EXPECT_EQ(description["openapi"], "3.1.0");
  EXPECT_TRUE(description["paths"]["/v1/embeddings"]["post"]["responses"].contains("200"));
}

TEST_F(ClientApisTest, AKeyIsToldWhatItHasLeftOfItsLimits) {
  // SHA-256 of "test-key", by coreutils' sha256sum.
  use_keys(
      "keys:\n  - name: ci\n    sha256: "
      "62af8704764faf8ea82fc61ce9c4c3908b6cb97d463a634e9e587d7c885db0ef\n"
      "    requests_per_minute: 2\n");
  start();
  const HttpHeaders key{{"Authorization", "Bearer test-key"}};
  const auto first = post("/embed", R"({"inputs":"a"})", key);
  EXPECT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.header("x-ratelimit-limit-requests"), "2");
  EXPECT_EQ(first.header("x-ratelimit-remaining-requests"), "1");
  EXPECT_TRUE(first.header("x-ratelimit-reset-requests"));
  EXPECT_FALSE(first.header("x-ratelimit-limit-tokens"));
  EXPECT_EQ(post("/api/embed", R"({"model":"tiny","input":"b"})", key).status, 200);
  const auto refused = post("/v2/embed", R"({"model":"tiny","texts":["c"]})", key);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.header("x-ratelimit-remaining-requests"), "0");
  EXPECT_TRUE(json(refused).contains("message"));
  EXPECT_EQ(post("/embed", R"({"inputs":"a"})").status, 401);
  EXPECT_EQ(post("/decode", R"({"ids":[2]})", key).status, 429);
}

}  // namespace
}  // namespace muster
