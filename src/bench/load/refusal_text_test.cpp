#include "bench/load/refusal_text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// Source: as OpenAI, Ollama, text-embeddings-inference, FastAPI and vLLM 0.6 answer.
TEST(RefusalText, IsTheServersOwnSentence) {
  EXPECT_EQ(refusal_text(R"({"error":{"message":"The model `x` does not exist.","code":404}})"),
            "The model `x` does not exist.");
  EXPECT_EQ(refusal_text(R"({"error":"model 'x' not found"})"), "model 'x' not found");
  EXPECT_EQ(refusal_text(R"({"error":"Input is too long","error_type":"Validation"})"),
            "Input is too long");
  EXPECT_EQ(refusal_text(R"({"detail":"Not Found"})"), "Not Found");
  EXPECT_EQ(refusal_text(R"({"detail":[{"type":"missing","loc":["body","input",0],)"
                         R"("msg":"Field required"}]})"),
            "body.input.0: Field required");
  EXPECT_EQ(refusal_text(R"({"object":"error","message":"no such model","code":404})"),
            "no such model");
}

TEST(RefusalText, IsNothingWhereThereIsNone) {
  for (const char* body :
       {"", "x", "404 page not found", "<html>", "[]", "7", "null", R"({"error":null})",
        R"({"error":{"message":7}})", R"({"detail":[]})", R"({"detail":[{"loc":["a"]}]})"}) {
    EXPECT_EQ(refusal_text(body), "") << body;
  }
  const std::string most(kRefusalBytesMost, 'x');
  EXPECT_EQ(refusal_text(R"({"error":")" + most + R"("})"), "");
}

TEST(RefusalText, MovesNoCursorAndIsShort) {
  EXPECT_EQ(refusal_text(R"({"error":"a\u001b[2J\u009b1\nb\u007f"})"), "a\\x1b[2J\\x9b1 b\\x7f");
  // 299 bytes and a character of two: it does not fit into 300.
  const std::string most(299, 'x');
  EXPECT_EQ(refusal_text(R"({"error":")" + most + "éé\"}"), most + "…");
  EXPECT_EQ(refusal_text(R"({"error":")" + most + "y\"}"), most + "y");
}

}  // namespace
}  // namespace muster
