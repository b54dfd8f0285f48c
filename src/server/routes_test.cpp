#include "server/routes.h"

#include <gtest/gtest.h>

#include "server/handlers.h"

namespace muster {
namespace {

std::optional<RouteMatch> found(std::string_view method, std::string_view path) {
  const auto outcome = find_route(method, path);
  const auto* match = std::get_if<RouteMatch>(&outcome);
  return match != nullptr ? std::optional(*match) : std::nullopt;
}

RouteMiss missed(std::string_view method, std::string_view path) {
  const auto outcome = find_route(method, path);
  const auto* miss = std::get_if<RouteMiss>(&outcome);
  EXPECT_NE(miss, nullptr) << path;
  return miss != nullptr ? *miss : RouteMiss{};
}

TEST(Routes, AreFoundByMethodAndPath) {
  ASSERT_TRUE(found("POST", "/v1/embeddings"));
  EXPECT_EQ(found("POST", "/v1/embeddings")->route->answer, &answer_embeddings);
  EXPECT_EQ(found("GET", "/multigpu/config")->route->answer, &answer_fleet_config);
  EXPECT_EQ(found("POST", "/multigpu/config")->route->answer, &change_config);
  EXPECT_EQ(found("HEAD", "/livez")->route->answer, &answer_livez);
}

TEST(Routes, ModelNamesMayHoldSlashesAndEscapes) {
  EXPECT_EQ(found("GET", "/v1/models/org/name")->parameter, "org/name");
  EXPECT_EQ(found("GET", "/v1/models/org%2Fname")->parameter, "org/name");
  EXPECT_FALSE(found("GET", "/v1/models/"));
  EXPECT_FALSE(found("GET", "/v1/models/a%0"));
  EXPECT_FALSE(found("GET", "/v1/models/a%00"));
  EXPECT_FALSE(found("GET", "/v1/models/%-1"));
}

TEST(Routes, ALiteralPathIsNoModelsName) {
  EXPECT_EQ(found("POST", "/v1/models/load")->route->answer, &load_model);
  EXPECT_EQ(missed("GET", "/v1/models/load").allow, "POST");
}

TEST(Routes, OfSeveralGpusAnswerBelowBothPrefixes) {
  EXPECT_EQ(found("GET", "/api/v1/multigpu/gpu/1/stats")->route->answer, &answer_one_gpu);
  EXPECT_EQ(found("GET", "/multigpu/gpu/cuda:1/stats")->parameter, "cuda:1");
  EXPECT_FALSE(found("GET", "/multigpu/gpu/1/2/stats"));
  EXPECT_FALSE(found("GET", "/multigpu/gpu//stats"));
  EXPECT_FALSE(found("GET", "/api/v1/livez"));
}

TEST(Routes, AnotherMethodIsToldThoseThatThereAre) {
  EXPECT_EQ(missed("GET", "/v1/embeddings").allow, "POST");
  EXPECT_EQ(missed("DELETE", "/multigpu/config").allow, "GET, HEAD, POST");
  EXPECT_EQ(missed("OPTIONS", "/v1/models/a").allow, "GET, HEAD");
}

TEST(Routes, ACallForADeviceIsKnownByItsFirstLine) {
  EXPECT_TRUE(begins_compute_call("POST /v1/embeddings HTTP/1.1"));
  EXPECT_TRUE(begins_compute_call("POST / HTTP/1.1"));
  EXPECT_TRUE(begins_compute_call("POST /api/embed HTTP/1.1"));
  EXPECT_FALSE(begins_compute_call("POST /api/generate HTTP/1.1"));  // a decoder's
  EXPECT_FALSE(begins_compute_call("POST /v1/tokenize HTTP/1.1"));
  EXPECT_FALSE(begins_compute_call("GET /embed HTTP/1.1"));
  EXPECT_FALSE(begins_compute_call("POST /embed"));  // it may go on
}

TEST(Routes, ErrorsAreInTheFormOfThePath) {
  EXPECT_EQ(error_form_of("/embed"), ErrorForm::Tei);
  EXPECT_EQ(error_form_of("/api/embed"), ErrorForm::Ollama);
  EXPECT_EQ(error_form_of("/api/chat"), ErrorForm::Ollama);
  EXPECT_EQ(error_form_of("/v2/rerank"), ErrorForm::Cohere);
  EXPECT_EQ(error_form_of("/v1/embeddings"), ErrorForm::OpenAi);
  EXPECT_EQ(error_form_of("/nowhere"), ErrorForm::OpenAi);
  EXPECT_EQ(error_form_of("/api/pull"), ErrorForm::Ollama);
  EXPECT_EQ(error_form_of("/api/v1/nowhere"), ErrorForm::OpenAi);
}

TEST(Routes, ASlipIsToldTheNearest) {
  EXPECT_EQ(missed("POST", "/v1/embedings").nearest, "/v1/embeddings");
  EXPECT_EQ(missed("POST", "/api/embedd").nearest, "/api/embed");
  EXPECT_EQ(missed("GET", "/something/else").nearest, std::nullopt);
}

TEST(Routes, ThatEndAsAPathDoesAreNearerThanWhatIsSpelledLikeIt) {
  EXPECT_EQ(missed("GET", "/v1/health").nearest, "/health");
  EXPECT_EQ(missed("GET", "/api/multigpu/health").nearest, "/multigpu/health");
  EXPECT_EQ(missed("POST", "/api/v1/chat/completions").nearest, "/v1/chat/completions");
  EXPECT_EQ(missed("POST", "/chat").nearest, "/api/chat") << "however little of it is the same";
}

TEST(Routes, OfOllamasStoreOfModelsNoOtherRouteIsMeant) {
  for (const auto* path : {"/api/pull", "/api/push", "/api/create", "/api/copy", "/api/delete"}) {
    for (const auto* method : {"POST", "DELETE"}) {
      const auto miss = missed(method, path);
      EXPECT_EQ(miss.nearest, std::nullopt) << path;
      EXPECT_EQ(miss.instead,
                "models are pulled by `muster pull`, loaded by POST /v1/models/load and unloaded "
                "by POST /v1/models/unload")
          << path;
    }
  }
  EXPECT_EQ(missed("GET", "/v1/health").instead, "");
}

}  // namespace
}  // namespace muster
