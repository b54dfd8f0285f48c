#include "tokenizer/reading/tokenizer_json.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace muster {
namespace {

constexpr std::string_view kWordPiece =
    R"({"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",)"
    R"("max_input_chars_per_word":100,"vocab":{"[UNK]":0,"a":1,"##b":2}})";

std::string document(const std::string& part) {
  std::string json = "{";
  if (!part.empty()) {
    json.append(part).append(",");
  }
  return json.append(R"("model":)").append(kWordPiece).append("}");
}

struct Refusal {
  std::string json;
  ErrorKind kind;
  std::string message;
};

void expect_refused(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.json);
    const auto parsed = Tokenizer::parse(refusal.json);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().kind, refusal.kind);
    EXPECT_EQ(parsed.error().message, "tokenizer.json: " + refusal.message);
  }
}

TEST(ReadTokenizerJson, RefusesPartsByName) {
  const auto kind = ErrorKind::Unsupported;
  expect_refused({
      {document(R"("normalizer":{"type":"Quotes"})"), kind, R"(unsupported normalizer "Quotes")"},
      {document(R"("normalizer":{"type":"Sequence","normalizers":[{"type":"New"}]})"), kind,
       R"(unsupported normalizer "New")"},
      {document(R"("pre_tokenizer":{"type":"UnicodeScripts"})"), kind,
       R"(unsupported pre-tokenizer "UnicodeScripts")"},
      {document(R"("post_processor":{"type":"New"})"), kind, R"(unsupported post-processor "New")"},
      {document(R"("decoder":{"type":"CTC"})"), kind, R"(unsupported decoder "CTC")"},
      {document(R"("version":"2.0")"), kind, R"(unsupported version "2.0")"},
      {R"({"model":{"type":"WordLevel","vocab":{}}})", kind, R"(unsupported model "WordLevel")"},
      {R"({"model":{"type":"Unigram","vocab":[]}})", kind,
       R"(unsupported Unigram model "without unk_id")"},
      {R"({"model":{"unk_id":0,"vocab":[["a",0],["a",1]]}})", kind,
       R"(unsupported vocabulary with a piece twice "a")"},
      {document(R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)"
                R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first"}]})"),
       kind, R"(unsupported pre-tokenizer "Metaspace with prepend_scheme first, not at first")"},
      {document(R"("normalizer":{"type":"Nmt"},"pre_tokenizer":{"type":"Metaspace",)"
                R"("replacement":"_","prepend_scheme":"first"})"),
       kind,
       R"(unsupported pre-tokenizer "Metaspace with prepend_scheme first, behind this normalizer")"},
      {R"({"model":{"vocab":{}}})", kind, R"(unsupported model "without a type")"},
      {R"({"model":{"type":"BPE","dropout":0.1,"vocab":{},"merges":[]}})", kind,
       R"(unsupported BPE option "dropout")"},
      {R"({"model":{"type":"BPE","byte_fallback":true,"vocab":{},"merges":[]}})", kind,
       R"(unsupported BPE option "byte_fallback")"},
      {document(R"("decoder":{"type":"BPEDecoder","suffix":""})"), kind,
       R"(unsupported decoder "BPEDecoder without a suffix")"},
  });
}

TEST(ReadTokenizerJson, SaysWhatIsBroken) {
  const auto kind = ErrorKind::Corrupt;
  expect_refused({
      {"[]", kind, "not an object: the document"},
      {R"({"version":"1.0"})", kind, "field is missing: model"},
      {R"({"model":{"type":"BPE","vocab":{"a":0}}})", kind, "field is missing: merges"},
      {R"({"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}})", kind, "not a token id: a"},
      {R"({"model":{"type":"BPE","vocab":{"a":4294967295},"merges":[]}})", kind,
       "not a token id: a"},
      {R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}})", kind,
       "a merge is not two tokens: a"},
      {R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[["a"]]}})", kind,
       "a merge is not two tokens: merges"},
      {R"({"model":{"type":"Unigram","unk_id":0,"vocab":[]}})", kind,
       "unk_id is not in the vocabulary: 0"},
      {R"({"model":{"type":"Unigram","unk_id":-1,"vocab":[["a",0]]}})", kind,
       "field is not a count: unk_id"},
      {R"({"model":{"type":"Unigram","unk_id":0,"vocab":[["a"]]}})", kind,
       "an entry is not a piece and its score: vocab"},
      {R"({"model":{"type":"Unigram","unk_id":0,"vocab":[["a","0"]]}})", kind,
       "an entry is not a piece and its score: vocab"},
      {document(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"a"})"), kind,
       "broken base64: precompiled_charsmap"},
      {document(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAA"})"), kind,
       "cut off: precompiled_charsmap"},
      {document(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAAAA=="})"), kind,
       "empty trie: precompiled_charsmap"},
      {document(R"("pre_tokenizer":{"type":"Metaspace","replacement":"__"})"), kind,
       "replacement is not one character: __"},
      {document(R"("pre_tokenizer":{"type":"Metaspace","replacement":"_",)"
                R"("add_prefix_space":false})"),
       kind, "add_prefix_space does not match prepend_scheme: always"},
      {document(R"("normalizer":{"type":"BertNormalizer"})"), kind, "field is missing: clean_text"},
      {document(R"("normalizer":{"type":7})"), kind, "field is not a string: type"},
      {document(R"("pre_tokenizer":{"type":"Digits","individual_digits":1})"), kind,
       "field is not true or false: individual_digits"},
      {document(R"("pre_tokenizer":{"type":"Punctuation","behavior":"Sideways"})"), kind,
       "unknown behavior: Sideways"},
      {document(R"("added_tokens":{})"), kind, "field is not a list: added_tokens"},
      {document(R"("post_processor":{"type":"BertProcessing","sep":["a"],"cls":["b",1]})"), kind,
       "field is not a token and its id: sep"},
  });
  EXPECT_EQ(Tokenizer::parse("{").error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(Tokenizer::parse("").error().kind, ErrorKind::Corrupt);
}

TEST(ReadTokenizerJson, BoundsTheNesting) {
  std::string nested = R"({"type":"Lowercase"})";
  for (int i = 0; i < 100; ++i) {
    nested.insert(0, R"({"type":"Sequence","normalizers":[)").append("]}");
  }
  expect_refused({{document(R"("normalizer":)" + nested), ErrorKind::Unsupported,
                   R"(unsupported nesting or length of "Sequence")"}});
  EXPECT_FALSE(Tokenizer::parse(std::string(100'000, '[')));
}

TEST(ReadTokenizerJson, BoundsHowMuchATextCanGrow) {
  const std::string step =
      R"({"type":"Replace","pattern":{"String":"a"},"content":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})";
  const auto with_steps = [&](const std::string& steps) {
    return document(R"("normalizer":{"type":"Sequence","normalizers":[)" + steps + "]}");
  };
  EXPECT_TRUE(Tokenizer::parse(with_steps(step)));  // 32 times
  expect_refused(
      {{with_steps(step + "," + step), ErrorKind::Unsupported,
        R"(unsupported normalizer "Sequence that can lengthen a text more than 1000 times")"}});
}

TEST(ReadTokenizerJson, TemplatesPutTokensAroundTheText) {
  const auto json =
      document(R"("post_processor":{"type":"Sequence","processors":[{"type":"ByteLevel"},)"
               R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"X","type_id":0}},)"
               R"({"Sequence":{"id":"A","type_id":0}}],"pair":[],)"
               R"("special_tokens":{"X":{"id":"X","ids":[7,8],"tokens":["x","y"]}}},)"
               R"({"type":"RobertaProcessing","sep":["</s>",3],"cls":["<s>",4]}]})");
  const auto parts = read_tokenizer_json(json);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->post_processor.before, (std::vector<TokenId>{4, 7, 8}));
  EXPECT_EQ(parts->post_processor.after, std::vector<TokenId>{3});
}

TEST(ReadTokenizerJson, ATemplateHasItsTextOnce) {
  const std::string a = R"({"Sequence":{"id":"A","type_id":0}})";
  const auto with_single = [](const std::string& single) {
    return document(R"("post_processor":{"type":"TemplateProcessing","special_tokens":{},)"
                    R"("single":[)" +
                    single + "]}");
  };
  EXPECT_TRUE(Tokenizer::parse(with_single(a)));
  expect_refused({
      {with_single(""), ErrorKind::Unsupported,
       R"(unsupported template "single without its sequence, or with it twice")"},
      {with_single(R"({"Sequence":{"id":"B","type_id":0}})"), ErrorKind::Unsupported,
       R"(unsupported template "single with a second sequence")"},
      {with_single(R"({"SpecialToken":{"id":"X","type_id":0}})"), ErrorKind::Corrupt,
       "field is missing: X"},
  });
}

TEST(ReadTokenizerJson, MergesComeInBothForms) {
  const auto ids = [](const std::string& merges) {
    const auto tokenizer =
        Tokenizer::parse(R"({"model":{"vocab":{"a":0,"b":1,"ab":2},"merges":)" + merges + "}}");
    EXPECT_TRUE(tokenizer);
    std::vector<TokenId> found;
    (*tokenizer)->encode("abb", 10, *(*tokenizer)->make_scratch(), found);
    return found;
  };
  EXPECT_EQ(ids(R"(["#version: 0.2","a b"])"), (std::vector<TokenId>{2, 1}));
  EXPECT_EQ(ids(R"([["a","b"]])"), (std::vector<TokenId>{2, 1}));
}

}  // namespace
}  // namespace muster
