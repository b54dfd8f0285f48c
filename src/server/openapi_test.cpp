// docs/openapi.yaml and docs/server-metrics.md against the tables of the program.

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <map>
#include <set>

#include "base/text.h"
#include "server/cohere_api.h"
#include "server/generation_api.h"
#include "server/ollama_api.h"
#include "server/ollama_reply_api.h"
#include "server/openai_embeddings.h"
#include "server/rerank_api.h"
#include "server/routes.h"
#include "server/score_api.h"
#include "server/search_api.h"
#include "server/service_metrics.h"
#include "server/tei_api.h"
#include "server/tokenize_api.h"

namespace muster {
namespace {

YAML::Node description() { return YAML::LoadFile(MUSTER_SOURCE_DIR "/docs/openapi.yaml"); }

std::string upper(std::string word) {
  for (char& letter : word) letter = static_cast<char>(std::toupper(letter));
  return word;
}

TEST(OpenApi, HasEveryRouteAndNoOther) {
  std::set<std::string> in_file;
  std::set<std::string> references;
  for (const auto& path : description()["paths"]) {
    const auto name = path.first.as<std::string>();
    for (const auto& operation : path.second) {
      const auto method = operation.first.as<std::string>();
      (method == "$ref" ? references : in_file).insert(upper(method) + " " + name);
    }
  }
  std::set<std::string> in_table;
  std::set<std::string> mounted;
  for (const Route& route : routes()) {
    in_table.insert(std::string(route.method) + " " + std::string(route.pattern));
    if (route.pattern.starts_with("/multigpu/")) {
      mounted.insert("$REF /api/v1" + std::string(route.pattern));
    }
  }
  EXPECT_EQ(in_file, in_table);
  EXPECT_EQ(references, mounted);
}

TEST(OpenApi, TheOtherPrefixPointsToTheSamePaths) {
  for (const auto& path : description()["paths"]) {
    const auto reference = path.second["$ref"];
    if (!reference) continue;
    std::string target = "#/paths/" + path.first.as<std::string>().substr(7);  // "/api/v1"
    for (std::size_t at = 8; (at = target.find('/', at)) != std::string::npos; at += 2) {
      target.replace(at, 1, "~1");
    }
    EXPECT_EQ(reference.as<std::string>(), target);
  }
}

TEST(OpenApi, EveryRouteSaysWhatKeysAndAccessCanAnswer) {
  const YAML::Node paths = description()["paths"];
  for (const Route& route : routes()) {
    std::string method(route.method);
    for (char& letter : method) letter = static_cast<char>(std::tolower(letter));
    const YAML::Node responses = paths[std::string(route.pattern)][method]["responses"];
    SCOPED_TRACE(std::string(route.pattern));
    EXPECT_TRUE(responses["200"]);
    EXPECT_EQ(bool(responses["401"]), route.scope != RouteScope::Open);
    EXPECT_EQ(bool(responses["403"]), route.scope != RouteScope::Open);
    EXPECT_EQ(bool(responses["415"]), route.method == "POST");
    EXPECT_EQ(bool(responses["404"]) || route.pattern.find('{') == std::string_view::npos, true);
  }
}

// Whether the fields of a schema are those that the parser knows: a list of a list of a truth value
// is of the wrong type for all of them, and only an unknown one is "unknown_parameter".
template <typename Parse>
void expect_fields(const std::string& schema, Parse parse) {
  const YAML::Node properties = description()["components"]["schemas"][schema]["properties"];
  ASSERT_TRUE(properties);
  for (const auto& property : properties) {
    const auto name = property.first.as<std::string>();
    const ApiError error = parse(R"({")" + name + R"(":[[true]]})");
    EXPECT_EQ(error.param, name);
    EXPECT_NE(error.code, "unknown_parameter") << name;
  }
}

TEST(OpenApi, HasTheFieldsThatBodiesMayHave) {
  expect_fields("EmbeddingsRequest",
                [](const std::string& body) { return parse_embeddings(body, {}).error(); });
  const Duration most = std::chrono::seconds(1);
  expect_fields("ChatRequest",
                [](const std::string& body) { return parse_chat(body, {}).error(); });
  expect_fields("CompletionRequest",
                [](const std::string& body) { return parse_completion(body, {}).error(); });
  expect_fields("RerankRequest",
                [&](const std::string& body) { return parse_rerank(body, {}, most).error(); });
  expect_fields("TokenizeRequest",
                [&](const std::string& body) { return parse_tokenize(body, {}, most).error(); });
  expect_fields("SearchRequest",
                [&](const std::string& body) { return parse_search(body, {}, most).error(); });
  expect_fields("ScoreRequest",
                [&](const std::string& body) { return parse_score(body, {}, most).error(); });
}

TEST(OpenApi, HasTheFieldsOfTheBodiesOfOtherServersClients) {
  const Duration most = std::chrono::seconds(1);
  expect_fields("TeiEmbedRequest",
                [&](const std::string& body) { return parse_tei_embed(body, {}, most).error(); });
  expect_fields("TeiSimilarityRequest", [&](const std::string& body) {
    return parse_tei_similarity(body, {}, most).error();
  });
  expect_fields("TeiTokenizeRequest", [&](const std::string& body) {
    return parse_tei_tokenize(body, {}, most).error();
  });
  expect_fields("TeiDecodeRequest",
                [&](const std::string& body) { return parse_tei_decode(body, {}, most).error(); });
  expect_fields("OllamaEmbedRequest", [&](const std::string& body) {
    return parse_ollama_embed(body, {}, most).error();
  });
  expect_fields("OllamaEmbeddingsRequest", [&](const std::string& body) {
    return parse_ollama_embeddings(body, {}, most).error();
  });
  expect_fields("OllamaGenerateRequest",
                [](const std::string& body) { return parse_ollama_generate(body, {}).error(); });
  expect_fields("OllamaChatRequest",
                [](const std::string& body) { return parse_ollama_chat(body, {}).error(); });
  expect_fields("OllamaShowRequest",
                [&](const std::string& body) { return parse_ollama_show(body).error(); });
  expect_fields("CohereEmbedRequest", [&](const std::string& body) {
    return parse_cohere_embed(body, {}, most).error();
  });
}

TEST(ServerMetrics, AreThoseOfTheDocumentation) {
  std::ifstream file(MUSTER_SOURCE_DIR "/docs/server-metrics.md");
  std::vector<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `muster_")) rows.push_back(line);
  }
  std::vector<std::string> expected;
  for (const ComputedFamily& family : service_families()) {
    const auto dash = [](std::string_view text) {
      return text.empty() ? std::string("–") : "`" + std::string(text) + "`";
    };
    expected.push_back("| `muster_" + std::string(family.name) + "` | " + dash(family.labels) +
                       " | " + std::string(metric_type_name(family.type)) + " | " +
                       std::string(family.help) + " |");
  }
  EXPECT_EQ(rows, expected);
}

}  // namespace
}  // namespace muster
