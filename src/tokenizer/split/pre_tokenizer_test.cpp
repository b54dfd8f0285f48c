#include "tokenizer/split/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

using Words = std::vector<std::string>;

Words split(const PreTokenizer& pre_tokenizer, std::string_view text) {
  Pieces pieces;
  pieces.reset(text);
  pre_tokenizer.split(pieces);
  Words words;
  for (const Piece& piece : pieces.list()) {
    words.emplace_back(pieces.at(piece));
  }
  return words;
}

Words split_regex(std::string_view pattern, SplitOptions options, std::string_view text) {
  auto regex = Regex::compile(pattern);
  EXPECT_TRUE(regex);
  return split(*make_split_pre_tokenizer(*std::move(regex), options), text);
}

TEST(BertPreTokenizer, RemovesSpaceAndIsolatesPunctuation) {
  EXPECT_EQ(split(*make_bert_pre_tokenizer(), "Hey friend!     How are you?!?"),
            (Words{"Hey", "friend", "!", "How", "are", "you", "?", "!", "?"}));
  EXPECT_EQ(split(*make_bert_pre_tokenizer(), "«a\u00a0b»"), (Words{"«", "a", "b", "»"}));
  EXPECT_EQ(split(*make_bert_pre_tokenizer(), " \n"), Words{});
}

TEST(WhitespacePreTokenizer, PartsWordsFromSigns) {
  EXPECT_EQ(split(*make_whitespace_pre_tokenizer(), "How_are you?! $5"),
            (Words{"How_are", "you", "?!", "$", "5"}));
  EXPECT_EQ(split(*make_whitespace_split_pre_tokenizer(), "Hey, man \xE3\x80\x80!"),
            (Words{"Hey,", "man", "!"}));
}

TEST(DigitsPreTokenizer, KeepsRunsOrSingleDigits) {
  EXPECT_EQ(split(*make_digits_pre_tokenizer(false), "Hey 123 ½!"),
            (Words{"Hey ", "123", " ", "½", "!"}));
  EXPECT_EQ(split(*make_digits_pre_tokenizer(true), "a12"), (Words{"a", "1", "2"}));
}

// The expected words are those of the tests in the library's metaspace.rs.
TEST(MetaspacePreTokenizer, BeginsAWordAtEachMark) {
  EXPECT_EQ(split(*make_metaspace_pre_tokenizer({}), "Hey   friend!"),
            (Words{"▁Hey", "▁", "▁", "▁friend!"}));
  EXPECT_EQ(split(*make_metaspace_pre_tokenizer({}), " Hey▁you "), (Words{"▁Hey", "▁you", "▁"}));
  MetaspaceOptions options;
  options.split = false;
  EXPECT_EQ(split(*make_metaspace_pre_tokenizer(options), "Hey my friend"),
            Words{"▁Hey▁my▁friend"});
  options.prepend = MetaspacePrepend::Never;
  EXPECT_EQ(split(*make_metaspace_pre_tokenizer(options), "Hey you"), Words{"Hey▁you"});
}

TEST(MetaspacePreTokenizer, MarksTheFirstWordOfATextOnly) {
  MetaspaceOptions options;
  options.prepend = MetaspacePrepend::First;
  const auto pre_tokenizer = make_metaspace_pre_tokenizer(options);
  EXPECT_EQ(split(*pre_tokenizer, "how are"), (Words{"how", "▁are"}));
  Pieces pieces;
  pieces.reset("how", true);
  pre_tokenizer->split(pieces);
  EXPECT_EQ(pieces.text(), "▁how");
}

// The expected pieces are those of the library's own documentation of SplitDelimiterBehavior.
TEST(DelimiterBehavior, PlacesTheDelimiter) {
  const auto pieces = [](DelimiterBehavior behavior) {
    auto regex = Regex::literal("-");
    EXPECT_TRUE(regex);
    return split(*make_split_pre_tokenizer(*std::move(regex), {behavior, false}),
                 "the-final--countdown");
  };
  EXPECT_EQ(pieces(DelimiterBehavior::Removed), (Words{"the", "final", "countdown"}));
  EXPECT_EQ(pieces(DelimiterBehavior::Isolated),
            (Words{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(pieces(DelimiterBehavior::MergedWithPrevious),
            (Words{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(pieces(DelimiterBehavior::MergedWithNext), (Words{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(pieces(DelimiterBehavior::Contiguous), (Words{"the", "-", "final", "--", "countdown"}));
}

TEST(SplitPreTokenizer, CanMatchTheWordsInstead) {
  EXPECT_EQ(split_regex(R"(\w+|[^\w\s]+)", {DelimiterBehavior::Removed, true}, "How are you?"),
            (Words{"How", "are", "you", "?"}));
}

TEST(SplitPreTokenizer, AnEmptyMatchSplitsWithoutAPieceOfItsOwn) {
  EXPECT_EQ(split_regex("", {}, "abé"), (Words{"a", "b", "é"}));
  EXPECT_EQ(split_regex("b*", {}, "abbc"), (Words{"a", "bb", "c"}));
}

TEST(PunctuationPreTokenizer, TakesABehavior) {
  EXPECT_EQ(split(*make_punctuation_pre_tokenizer(DelimiterBehavior::Isolated), "a, b."),
            (Words{"a", ",", " b", "."}));
  EXPECT_EQ(split(*make_punctuation_pre_tokenizer(DelimiterBehavior::Contiguous), "a!? b"),
            (Words{"a", "!?", " b"}));
}

TEST(ByteLevelPreTokenizer, PrefixesSplitsAndMaps) {
  EXPECT_EQ(split(*make_byte_level_pre_tokenizer({}), "it's é"), (Words{"Ġit", "'s", "ĠÃ©"}));
  EXPECT_EQ(split(*make_byte_level_pre_tokenizer({true, false, false}), "a b"), (Words{" a b"}));
  EXPECT_EQ(split(*make_byte_level_pre_tokenizer({true, true, false}), " a"), (Words{" a"}));
}

TEST(PreTokenizerSequence, SplitsPiecesFurther) {
  std::vector<std::unique_ptr<const PreTokenizer>> steps;
  steps.push_back(make_whitespace_split_pre_tokenizer());
  steps.push_back(make_digits_pre_tokenizer(true));
  const auto sequence = make_pre_tokenizer_sequence(std::move(steps));
  EXPECT_EQ(split(*sequence, "ab12 3"), (Words{"ab", "1", "2", "3"}));
  EXPECT_EQ(sequence->cut_effect(CutPlace::LineFeed), CutEffect::Separates);
}

TEST(CutEffect, IsNoBetterThanTheWorstStep) {
  auto regex = Regex::compile("a b");
  ASSERT_TRUE(regex);
  std::vector<std::unique_ptr<const PreTokenizer>> steps;
  steps.push_back(make_whitespace_split_pre_tokenizer());
  steps.push_back(make_split_pre_tokenizer(*std::move(regex), {}));
  EXPECT_EQ(make_pre_tokenizer_sequence(std::move(steps))->cut_effect(CutPlace::Space),
            CutEffect::Unsafe);
  EXPECT_EQ(make_digits_pre_tokenizer(true)->cut_effect(CutPlace::Space), CutEffect::Transparent);
  const auto prefixing = make_byte_level_pre_tokenizer({});
  EXPECT_EQ(prefixing->cut_effect(CutPlace::Space), CutEffect::Separates);
  EXPECT_EQ(prefixing->cut_effect(CutPlace::LineFeed), CutEffect::Unsafe);
}

struct PatternCase {
  KnownPattern pattern;
  std::string text;
  Words words;
};

TEST(KnownPatterns, SplitAsTheirRegexReads) {
  const std::vector<PatternCase> cases = {
      {KnownPattern::Gpt2, "it's I'LL we'll", {"it", "'s", " I", "'", "LL", " we", "'ll"}},
      {KnownPattern::Gpt2, "a1b  c   ", {"a", "1", "b", " ", " c", "   "}},
      {KnownPattern::Gpt2, "x\n\n y", {"x", "\n\n", " y"}},
      {KnownPattern::Gpt2, "12345 ... é", {"12345", " ...", " é"}},
      {KnownPattern::Gpt2, "'", {"'"}},
      {KnownPattern::Llama3, "I'LL 'ſ x'ſ12345", {"I", "'LL", " '", "ſ", " x", "'ſ", "123", "45"}},
      {KnownPattern::Llama3, "a.b\n\n  c", {"a", ".b", "\n\n", " ", " c"}},
      {KnownPattern::Llama3, "x !!\r\ny", {"x", " !!\r\n", "y"}},
      {KnownPattern::Llama3, "\tif", {"\tif"}},
      {KnownPattern::Llama3, " \n \n a", {" \n \n", " a"}},
      {KnownPattern::Qwen2, "v123", {"v", "1", "2", "3"}},
  };
  for (const PatternCase& one : cases) {
    SCOPED_TRACE(one.text);
    EXPECT_EQ(split(*make_known_pre_tokenizer(one.pattern), one.text), one.words);
  }
}

TEST(KnownPatterns, AgreeWithTheRegexEngine) {
  const std::vector<std::string> texts = {"They've  said: 'tis 1234.5%\r\n\r\n  \t x'S",
                                          "naïve 中文１２３ ½ ①②③④ é\xC2\xA0 \xE3\x80\x80 z",
                                          "'re're 've'D  ''ll   ",
                                          "a\n b\n\n  c \n",
                                          "!?\n\n!\r\n 'ſ'K",
                                          " \xE1\xA0\x8E \xC2\x85x"};
  const std::vector<std::pair<KnownPattern, std::string_view>> patterns = {
      {KnownPattern::Gpt2, kGpt2Pattern},
      {KnownPattern::Llama3, kLlama3Pattern},
      {KnownPattern::Qwen2, kQwen2Pattern}};
  for (const auto& [known, pattern] : patterns) {
    for (const std::string& text : texts) {
      SCOPED_TRACE(text);
      EXPECT_EQ(known_pattern(pattern), known);
      EXPECT_EQ(split(*make_known_pre_tokenizer(known), text), split_regex(pattern, {}, text));
    }
  }
}

}  // namespace
}  // namespace muster
