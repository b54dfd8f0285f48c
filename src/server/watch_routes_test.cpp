#include <yaml-cpp/yaml.h>

#include <set>

#include "metrics/strict_text.h"
#include "server/server_fixture.h"
#include "server/service_metrics.h"

namespace muster {
namespace {

using WatchRoutes = ServerFixture;

TEST_F(WatchRoutes, MetricsAreWellFormedAndCountWhatWasAsked) {
  start();
  post("/v1/embeddings", R"({"input":["a","b"],"model":"tiny"})");
  post("/v1/embeddings", R"({"input":["a"],"model":"none"})");
  get("/no/such/route");
  const auto text = read_strictly(get("/metrics").body);
  EXPECT_EQ(text.fault, "");
  const auto value = [&](const std::string& name, const std::string& label) {
    for (const auto& series : text.series) {
      if (series.name != name) continue;
      for (const auto& [key, of] : series.labels) {
        if (of == label) return series.value;
      }
      if (label.empty() && series.labels.empty()) return series.value;
    }
    return -1.0;
  };
  EXPECT_EQ(value("muster_http_requests_total", "200"), 1);
  EXPECT_EQ(value("muster_http_requests_total", "404"), 1);
  EXPECT_EQ(value("muster_http_stray_requests_total", "404"), 1);
  EXPECT_EQ(value("muster_calls_total", ""), 1);
  EXPECT_EQ(value("muster_ready", ""), 1);
  EXPECT_EQ(value("muster_model_texts_total", "tiny"), 2);
  EXPECT_EQ(value("muster_device_state", "cpu:1"), 1);
}

TEST_F(WatchRoutes, DecisionsNameDeviceModelAndReason) {
  start();
  post("/v1/embeddings", R"({"input":["a","b"],"model":"tiny"})");
  const Json decisions = json(get("/v1/decisions"))["decisions"];
  ASSERT_FALSE(decisions.empty());
  EXPECT_EQ(decisions.back()["model"], "tiny");
  EXPECT_FALSE(decisions.back()["reason"].get<std::string>().empty());
}

TEST_F(WatchRoutes, SettingsAreShownAndChanged) {
  start();
  EXPECT_EQ(json(get("/v1/config"))["strategy"]["value"], "auto");
  const auto changed = post("/multigpu/config", R"({"strategy":"least_work","batch":3,"on":true})");
  EXPECT_EQ(changed.status, 200) << changed.body;
  const std::map<std::string, std::string> expected{
      {"strategy", "least_work"}, {"batch", "3"}, {"on", "true"}};
  EXPECT_EQ(changes_, expected);
  EXPECT_EQ(json(changed)["success"], true);
  EXPECT_EQ(post("/multigpu/config", R"({"port":1})").status, 400);
  // Lists and mappings as a file has them; nothing deeper.
  EXPECT_EQ(post("/multigpu/config", R"({"a":[1,"b"],"c":{"d":1,"e":[2,3]}})").status, 200);
  const std::map<std::string, std::string> lists{{"a", "1,b"}, {"c", "d=1;e=2,3"}};
  EXPECT_EQ(changes_, lists);
  EXPECT_EQ(post("/multigpu/config", R"({"a":[[1]]})").status, 400);
  EXPECT_EQ(post("/multigpu/config", R"({"a":null})").status, 400);
  EXPECT_EQ(post("/multigpu/config", "[]").status, 400);
}

TEST_F(WatchRoutes, OfSeveralGpusAnswerWithoutAny) {
  start_whole();
  for (const std::string prefix : {"", "/api/v1"}) {
    const Json health = json(get(prefix + "/multigpu/health"));
    EXPECT_EQ(health["status"], "healthy");
    EXPECT_EQ(health["gpu_count"], 0);
    EXPECT_EQ(health["workers"]["cpu:0"], "ready");
    EXPECT_EQ(json(get(prefix + "/multigpu/stats"))["total_gpus"], 0);
    EXPECT_EQ(get(prefix + "/multigpu/gpu/0/stats").status, 404);
    EXPECT_EQ(json(get(prefix + "/multigpu/resources/status"))["average_gpu_utilization"], nullptr);
  }
  post("/v1/embeddings", R"({"input":["a","b"],"model":"tiny"})");
  const Json stats = json(get("/api/v1/gpu/stats"));
  EXPECT_EQ(stats["total_tasks_completed"], 2);
  EXPECT_EQ(stats["devices"], Json::array());
  EXPECT_GE(json(get("/multigpu/performance/metrics"))["requests"], 1);
}

TEST_F(WatchRoutes, CleaningUpEmptiesTheCache) {
  start();
  post("/v1/embeddings", R"({"input":["a","b"],"model":"tiny"})");
  const Json answer = json(post("/multigpu/resources/manage", R"({"action":"cleanup"})"));
  EXPECT_EQ(answer["success"], true);
  EXPECT_EQ(answer["details"]["cache_entries_removed"], 2);
  EXPECT_EQ(json(post("/multigpu/resources/manage", R"({"action":"optimize"})"))["details"],
            Json({{"restarted", Json::array()}}));
  EXPECT_EQ(post("/multigpu/resources/manage", R"({"action":"monitor"})").status, 200);
  EXPECT_EQ(post("/multigpu/resources/manage", R"({"action":"polish"})").status, 400);
  EXPECT_EQ(post("/multigpu/resources/manage", R"({"action":"monitor","gpu_ids":[3]})").status,
            404);
}

TEST_F(WatchRoutes, ATestMakesProductsOnEveryDevice) {
  start();
  const Json answer = json(post("/multigpu/gpu/test", ""));
  EXPECT_EQ(answer["cpu:0"]["status"], "ok") << answer;
  EXPECT_EQ(answer["cpu:1"]["tensor_operation"], "matrix product");
}

TEST_F(WatchRoutes, RecommendationsNameTheDeviceForEachModelAndWhatIsWrong) {
  start_whole();
  for (const std::string prefix : {"", "/api/v1"}) {
    const Json answer = json(get(prefix + "/multigpu/gpu/recommendations"));
    EXPECT_EQ(answer["models"],
              Json::parse(R"([{"model":"tiny","recommended_device":"cpu:1","because":"it fits",)"
                          R"("devices":[],"hardware":[],"loaded_on":["cpu:0","cpu:1"]}])"));
    EXPECT_EQ(answer["current_setup"]["devices"], Json({"cpu:0", "cpu:1"}));
    EXPECT_EQ(answer["current_setup"]["meets_recommendations"], true);
    // This server has no collector.
    ASSERT_EQ(answer["problems"].size(), 1);
    EXPECT_EQ(answer["problems"][0]["subject"], "server");
  }
}

TEST_F(WatchRoutes, AModelThatCannotBePlannedSaysSo) {
  options_.models.push_back(options_.models.front());
  options_.models.back().name = "strange";
  start_whole();
  const Json answer = json(get("/multigpu/gpu/recommendations"));
  EXPECT_EQ(answer["models"][1]["error"], "no such family");
  const Json guarded = json(call("GET", "/multigpu/gpu/recommendations", {{"Via", "1.1 proxy"}}));
  EXPECT_EQ(guarded["models"][1]["error"], "its files cannot be planned with");
  EXPECT_EQ(answer["models"][1]["model"], "strange");
  EXPECT_EQ(answer["current_setup"]["meets_recommendations"], nullptr);
}

TEST_F(WatchRoutes, TheDescriptionIsServed) {
  start();
  const YAML::Node file = YAML::Load(get("/openapi.yaml").body);
  EXPECT_EQ(file["openapi"].as<std::string>(), "3.1.0");
}

}  // namespace
}  // namespace muster
