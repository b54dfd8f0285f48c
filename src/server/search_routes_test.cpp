// POST /v1/search of a whole server with stand-in workers.

#include <gtest/gtest.h>

#include <cmath>

#include "server/server_fixture.h"
#include "serving/corpus_fixture.h"

namespace muster {
namespace {

class SearchRoutes : public ServerFixture {
 protected:
  SearchRoutes() {
    write_corpus(folder_ / "notes.npy", options_.models.front().model, {"lang", "year"},
                 {{"one", row(1, 0), R"({"lang":"de","year":2019})", "a1"},
                  {"two \"quoted\"", row(1, 0.1F), R"({"lang":"en","year":2021})", "a2"},
                  {"three", row(0, 1), "", "a3"}});
    options_.searches = {{.name = "notes", .out = folder_ / "notes.npy"}};
  }

  static std::vector<float> row(float first, float second) {
    std::vector<float> values(32);
    values[0] = first;
    values[1] = second;
    return values;
  }

  /// What the workers answer for a query, which has the model's prompt for queries.
  std::vector<double> embedding(const std::string& text) {
    const auto answer =
        json(post("/v1/embeddings",
                  Json{{"model", "tiny"}, {"input", text}, {"prompt_name", "query"}}.dump()));
    return answer["data"][0]["embedding"].get<std::vector<double>>();
  }

  Json search(const Json& body) {
    const auto answer = post("/v1/search", body.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json(answer);
  }

  static std::vector<int> rows_of(const Json& answer, std::size_t query = 0) {
    std::vector<int> rows;
    for (const auto& hit : answer["results"][query]["hits"]) rows.push_back(hit["row"]);
    return rows;
  }

  using Rows = std::vector<int>;
};

TEST_F(SearchRoutes, AnswersWithScoresTextsIdsAndFields) {
  start();
  const auto answer = search({{"query", "abc"}, {"k", 2}});
  EXPECT_EQ(answer["index"], "notes");
  EXPECT_EQ(answer["model"], "tiny");
  ASSERT_EQ(answer["results"].size(), 1U);
  EXPECT_EQ(answer["results"][0]["query"], "abc");
  const auto& hits = answer["results"][0]["hits"];
  ASSERT_EQ(hits.size(), 2U);
  // Rows are float32, whose precision is 6e-8. The row of a text is [sum of ids, count, model, …]:
  // which of the first two is nearer is worked out here.
  const auto values = embedding("abc");
  double square = 0;
  for (const double value : values) square += value * value;
  const double first = values[0] / std::sqrt(square);
  const double second = (values[0] + 0.1F * values[1]) / std::sqrt(square * (1 + 0.1F * 0.1F));
  const bool is_first_nearer = first > second;
  EXPECT_EQ(rows_of(answer), is_first_nearer ? (Rows{0, 1}) : (Rows{1, 0}));
  const auto& of_first = hits[is_first_nearer ? 0 : 1];
  EXPECT_NEAR(of_first["score"].get<double>(), first, 1e-7);
  EXPECT_EQ(of_first["id"], "a1");
  EXPECT_EQ(of_first["text"], "one");
  EXPECT_EQ(of_first["fields"]["year"], 2019);
  const auto& of_second = hits[is_first_nearer ? 1 : 0];
  EXPECT_NEAR(of_second["score"].get<double>(), second, 1e-7);
  EXPECT_EQ(of_second["text"], "two \"quoted\"");
  EXPECT_GT(answer["usage"]["total_tokens"], 0);
}

TEST_F(SearchRoutes, FiltersAndBoundsAndSeveralQueries) {
  start();
  EXPECT_EQ(rows_of(search({{"query", "a"}, {"filter", "year>=2020"}})), (Rows{1}));
  EXPECT_EQ(rows_of(search({{"query", "a"}, {"filter", "not lang"}})), (Rows{2}));
  EXPECT_EQ(rows_of(search({{"query", "a"}, {"min_score", 1}})), (Rows{}));
  const auto two = search({{"queries", {"a", "b c"}}, {"k", 1}, {"index", "notes"}});
  ASSERT_EQ(two["results"].size(), 2U);
  EXPECT_EQ(two["results"][1]["query"], "b c");
  EXPECT_EQ(two["results"][0]["hits"].size(), 1U);
  // Rows 0 and 1 are nearly the same, so row 2 comes before the second of them.
  const auto diverse = rows_of(search({{"query", "a"}, {"k", 3}, {"mmr", 0.3}}));
  ASSERT_EQ(diverse.size(), 3U);
  EXPECT_EQ(diverse[1], 2);
}

TEST_F(SearchRoutes, WhatIsWrongIsNamed) {
  start();
  const auto refused = [&](const Json& body, int status) {
    const auto answer = post("/v1/search", body.dump());
    EXPECT_EQ(answer.status, status) << answer.body;
    return json(answer)["error"];
  };
  const auto filter = refused({{"query", "a"}, {"filter", "lang=de and yaer>1"}}, 400);
  EXPECT_EQ(filter["param"], "filter");
  EXPECT_EQ(filter["message"],
            "Invalid 'filter': filter, column 13: no field \"yaer\"; nearest is \"year\".");
  EXPECT_EQ(refused({{"query", "a"}, {"filter", "year>\"x\""}}, 400)["message"],
            "Invalid 'filter': filter, column 6: year is a number, and \"x\" is a text: write a "
            "number without quotes, as year > 2019.");
  const auto index = refused({{"query", "a"}, {"index", "note"}}, 404);
  EXPECT_EQ(index["message"], "no index note; did you mean notes?");
  EXPECT_EQ(index["code"], "index_not_found");
  EXPECT_EQ(refused({{"query", "a"}, {"model", "other"}}, 400)["message"],
            "Invalid 'model': the index notes is searched with tiny.");
  EXPECT_EQ(refused({{"query", "a"}, {"prompt_name", "qeury"}}, 400)["message"],
            refused({{"query", "b"}, {"prompt_name", "qeury"}}, 400)["message"]);
  refused({{"kuery", "a"}}, 400);
}

TEST_F(SearchRoutes, WithoutAnIndexTheRouteSaysHowToGiveOne) {
  options_.searches.clear();
  start();
  const auto answer = post("/v1/search", R"({"query":"a"})");
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(message(answer), "This server has no index to search; --search OUT gives it one");
}

TEST_F(SearchRoutes, AKeyMayEmbedToSearchAndItsLimitsHold) {
  // SHA-256 of "test-key" and of "other-key", by coreutils' sha256sum.
  use_keys(
      "keys:\n"
      "  - name: reader\n"
      "    sha256: 62af8704764faf8ea82fc61ce9c4c3908b6cb97d463a634e9e587d7c885db0ef\n"
      "    scopes: [read]\n"
      "  - name: caller\n"
      "    sha256: 580843d03d2216ff1a275d0991bad66e4d1af871171d929e9de604b7959f9bca\n"
      "    requests_per_minute: 2\n");
  start();
  const auto search_with = [&](const char* key) {
    return post("/v1/search", R"({"query":"a"})", {{"X-API-Key", key}});
  };
  EXPECT_EQ(post("/v1/search", R"({"query":"a"})").status, 401);
  EXPECT_EQ(search_with("test-key").status, 403);
  const auto answer = search_with("other-key");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("x-ratelimit-remaining-requests"), "1");
  EXPECT_EQ(search_with("other-key").status, 200);
  EXPECT_EQ(search_with("other-key").status, 429);
}

TEST_F(SearchRoutes, IsCountedAuditedAndMeasured) {
  options_.audit_file = folder_ / "audit.jsonl";
  start();
  search({{"queries", {"a secret", "b"}}});
  const auto metrics = get("/metrics").body;
  EXPECT_NE(metrics.find("muster_searches_total 1\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find(
                R"(muster_http_requests_total{route="/v1/search",method="POST",status="200"} 1)"),
            std::string::npos)
      << metrics;
  loop_.stop();
  thread_.join();
  server_.reset();  // writes what is left of the log
  std::ifstream file(options_.audit_file);
  std::string line;
  std::string found;
  while (std::getline(file, line)) {
    if (line.find("/v1/search") != std::string::npos) found = line;
  }
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(Json::parse(found)["model"], "tiny");
  EXPECT_EQ(found.find("secret"), std::string::npos) << found;
}

TEST_F(SearchRoutes, AModelThatIsUnloadedIsNamed) {
  start();
  EXPECT_EQ(post("/v1/models/unload", R"({"model":"tiny"})").status, 200);
  const auto answer = post("/v1/search", R"({"query":"a"})");
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(message(answer), "The model that the index notes was made with is not loaded any more");
}

TEST_F(SearchRoutes, AnOutputOfAnotherModelKeepsTheServerFromStarting) {
  start_service();
  ASSERT_TRUE(service_);
  start_generation();
  ASSERT_TRUE(generation_);
  const ServedWork work{.service = *service_, .generation = *generation_};
  options_.searches.front().out = folder_ / "other.npy";
  const auto missing = Server::start(options_, work, loop_, hooks_, clock_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::NotFound);
  const auto model = folder_ / "model";
  std::filesystem::copy(options_.models.front().model, model,
                        std::filesystem::copy_options::recursive);
  std::ofstream(model / "config.json", std::ios::app) << "\n";  // another hash
  write_corpus(folder_ / "other.npy", model, {}, {{"one", row(1, 0)}});
  const auto refused = Server::start(options_, work, loop_, hooks_, clock_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_NE(refused.error().message.find("which is none of the models served (tiny)"),
            std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace muster
