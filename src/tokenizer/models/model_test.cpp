#include "tokenizer/models/model.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tokenizer/models/merge_table.h"

namespace muster {
namespace {

using Ids = std::vector<TokenId>;

TokenTable table_of(const std::vector<std::string>& tokens) {
  TokenTable table;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    table.insert(tokens[i], static_cast<TokenId>(i));
  }
  return table;
}

Ids tokenize(const Model& model, std::string_view word) {
  ModelBuffers buffers;
  Ids ids;
  model.tokenize(word, buffers, ids);
  return ids;
}

std::unique_ptr<const Model> wordpiece(const std::vector<std::string>& tokens,
                                       const WordPieceOptions& options = {}) {
  auto model = make_wordpiece(table_of(tokens), options);
  EXPECT_TRUE(model);
  return *std::move(model);
}

std::unique_ptr<const Model> bpe(const std::vector<std::string>& tokens,
                                 const std::vector<MergeText>& merges,
                                 const BpeOptions& options = {}) {
  auto model = make_bpe(table_of(tokens), merges, options);
  EXPECT_TRUE(model);
  return *std::move(model);
}

TEST(Vocabulary, FindsBothWays) {
  TokenTable table;
  for (TokenId id = 0; id < 1000; ++id) {
    table.insert("token" + std::to_string(id), id * 3);
  }
  table.insert("token7", 5);  // the last id stays
  EXPECT_EQ(table.count(), 1000U);
  EXPECT_EQ(table.size_max(), 8U);
  EXPECT_EQ(table.find("token999"), 2997U);
  EXPECT_EQ(table.find("token7"), 5U);
  EXPECT_EQ(table.find("token1000"), std::nullopt);
  EXPECT_EQ(table.find(""), std::nullopt);

  const Vocabulary vocabulary(std::move(table));
  EXPECT_EQ(vocabulary.token_of(2997), "token999");
  EXPECT_EQ(vocabulary.token_of(21), std::nullopt);
  EXPECT_EQ(vocabulary.id_end(), 2998U);
}

TEST(Vocabulary, OfNothingIsEmpty) {
  const Vocabulary vocabulary{TokenTable{}};
  EXPECT_EQ(vocabulary.id_end(), 0U);
  EXPECT_EQ(vocabulary.id_of("a"), std::nullopt);
  EXPECT_EQ(vocabulary.token_of(0), std::nullopt);
}

TEST(MergeTable, KeepsTheLastRuleOfAPair) {
  MergeTable merges(2);
  merges.insert(1, 2, {0, 3});
  merges.insert(1, 2, {7, 4});
  ASSERT_NE(merges.find(1, 2), nullptr);
  EXPECT_EQ(merges.find(1, 2)->rank, 7U);
  EXPECT_EQ(merges.find(1, 2)->merged_id, 4U);
  EXPECT_EQ(merges.find(2, 1), nullptr);
}

TEST(WordPiece, TakesTheLongestTokenFirst) {
  const auto model = wordpiece({"[UNK]", "un", "##aff", "##able", "##a", "unaff", "##é"});
  EXPECT_EQ(tokenize(*model, "unaffable"), (Ids{5, 3}));
  EXPECT_EQ(tokenize(*model, "una"), (Ids{1, 4}));
  EXPECT_EQ(tokenize(*model, "uné"), (Ids{1, 6}));
  // A token with the prefix stands at the beginning of a word only if the word has it, too.
  EXPECT_EQ(tokenize(*model, "##a"), Ids{4});
}

TEST(WordPiece, GivesOneUnknownForAWordThatCannotBeCut) {
  const auto model = wordpiece({"[UNK]", "un", "##a"});
  EXPECT_EQ(tokenize(*model, "unx"), Ids{0});
  EXPECT_EQ(tokenize(*model, "x"), Ids{0});
}

TEST(WordPiece, CountsCharactersForItsLimit) {
  WordPieceOptions options;
  options.max_input_chars_per_word = 3;
  const auto model = wordpiece({"[UNK]", "é", "##é"}, options);
  EXPECT_EQ(tokenize(*model, "ééé"), (Ids{1, 2, 2}));
  EXPECT_EQ(tokenize(*model, "éééé"), Ids{0});
}

TEST(WordPiece, NeedsItsUnknownToken) {
  const auto model = make_wordpiece(table_of({"a"}), {});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(model.error().message,
            "tokenizer.json: the unknown token is not in the vocabulary: [UNK]");
}

TEST(Bpe, MergesByRankNotFromTheLeft) {
  // "abc": b+c (rank 0) comes before a+b (rank 1), then a+bc.
  const auto model = bpe({"a", "b", "c", "bc", "ab", "abc"}, {{"b", "c"}, {"a", "b"}, {"a", "bc"}});
  EXPECT_EQ(tokenize(*model, "abc"), Ids{5});
  EXPECT_EQ(tokenize(*model, "abab"), (Ids{4, 4}));
  EXPECT_EQ(tokenize(*model, "cba"), (Ids{2, 1, 0}));
}

TEST(Bpe, TakesTheLeftmostOfEqualPairs) {
  const auto model = bpe({"a", "aa"}, {{"a", "a"}});
  EXPECT_EQ(tokenize(*model, "aaa"), (Ids{1, 0}));
}

TEST(Bpe, BytesAndCharactersComeToTheSame) {
  const std::vector<std::string> tokens = {"a", "b", "c", "bc", "ab", "abc", "aa", "Ġ", "Ġa"};
  const std::vector<MergeText> merges = {
      {"b", "c"}, {"a", "b"}, {"a", "a"}, {"a", "bc"}, {"Ġ", "a"}};
  BpeOptions options;
  options.reads_bytes = true;
  const auto bytes = bpe(tokens, merges, options);
  const auto characters = bpe(tokens, merges);
  EXPECT_EQ(tokenize(*bytes, " a"), Ids{8});
  // Of both lengths: merged in place, and by the heap.
  for (const std::size_t repeats : {1U, 3U, 40U}) {
    std::string word;
    for (std::size_t i = 0; i < repeats; ++i) {
      word += "aabcabaac";
    }
    EXPECT_EQ(tokenize(*bytes, word), tokenize(*characters, word));
  }
}

TEST(Bpe, IgnoresMergesForAWholeWord) {
  BpeOptions options;
  options.ignore_merges = true;
  EXPECT_EQ(tokenize(*bpe({"a", "b", "ab"}, {}, options), "ab"), Ids{2});
  EXPECT_EQ(tokenize(*bpe({"a", "b", "ab"}, {}), "ab"), (Ids{0, 1}));
}

TEST(Bpe, DropsOrReplacesUnknownCharacters) {
  EXPECT_EQ(tokenize(*bpe({"a"}, {}), "axxa"), (Ids{0, 0}));
  BpeOptions options;
  options.unk_token = "?";
  EXPECT_EQ(tokenize(*bpe({"a", "?"}, {}, options), "axxa"), (Ids{0, 1, 1, 0}));
  options.fuse_unk = true;
  EXPECT_EQ(tokenize(*bpe({"a", "?"}, {}, options), "axxax"), (Ids{0, 1, 0, 1}));
}

TEST(Bpe, MarksTheInsideAndTheEndOfWords) {
  BpeOptions options;
  options.continuing_subword_prefix = "##";
  options.end_of_word_suffix = "</w>";
  const auto model =
      bpe({"a", "##b", "##c</w>", "##bc</w>", "a</w>"}, {{"##b", "##c</w>"}}, options);
  EXPECT_EQ(tokenize(*model, "abc"), (Ids{0, 3}));
  EXPECT_EQ(tokenize(*model, "a"), Ids{4});
}

TEST(Bpe, RefusesMergesOutsideTheVocabulary) {
  const auto part = make_bpe(table_of({"a"}), {{"a", "b"}}, {});
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(part.error().message, "tokenizer.json: part of a merge is not in the vocabulary: b");
  const auto whole = make_bpe(table_of({"a", "b"}), {{"a", "b"}}, {});
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().message, "tokenizer.json: a merged token is not in the vocabulary: ab");
}

TEST(Bpe, RefusesAnUnknownTokenThatIsMissing) {
  BpeOptions options;
  options.unk_token = "<unk>";
  const auto model = make_bpe(table_of({"a"}), {}, options);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::Unsupported);
}

}  // namespace
}  // namespace muster
