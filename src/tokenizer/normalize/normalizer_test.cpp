#include "tokenizer/normalize/normalizer.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

std::string apply(const Normalizer& normalizer, std::string text, SegmentEdges edges = {}) {
  std::string spare;
  normalizer.normalize(text, spare, edges);
  return text;
}

std::string apply_form(NormalizationForm form, const std::string& text) {
  const auto normalizer = make_unicode_normalizer(form);
  EXPECT_TRUE(normalizer);
  return apply(**normalizer, text);
}

std::string apply_bert(const BertNormalizerOptions& options, const std::string& text) {
  const auto normalizer = make_bert_normalizer(options);
  EXPECT_TRUE(normalizer);
  return apply(**normalizer, text);
}

TEST(BertNormalizer, CleansLowersAndStripsAccents) {
  EXPECT_EQ(apply_bert({}, "Héllo,\tWORLD\x01\n"), "hello, world ");
  EXPECT_EQ(apply_bert({}, "ZU\xCC\x88RICH"), "zurich");  // U and a combining diaeresis
  EXPECT_EQ(apply_bert({}, "\xC4\xB0"), "i");             // U+0130: NFD makes I and a dot
}

TEST(BertNormalizer, PutsSpacesAroundChineseCharacters) {
  EXPECT_EQ(apply_bert({}, "ab中文c"), "ab 中  文 c");
  EXPECT_EQ(apply_bert({}, "かな"), "かな");
}

TEST(BertNormalizer, KeepsWhatItIsNotToldToChange) {
  BertNormalizerOptions options;
  options.lowercase = false;
  options.strip_accents = false;
  EXPECT_EQ(apply_bert(options, "Éa\x02中"), "Éa 中 ");
  options.handle_chinese_chars = false;
  options.clean_text = false;
  EXPECT_EQ(apply_bert(options, "É\t\x02中"), "É\t\x02中");
  options.lowercase = true;
  EXPECT_EQ(apply_bert(options, "\xC4\xB0"), "i\xCC\x87");  // U+0130 in full
}

TEST(BertNormalizer, SortsMarksThatAControlCharacterParts) {
  // U+302E (class 224) and U+1D165 (class 216) are spacing marks, so they stay; U+0001 goes, and
  // the two come together in canonical order.
  EXPECT_EQ(apply_bert({}, "a\xE3\x80\xAE\x01\xF0\x9D\x85\xA5"), "a\xF0\x9D\x85\xA5\xE3\x80\xAE");
}

TEST(UnicodeNormalizer, KnowsTheFourForms) {
  const std::string composed = "é";
  const std::string decomposed = "e\xCC\x81";
  EXPECT_EQ(apply_form(NormalizationForm::Nfd, composed), decomposed);
  EXPECT_EQ(apply_form(NormalizationForm::Nfc, decomposed), composed);
  EXPECT_EQ(apply_form(NormalizationForm::Nfkd, "ﬁ" + composed), "fi" + decomposed);
  EXPECT_EQ(apply_form(NormalizationForm::Nfkc, "ﬁ①" + decomposed), "fi1" + composed);
  EXPECT_EQ(apply_form(NormalizationForm::Nfc, "ﬁ"), "ﬁ");
}

TEST(UnicodeNormalizer, ComposesHangulAndObeysBlocking) {
  EXPECT_EQ(apply_form(NormalizationForm::Nfd, "각"), "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8");
  EXPECT_EQ(apply_form(NormalizationForm::Nfc, "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8"), "각");
  // a, dot below (220), diaeresis (230) compose in that order, whatever order they come in.
  EXPECT_EQ(apply_form(NormalizationForm::Nfc, "a\xCC\x88\xCC\xA3"), "ạ\xCC\x88");
  // Two marks of one class: the second is blocked.
  EXPECT_EQ(apply_form(NormalizationForm::Nfc, "a\xCC\x84\xCC\x81"), "ā\xCC\x81");
}

TEST(UnicodeNormalizer, StopsAtUnicodeNine) {
  // U+11938 came with Unicode 13 and decomposes there; the library does not know it.
  const std::string later = "\xF0\x91\xA4\xB8";
  EXPECT_EQ(apply_form(NormalizationForm::Nfd, later), later);
}

TEST(LowercaseNormalizer, TakesEachCharacterAlone) {
  EXPECT_EQ(apply(*make_lowercase_normalizer(), "ΣΑΣ İ"), "σασ i\xCC\x87");
}

TEST(StripAccentsNormalizer, DropsMarksWithoutDecomposing) {
  EXPECT_EQ(apply(*make_strip_accents_normalizer(), "e\xCC\x81 é"), "e é");
}

TEST(StripNormalizer, TakesTheEndsItIsTold) {
  EXPECT_EQ(apply(*make_strip_normalizer({true, false}), " \n\xE3\x80\x80x "), "x ");
  EXPECT_EQ(apply(*make_strip_normalizer({false, true}), " x \t"), " x");
  EXPECT_EQ(apply(*make_strip_normalizer({true, true}), " \t "), "");
}

TEST(StripNormalizer, LeavesTheInnerEndsOfAPartAlone) {
  EXPECT_EQ(apply(*make_strip_normalizer({true, true}), " a ", {true, false}), "a ");
  EXPECT_EQ(apply(*make_strip_normalizer({true, true}), " a ", {false, true}), " a");
}

TEST(PrependNormalizer, SkipsEmptyTextAndLaterParts) {
  const auto normalizer = make_prepend_normalizer("^");
  EXPECT_EQ(apply(*normalizer, "a"), "^a");
  EXPECT_EQ(apply(*normalizer, ""), "");
  EXPECT_EQ(apply(*normalizer, "a", {false, true}), "a");
}

TEST(ReplaceNormalizer, ReplacesEveryMatch) {
  auto regex = Regex::compile(R"(\s+)");
  ASSERT_TRUE(regex);
  EXPECT_EQ(apply(*make_replace_normalizer(*std::move(regex), "_"), "a  b\n\tc"), "a_b_c");
  auto literal = Regex::literal("a.c");
  ASSERT_TRUE(literal);
  EXPECT_EQ(apply(*make_replace_normalizer(*std::move(literal), ""), "abc a.c"), "abc ");
}

TEST(ByteLevelNormalizer, WritesTheByteAlphabet) {
  EXPECT_EQ(apply(*make_byte_level_normalizer(), "a é\n"), "aĠÃ©Ċ");
}

TEST(NormalizerSequence, AllowsCutsOnlyIfEveryStepDoes) {
  std::vector<std::unique_ptr<const Normalizer>> steps;
  steps.push_back(make_lowercase_normalizer());
  steps.push_back(make_prepend_normalizer("x"));
  EXPECT_EQ(apply(*make_normalizer_sequence(std::move(steps)), "AB"), "xab");

  std::vector<std::unique_ptr<const Normalizer>> unsafe;
  unsafe.push_back(make_lowercase_normalizer());
  unsafe.push_back(make_byte_level_normalizer());
  EXPECT_FALSE(make_normalizer_sequence(std::move(unsafe))->allows_cuts());
}

}  // namespace
}  // namespace muster
