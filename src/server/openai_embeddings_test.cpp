#include "server/openai_embeddings.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "server/compute_calls.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr EmbeddingsLimits kLimits{.texts_most = 3,
                                   .deadline_most = std::chrono::seconds(600),
                                   .text_bytes_most = 20,
                                   .ids_most = 4};

EmbeddingsRequest parsed(const std::string& body) {
  auto request = parse_embeddings(body, kLimits);
  EXPECT_TRUE(request) << body << ": " << (request ? "" : request.error().message);
  return request ? *request : EmbeddingsRequest{};
}

// A body with this JSON as its input.
std::string with_input(const std::string& input) {
  return "{\"model\":\"m\",\"input\":" + input + "}";
}

ApiError refused(const std::string& body) {
  auto request = parse_embeddings(body, kLimits);
  EXPECT_FALSE(request) << body;
  return request ? ApiError{} : request.error();
}

TEST(EmbeddingsBody, TakesOneTextAndItsOptions) {
  const auto request = parsed(
      R"({"input":"hé","model":"m","encoding_format":"base64","dimensions":2,"user":"u",)"
      R"("prompt_name":"query","truncate":false,"truncation_direction":"Left","lane":"bulk",)"
      R"("timeout_ms":1500})");
  EXPECT_EQ(request.call.texts, std::vector<std::string>{"hé"});
  EXPECT_EQ(request.call.options.model, "m");
  EXPECT_EQ(request.format, EmbeddingFormat::Base64);
  EXPECT_EQ(request.call.dimensions, 2U);
  EXPECT_EQ(request.call.prompt_name, "query");
  EXPECT_EQ(request.call.options.truncate, false);
  EXPECT_EQ(request.call.options.truncation_side, TruncationSide::Left);
  EXPECT_EQ(request.call.options.lane, Lane::Bulk);
  EXPECT_EQ(request.call.options.deadline, std::chrono::milliseconds(1500));
}

TEST(EmbeddingsBody, TakesListsOfTextsAndOfIds) {
  EXPECT_EQ(parsed(R"({"input":["a","","b"],"model":""})").call.texts,
            (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(parsed(R"({"input":[101,7],"model":"m"})").call.ids,
            (std::vector<std::vector<std::uint32_t>>{{101, 7}}));
  EXPECT_EQ(parsed(R"({"input":[[1,2],[3]],"model":"m"})").call.ids,
            (std::vector<std::vector<std::uint32_t>>{{1, 2}, {3}}));
}

TEST(EmbeddingsBody, WhatFollowsTheObjectIsToldFromAnObjectThatDoesNotEnd) {
  const std::string begin = "We could not parse the JSON body of your request: ";
  const std::string whole = R"({"model":"m","input":["}"],"user":"\""})";
  for (const std::string more : {" x", " {\"x\":1}", "}", "]", ",", "\n[1]"}) {
    const auto message = refused(whole + more).message;
    EXPECT_TRUE(message.starts_with(begin + "Unexpected trailing content")) << more << message;
  }
  // Not at its end, or with brackets that do not fit: nobody knows where it was to end.
  for (const char* cut : {R"({"model":"m","input":["a"])", R"({"model":"m","input":"a"]} x)"}) {
    const auto message = refused(cut).message;
    EXPECT_EQ(message.find("trailing"), std::string::npos) << cut << message;
  }
  EXPECT_EQ(parsed(whole + " \r\n\t ").call.texts.size(), 1U);
}

TEST(EmbeddingsBody, AnEmptyStringIsAText) {
  EXPECT_EQ(parsed(R"({"input":"","model":"m"})").call.texts, std::vector<std::string>{""});
}

TEST(EmbeddingsBody, NullIsAsIfAFieldWereNotThere) {
  EXPECT_EQ(parsed(R"({"input":"a","model":"m","dimensions":null,"user":null})").call.dimensions,
            std::nullopt);
  EXPECT_EQ(refused(R"({"input":null,"model":"m"})").code, "missing_required_parameter");
}

TEST(EmbeddingsBody, SurrogatePairsAreOneCharacterAndHalvesAreRefused) {
  EXPECT_EQ(parsed(R"({"input":"\ud83d\ude00","model":"m"})").call.texts[0], "\xF0\x9F\x98\x80");
  for (const std::string text : {"\\ud800", "\\udc00", "\\ud800x", "\\ud800\\ud800"}) {
    const auto error = refused(with_input("[\"ok\",\"" + text + "\"]"));
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.param, "input");
  }
}

TEST(EmbeddingsBody, WrongTypesAreRefusedByName) {
  for (const std::string input : {"1", "{}", "true", "[true]", "[null]", "[\"a\",1]", "[1,\"a\"]",
                                  "[[\"a\"]]", "[[1],2]", "[[[1]]]"}) {
    const auto error = refused(with_input(input));
    EXPECT_EQ(error.code, "invalid_type") << input << ": " << error.message;
    EXPECT_EQ(error.param, "input");
  }
  EXPECT_EQ(refused(R"({"input":7,"model":"m"})").message,
            "Invalid type for 'input': expected a string, an array of strings, an array of token "
            "ids or an array of arrays of token ids, but got a number instead.");
}

TEST(EmbeddingsBody, TakesJinasFieldsAndTextsAsObjects) {
  const auto request =
      parsed(R"({"model":"m","input":[{"text":"a"},{"text":"b"}],"task":"retrieval.query",)"
             R"("embedding_type":["ubinary"],"normalized":true})");
  EXPECT_EQ(request.call.texts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.format, EmbeddingFormat::Ubinary);
  EXPECT_TRUE(request.is_normalized);
  EXPECT_EQ(request.call.prompts_preferred, (std::vector<std::string>{"retrieval.query", "query"}));
  EXPECT_TRUE(parsed(R"({"model":"m","input":"a","normalized":false})").call.wants_own_length);
  EXPECT_EQ(refused(R"({"input":[{}],"model":"m"})").param, "text");
  EXPECT_EQ(refused(R"({"input":"a","model":"m","embedding_type":["float","int8"]})").param,
            "embedding_type");
  EXPECT_EQ(refused(R"({"input":"a","model":"m","embedding_type":[]})").code, "empty_array");
}

TEST(EmbeddingsBody, AnUnknownPurposeIsToldTheNearest) {
  EXPECT_EQ(refused(R"({"input":"a","model":"m","input_type":"search_querry"})").message,
            "Invalid 'input_type': expected 'search_query', perhaps.");
}

TEST(EmbeddingsBody, EmptyListsAreRefused) {
  EXPECT_EQ(refused(R"({"input":[],"model":"m"})").code, "empty_array");
  EXPECT_EQ(refused(R"({"input":[[1],[]],"model":"m"})").code, "empty_array");
}

TEST(EmbeddingsBody, WhatIsTooMuchIsRefused) {
  EXPECT_EQ(refused(R"({"input":["a","b","c","d"],"model":"m"})").code, "array_above_max_length");
  EXPECT_EQ(refused(R"({"input":[[1],[1],[1],[1]],"model":"m"})").code, "array_above_max_length");
  EXPECT_EQ(refused(R"({"input":[1,2,3,4,5],"model":"m"})").code, "array_above_max_length");
  EXPECT_EQ(refused(R"({"input":"012345678901234567890","model":"m"})").code,
            "string_above_max_length");
}

TEST(EmbeddingsBody, ReadingStopsAtTheFirstTextTooMany) {
  // What follows is no JSON, and nobody looks at it.
  EXPECT_EQ(refused(R"({"input":["a","b","c","d",nonsense nonsense],"model":"m"})").code,
            "array_above_max_length");
}

TEST(EmbeddingsBody, UnknownFieldsAreRefusedWithTheNearestName) {
  const auto error = refused(R"({"input":"a","model":"m","dimension":3})");
  EXPECT_EQ(error.message,
            "Unrecognized request argument supplied: dimension; did you mean dimensions?");
  EXPECT_EQ(error.param, "dimension");
}

TEST(EmbeddingsBody, MissingAndRepeatedFieldsAreRefused) {
  EXPECT_EQ(refused(R"({"model":"m"})").param, "input");
  EXPECT_EQ(refused(R"({"input":"a"})").param, "model");
  EXPECT_EQ(refused(R"({"input":"a","input":"b","model":"m"})").code, "duplicate_parameter");
}

TEST(EmbeddingsBody, WhatIsNoJsonIsRefused) {
  for (const std::string body :
       {"", "{", "nonsense", "[]", "7", "null", R"({"input":"a","model":"m"} x)",
        R"({"input":"a","model":"m",})", R"({"input":"a" "model":"m"})", "{\"input\":\"a",
        "{\"input\":\"a\nb\",\"model\":\"m\"}", "{\"input\":\"\xff\",\"model\":\"m\"}"}) {
    EXPECT_EQ(refused(body).status, 400) << body;
  }
  EXPECT_EQ(refused(with_input(std::string(1 << 17, '['))).status, 400);
}

TEST(EmbeddingsBody, ValuesOutsideTheirRangeAreRefused) {
  for (const std::string field :
       {R"("dimensions":-1)", R"("dimensions":1.5)", R"("timeout_ms":0)", R"("timeout_ms":600001)",
        R"("encoding_format":"int8")", R"("lane":"fast")", R"("truncation_direction":"up")",
        R"("input":[-1])", R"("input":[1.5])", R"("input":[4294967296])"}) {
    const std::string rest = field.find("input") == std::string::npos ? R"("input":"a",)" : "";
    const auto error = refused("{" + rest + R"("model":"m",)" + field + "}");
    EXPECT_EQ(error.status, 400) << field;
    EXPECT_TRUE(error.param) << field;
  }
}

TEST(EmbeddingsBody, DimensionsThatNoModelHasAreToldWithTheirRange) {
  EXPECT_EQ(refused(R"({"input":"a","model":"m","dimensions":-1})").message,
            "Invalid 'dimensions': expected an integer from 1 to the dimension of the model.");
  // Only the service knows how many the model has.
  EXPECT_EQ(parsed(R"({"input":"a","model":"m","dimensions":0})").call.dimensions, 0U);
}

TEST(EmbeddingsBody, AnIdThatIsNoNumberFromZeroNamesLangchainsSwitch) {
  EXPECT_NE(refused(R"({"input":[-1],"model":"m"})").message.find("check_embedding_ctx_length"),
            std::string::npos);
}

TEST(CallError, NamesTheFieldThatTheServiceRefuses) {
  const auto ids = call_error(
      {.error = {ErrorKind::InvalidArgument, "token id 9 is not"}, .field = CallField::TokenIds});
  EXPECT_EQ(ids.status, 400);
  EXPECT_EQ(ids.param, "input");
  EXPECT_EQ(ids.code, "invalid_token_ids");
  EXPECT_EQ(ids.message,
            "Invalid 'input': token id 9 is not. The ids must be those of this model's own "
            "tokenizer; with langchain-openai set check_embedding_ctx_length=False, so that it "
            "sends texts.");
  const auto dimensions = call_error(
      {.error = {ErrorKind::InvalidArgument, "the model has 2"}, .field = CallField::Dimensions});
  EXPECT_EQ(dimensions.status, 400);
  EXPECT_EQ(dimensions.param, "dimensions");
  EXPECT_EQ(dimensions.code, "invalid_value");
  EXPECT_EQ(dimensions.message, "Invalid 'dimensions': the model has 2.");
  EXPECT_EQ(call_error({.error = {ErrorKind::NotFound, "no such model"}}).status, 404);
}

const EmbedAnswer kAnswer{
    .model = "m\"1", .dim = 2, .rows = {3, 4, 0.5F, -1}, .token_count = 9, .cached_count = 0};

HttpResponse response_of(EmbedAnswer answer, EmbeddingFormat format, const RowFit& fit = {}) {
  fit_rows(answer, fit);
  RowsAnswer whole(answer.rows, answer.dim, openai_sections(answer, format));
  while (!whole.write(1)) continue;
  return whole.take();
}

TEST(EmbeddingsAnswer, IsOpenAisList) {
  const auto response = response_of(kAnswer, EmbeddingFormat::Float);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.body,
            R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[3,4]},)"
            R"({"object":"embedding","index":1,"embedding":[0.5,-1]}],"model":"m\"1",)"
            R"("usage":{"prompt_tokens":9,"total_tokens":9}})");
}

TEST(EmbeddingsAnswer, InBase64AreTheBytes) {
  const Json body = Json::parse(response_of(kAnswer, EmbeddingFormat::Base64).body);
  // 3.0F is 00 00 40 40, 4.0F 00 00 80 40: what coreutils' base64 makes of them.
  EXPECT_EQ(body["data"][0]["embedding"], "AABAQAAAgEA=");
}

TEST(EmbeddingsAnswer, RawAreTheRowsAlone) {
  const auto response = response_of(kAnswer, EmbeddingFormat::Raw);
  EXPECT_EQ(response.content_type, "application/octet-stream");
  ASSERT_EQ(response.body.size(), 16);
  EXPECT_EQ(std::memcmp(response.body.data(), kAnswer.rows.data(), 16), 0);
  const HttpHeaders expected{{"X-Embedding-Dim", "2"}, {"X-Embedding-Count", "2"}};
  EXPECT_EQ(response.headers, expected);
}

TEST(EmbeddingsAnswer, FewerDimensionsAreCutAndOfLengthOne) {
  const EmbedAnswer answer{.model = "m", .dim = 3, .rows = {3, 4, 12, 0, 0, 1}, .token_count = 1};
  const Json body =
      Json::parse(response_of(answer, EmbeddingFormat::Float, {.dimensions = 2}).body);
  EXPECT_EQ(body["data"][0]["embedding"].dump(), "[0.6,0.8]");
  EXPECT_EQ(body["data"][1]["embedding"].dump(), "[0,0]");
}

TEST(EmbeddingsAnswer, AllDimensionsAreLeftAsTheyAre) {
  const auto response = response_of(kAnswer, EmbeddingFormat::Float, {.dimensions = 2});
  EXPECT_EQ(Json::parse(response.body)["data"][0]["embedding"].dump(), "[3,4]");
}

TEST(RowFit, ScalesToLengthOneUnlessTheModelDoesItself) {
  EmbedAnswer answer = kAnswer;
  fit_rows(answer, {.is_normalized = true});
  EXPECT_EQ(answer.rows[0], 0.6F);
  EXPECT_EQ(answer.rows[1], 0.8F);
  EmbedAnswer scaled = kAnswer;
  scaled.is_normalized = true;
  fit_rows(scaled, {.is_normalized = true});
  EXPECT_EQ(scaled.rows, kAnswer.rows);  // its bits are the model's
}

TEST(RowsAnswer, WritesItsSectionsOneAfterTheOther) {
  RowsAnswer answer({3, 4, 0.5F, -1}, 2,
                    {{.before = "<", .after = ">"},
                     {.format = EmbeddingFormat::Ubinary, .before = "(", .after = ")"}});
  EXPECT_EQ(answer.value_count(), 8U);
  while (!answer.write(1)) continue;
  EXPECT_EQ(answer.take().body, "<[3,4],[0.5,-1]>([192],[128])");
}

TEST(ApiErrorBody, HasOpenAisFourFields) {
  const auto response = error_response(wrong_field("input", "empty_array", "No."));
  EXPECT_EQ(response.body,
            R"({"error":{"message":"No.","type":"invalid_request_error","param":"input",)"
            R"("code":"empty_array"}})");
}

TEST(ApiErrorBody, IsInTheFormOfTheClientsApi) {
  const auto wrong = wrong_field("inputs", "invalid_type", "No.");
  const auto tei = error_response(wrong, ErrorForm::Tei);
  EXPECT_EQ(tei.status, 422);
  EXPECT_EQ(tei.body, R"({"error":"No.","error_type":"Validation"})");
  const auto empty = error_response(wrong_field("inputs", "empty_array", "No."), ErrorForm::Tei);
  EXPECT_EQ(empty.status, 400);
  EXPECT_EQ(empty.body, R"({"error":"No.","error_type":"Empty"})");
  EXPECT_EQ(error_response(api_error(429, ""), ErrorForm::Tei).body,
            R"({"error":"","error_type":"Overloaded"})");
  EXPECT_EQ(error_response(api_error(500, ""), ErrorForm::Tei).status, 424);
  EXPECT_EQ(error_response(wrong, ErrorForm::Ollama).body, R"({"error":"No."})");
  EXPECT_EQ(error_response(wrong, ErrorForm::Cohere).body, R"({"message":"No."})");
}

TEST(ApiErrorBody, SaysWhenToComeAgainInWholeSeconds) {
  const CallError full{{ErrorKind::ResourceExhausted, "full"}, std::chrono::milliseconds(1200)};
  const auto response = error_response(api_error(full));
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(Json::parse(response.body)["error"]["type"], "rate_limit_exceeded");
  const HttpHeaders expected{{"Retry-After", "2"}};
  EXPECT_EQ(response.headers, expected);
}

TEST(ApiErrorBody, AnUnknownModelIsNotFound) {
  const auto error = api_error(CallError{{ErrorKind::NotFound, "no such model"}, std::nullopt});
  EXPECT_EQ(error.status, 404);
  EXPECT_EQ(error.code, "model_not_found");
}

}  // namespace
}  // namespace muster
