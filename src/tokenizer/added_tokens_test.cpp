#include "tokenizer/added_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

std::unique_ptr<const Model> model_of(const std::vector<std::string>& tokens) {
  TokenTable table;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    table.insert(tokens[i], static_cast<TokenId>(i));
  }
  auto model = make_wordpiece(std::move(table), {});
  EXPECT_TRUE(model);
  return *std::move(model);
}

AddedTokens added(const std::vector<AddedToken>& tokens, const Normalizer* normalizer = nullptr) {
  auto made = AddedTokens::make(tokens, *model_of({"[UNK]", "[SEP]"}), normalizer);
  EXPECT_TRUE(made);
  return *std::move(made);
}

/// Every token found, as "text at its place".
std::vector<std::string> found_in(const AddedTokens& tokens, std::string_view text) {
  std::vector<std::string> found;
  std::size_t from = 0;
  std::size_t taken = 0;
  while (const auto one = tokens.find_raw(text, from, text.size(), taken).found) {
    found.emplace_back(text.substr(one->begin, one->end - one->begin));
    from = taken = one->end;
  }
  return found;
}

using Texts = std::vector<std::string>;

TEST(TextTrie, FindsTheLeftmostLongest) {
  TextTrie trie;
  ASSERT_TRUE(trie.insert("ab", 1));
  ASSERT_TRUE(trie.insert("abcd", 2));
  ASSERT_TRUE(trie.insert("bc", 3));
  EXPECT_EQ(trie.find("xabcx", 0, 5)->value, 1U);
  EXPECT_EQ(trie.find("xabcdx", 0, 6)->value, 2U);
  EXPECT_EQ(trie.find("xabcd", 2, 5)->value, 3U);
  EXPECT_EQ(trie.find("xabcd", 0, 2)->end, 5U);  // begins within the bound, ends behind it
  EXPECT_FALSE(trie.find("xabcd", 0, 1));
  EXPECT_FALSE(trie.insert("ab", 4));
  EXPECT_FALSE(trie.insert("", 5));
}

TEST(AddedTokens, GetTheIdOfTheModelOrTheNextFreeOne) {
  const auto tokens = added({{.content = "[SEP]"}, {.content = "new"}, {.content = "newer"}});
  EXPECT_EQ(tokens.find_raw("[SEP]", 0, 5, 0).found->id, 1U);
  EXPECT_EQ(tokens.find_raw("new", 0, 3, 0).found->id, 2U);
  EXPECT_EQ(tokens.find_raw("newer", 0, 5, 0).found->id, 3U);
  EXPECT_EQ(tokens.id_end(), 4U);
}

TEST(AddedTokens, StandAloneIfTheyMust) {
  const auto tokens = added({{.content = "word", .single_word = true}});
  EXPECT_EQ(found_in(tokens, "word"), Texts{"word"});
  EXPECT_EQ(found_in(tokens, "sword words (word) wordword é_word"), Texts{"word"});
}

TEST(AddedTokens, ADiscardedCandidateUsesUpItsBytes) {
  const auto tokens = added({{.content = "aa", .single_word = true}, {.content = "ab"}});
  // "aa" at 0 touches a word, so it goes; the search resumes behind it, where "b" begins no token.
  EXPECT_EQ(found_in(tokens, "aab"), Texts{});
  EXPECT_EQ(tokens.find_raw("aab", 0, 1, 0).resume, 2U);
}

TEST(AddedTokens, TakeSpaceAlongOnTheirSides) {
  EXPECT_EQ(found_in(added({{.content = "<m>", .lstrip = true}}), "a \n\xC2\xA0<m> b"),
            Texts{" \n\xC2\xA0<m>"});
  EXPECT_EQ(found_in(added({{.content = "<m>", .rstrip = true}}), "a <m> \t b"), Texts{"<m> \t "});
  // The second takes only what the first has left.
  EXPECT_EQ(found_in(added({{.content = "<m>", .lstrip = true, .rstrip = true}}), " <m>  <m> "),
            (Texts{" <m>  ", "<m> "}));
}

TEST(AddedTokens, AreNormalizedIfTheyAskForIt) {
  const auto lowercase = make_lowercase_normalizer();
  const auto tokens =
      added({{.content = "DAY", .normalized = true}, {.content = "NIGHT"}}, lowercase.get());
  EXPECT_TRUE(tokens.has_normalized());
  EXPECT_TRUE(tokens.find_normalized("monday", 0, 0).found);
  EXPECT_FALSE(tokens.find_normalized("MONDAY", 0, 0).found);
  EXPECT_TRUE(tokens.find_raw("NIGHT", 0, 5, 0).found);
  EXPECT_EQ(tokens.text_of(2), "day");
}

TEST(AddedTokens, AreRefusedWhenTwoBecomeTheSame) {
  const auto lowercase = make_lowercase_normalizer();
  const auto made = AddedTokens::make(
      {{.content = "A", .normalized = true}, {.content = "a", .normalized = true}},
      *model_of({"[UNK]"}), lowercase.get());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(made.error().message, "tokenizer.json: two added tokens are the same text: a");
}

// Their tries would take 1.4 GB.
TEST(AddedTokens, OfManyBytesAreRefused) {
  const std::size_t nine_mb = std::size_t{9} << 20;
  const std::vector<AddedToken> tokens{{.content = std::string(nine_mb, 'a')},
                                       {.content = std::string(nine_mb, 'b')}};
  const auto made = AddedTokens::make(tokens, *model_of({"[UNK]"}), nullptr);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(made.error().message, "tokenizer.json: the added tokens have more bytes than 16777216");
}

TEST(AddedTokens, SayWhetherTextsMayBeCut) {
  EXPECT_TRUE(added({{.content = "a b", .rstrip = true}}).allows_cuts());
  EXPECT_TRUE(added({{.content = "<s>", .lstrip = true, .normalized = true}}).allows_cuts());
  EXPECT_FALSE(added({{.content = "a b", .normalized = true}}).allows_cuts());
  EXPECT_FALSE(added({{.content = "<s>", .rstrip = true, .normalized = true}}).allows_cuts());
  EXPECT_FALSE(added({{.content = "中", .normalized = true}}).allows_cuts());
}

TEST(AddedTokens, KnowTheSpecialOnesByTheirText) {
  const auto tokens = added({{.content = "[SEP]", .special = true}, {.content = "plain"}});
  EXPECT_TRUE(tokens.is_special("[SEP]"));
  EXPECT_FALSE(tokens.is_special("plain"));
  EXPECT_EQ(tokens.text_of(1), "[SEP]");
  EXPECT_EQ(tokens.text_of(0), std::nullopt);
}

}  // namespace
}  // namespace muster
