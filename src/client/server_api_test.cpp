#include "client/server_api.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

namespace muster {
namespace {

using Json = nlohmann::json;

Json listed() {
  return {{"id", "org/tiny"},
          {"object", "model"},
          {"task", "embed"},
          {"state", "ready"},
          {"path", "/models/tiny"},
          {"dim", 2},
          {"length_max", 32},
          {"prompts", {"query"}},
          {"default_prompt", ""},
          {"pooling", "mean"},
          {"normalize", true},
          {"precision", "bf16"},
          {"precision_reason", "asked for"},
          {"equality_class", "abc bf16 zero"}};
}

TEST(ParseListedModels, ReadsWhatAServerSaysOfItsModels) {
  const auto models = parse_listed_models(Json{{"data", {listed()}}}.dump());
  ASSERT_TRUE(models) << models.error().message;
  ASSERT_EQ(models->size(), 1U);
  const auto& model = models->front();
  EXPECT_EQ(model.name, "org/tiny");
  EXPECT_TRUE(model.embeds);
  EXPECT_EQ(model.dim, 2U);
  EXPECT_EQ(model.prompts, std::vector<std::string>{"query"});
  EXPECT_TRUE(model.normalize);
  EXPECT_EQ(model.precision, Precision::Bf16);
  EXPECT_EQ(model.equality_class, "abc bf16 zero");
}

// A key that may only embed is not told where a model lies.
TEST(ParseListedModels, NeedsNoPath) {
  auto json = listed();
  json.erase("path");
  const auto models = parse_listed_models(Json{{"data", {json}}}.dump());
  ASSERT_TRUE(models) << models.error().message;
  EXPECT_EQ(models->front().path, "");
}

// A decoder has no prompts and no vectors, and its precision may be "own".
TEST(ParseListedModels, ReadsAListWithModelsOfOtherKinds) {
  const Json decoder{{"id", "chat"},       {"object", "model"},  {"task", "generate"},
                     {"state", "ready"},   {"length_max", 2048}, {"has_chat_template", true},
                     {"precision", "own"}, {"tokens", 7}};
  const auto models = parse_listed_models(Json{{"data", {decoder, listed()}}}.dump());
  ASSERT_TRUE(models) << models.error().message;
  ASSERT_EQ(models->size(), 2U);
  EXPECT_EQ((*models)[0].name, "chat");
  EXPECT_FALSE((*models)[0].embeds);
  EXPECT_EQ((*models)[0].state, "ready");
  EXPECT_TRUE((*models)[1].embeds);
}

TEST(ParseListedModels, NamesTheFieldThatIsNotAsMusterHasIt) {
  for (const char* name :
       {"id", "state", "length_max", "prompts", "normalize", "precision", "equality_class"}) {
    auto json = listed();
    json[name] = {{"an", "object"}};
    EXPECT_EQ(parse_listed_model(json.dump()).error().message,
              "the server's answer has no " + std::string(name) + " as muster serve has it");
  }
  // What another server of this API answers.
  EXPECT_EQ(parse_listed_models(R"({"data":[{"id":"m","object":"model"}]})").error().kind,
            ErrorKind::Corrupt);
  for (const char* body : {"", "[]", "{", R"({"data":3})", R"({"data":[3]})", "nonsense"}) {
    EXPECT_EQ(parse_listed_models(body).error().kind, ErrorKind::Corrupt) << body;
  }
}

TEST(ComputeAlike, IsFalseForAnythingThatChangesABit) {
  const auto model = *parse_listed_model(listed().dump());
  EXPECT_TRUE(compute_alike(model, model));
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, Json>>{{"equality_class", "abd bf16 zero"},
                                                           {"length_max", 16},
                                                           {"pooling", "cls"},
                                                           {"normalize", false}}) {
    auto json = listed();
    json[name] = value;
    EXPECT_FALSE(compute_alike(model, *parse_listed_model(json.dump()))) << name;
  }
}

TEST(EmbeddingsBody, SaysAllThatDecidesARow) {
  const std::vector<std::string_view> texts{"a \"b\"", ""};
  EXPECT_EQ(Json::parse(embeddings_body("org/tiny", "query", texts)),
            Json({{"model", "org/tiny"},
                  {"prompt_name", "query"},
                  {"truncate", true},
                  {"encoding_format", "base64"},
                  {"lane", "bulk"},
                  {"input", {"a \"b\"", ""}}}));
  EXPECT_EQ(Json::parse(tokenize_body("m", "", texts)),
            Json({{"model", "m"}, {"truncate", true}, {"input", {"a \"b\"", ""}}}));
}

TEST(ModelTarget, EscapesEveryName) { EXPECT_EQ(model_target("a/ü"), "/v1/models/%61%2F%C3%BC"); }

// 1.0F is 00 00 80 3f and -2.0F 00 00 00 c0 in little-endian order; RFC 4648 of these eight bytes.
constexpr const char* kRow = "AACAPwAAAMA=";

TEST(ParseRows, ReadsBase64OfFloatsInTheirOrder) {
  const auto rows = parse_rows(
      Json{{"data", {{{"index", 0}, {"embedding", kRow}}, {{"index", 1}, {"embedding", kRow}}}}}
          .dump(),
      2, 2);
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 2U);
  float row[2];
  ASSERT_EQ((*rows)[1].size(), sizeof row);
  std::memcpy(row, (*rows)[1].data(), sizeof row);
  EXPECT_EQ(row[0], 1.0F);
  EXPECT_EQ(row[1], -2.0F);
}

TEST(ParseRows, RefusesRowsThatAreNotThoseOfTheTexts) {
  const auto refused = [](const Json& item, std::size_t count, std::uint32_t dim) {
    const auto rows = parse_rows(Json{{"data", {item}}}.dump(), count, dim);
    return !rows && rows.error().kind == ErrorKind::Corrupt;
  };
  EXPECT_TRUE(refused({{"index", 0}, {"embedding", kRow}}, 2, 2)) << "one too few";
  EXPECT_TRUE(refused({{"index", 1}, {"embedding", kRow}}, 1, 2)) << "of another text";
  EXPECT_TRUE(refused({{"index", 0}, {"embedding", kRow}}, 1, 3)) << "of another dimension";
  EXPECT_TRUE(refused({{"index", 0}, {"embedding", "AACAPwAAAM*="}}, 1, 2)) << "no base64";
  EXPECT_TRUE(refused({{"index", 0}, {"embedding", {1.0, -2.0}}}, 1, 2)) << "numbers";
  EXPECT_TRUE(refused({{"index", 0}}, 1, 2)) << "none";
}

TEST(ParseTokenCounts, ReadsCountAndCut) {
  const auto counts =
      parse_token_counts(R"({"data":[{"index":0,"ids":[1,2],"count":2,"truncated":false},)"
                         R"({"index":1,"ids":[1],"count":1,"truncated":true}]})",
                         2);
  ASSERT_TRUE(counts) << counts.error().message;
  EXPECT_EQ((*counts)[0].token_count, 2U);
  EXPECT_FALSE((*counts)[0].is_truncated);
  EXPECT_EQ((*counts)[1].token_count, 1U);
  EXPECT_TRUE((*counts)[1].is_truncated);
  EXPECT_FALSE(
      parse_token_counts(R"({"data":[{"index":0,"count":5000000000,"truncated":true}]})", 1));
}

}  // namespace
}  // namespace muster
