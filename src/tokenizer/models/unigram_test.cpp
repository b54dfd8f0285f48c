#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/models/library_number.h"
#include "tokenizer/models/model.h"
#include "tokenizer/models/piece_trie.h"

namespace muster {
namespace {

using Ids = std::vector<TokenId>;
using Scored = std::vector<std::pair<std::string, double>>;

std::unique_ptr<const Model> unigram(const Scored& pieces, const UnigramOptions& options = {}) {
  TokenTable table;
  std::vector<double> scores;
  for (const auto& [piece, score] : pieces) {
    table.insert(piece, static_cast<TokenId>(scores.size()));
    scores.push_back(score);
  }
  auto model = make_unigram(std::move(table), std::move(scores), options);
  EXPECT_TRUE(model);
  return *std::move(model);
}

Ids tokenize(const Model& model, std::string_view word) {
  ModelBuffers buffers;
  Ids ids;
  model.tokenize(word, buffers, ids);
  return ids;
}

TEST(Unigram, TakesTheHighestSumOfScores) {
  // The example in the reference's own documentation.
  const auto model = unigram({{"<unk>", 0},
                              {"a", 0},
                              {"b", 0},
                              {"c", 0},
                              {"d", 0},
                              {"cd", 1},
                              {"ab", 2},
                              {"abc", 5},
                              {"abcd", 10}});
  EXPECT_EQ(tokenize(*model, "abcdacdxx"), (Ids{8, 1, 5, 0}));
}

TEST(Unigram, KeepsTheFirstOfEqualSums) {
  // "aaa" as a+aa and as aa+a: the end is reached from "a" first, and -3 is not above -3.
  const auto model = unigram({{"<unk>", -9}, {"a", -1}, {"aa", -2}});
  EXPECT_EQ(tokenize(*model, "aa"), Ids{2});
  EXPECT_EQ(tokenize(*model, "aaa"), (Ids{1, 2}));
}

TEST(Unigram, AnUnknownCharacterCostsTenMoreThanTheWorstPiece) {
  // "ab" at -30 stands against a (-1) and an unknown b at -30 - 10.
  const auto model = unigram({{"<unk>", 0}, {"a", -1}, {"ab", -30}});
  EXPECT_EQ(tokenize(*model, "ab"), Ids{2});
  // "ac" has no such piece, "c" alone is unknown.
  EXPECT_EQ(tokenize(*model, "ac"), (Ids{1, 0}));
}

TEST(Unigram, JoinsUnknownCharacters) {
  const auto model = unigram({{"<unk>", 0}, {"a", -1}});
  EXPECT_EQ(tokenize(*model, "xyéa中"), (Ids{0, 1, 0}));
  // The unknown token written out is known, but joins its unknown neighbours.
  EXPECT_EQ(tokenize(*model, "<unk>a"), (Ids{0, 1}));
  EXPECT_EQ(tokenize(*model, "<unk>x"), Ids{0});
}

TEST(Unigram, UnknownCharactersThatSpellAPieceAreIt) {
  // With scores above 10, two unknown characters (90 each) beat their common piece (100).
  const auto model = unigram({{"<unk>", 100}, {"xy", 100}});
  EXPECT_EQ(tokenize(*model, "xy"), Ids{1});
}

TEST(Unigram, FallsBackToBytesOnlyIfAllAreThere) {
  const Scored pieces = {{"<unk>", 0}, {"a", -1}, {"<0xC3>", -1}, {"<0xA9>", -1}};
  EXPECT_EQ(tokenize(*unigram(pieces), "éa"), (Ids{0, 1}));
  UnigramOptions options;
  options.byte_fallback = true;
  const auto model = unigram(pieces, options);
  EXPECT_EQ(tokenize(*model, "éa"), (Ids{2, 3, 1}));
  EXPECT_EQ(tokenize(*model, "éè"), Ids{0});  // è is C3 A8
}

TEST(Unigram, NeedsItsUnknownToken) {
  const auto model = make_unigram(TokenTable{}, {}, {});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::Corrupt);
}

TEST(PieceTrie, FindsEveryPieceAtTheFront) {
  std::vector<std::string> texts;
  for (int first = 1; first < 256; ++first) {
    for (const char second : {'\x01', 'a', '\xFF'}) {
      texts.push_back({static_cast<char>(first)});
      texts.back().append(second == 'a' ? 3 : 1, second);
    }
  }
  texts.emplace_back("aa");
  texts.emplace_back("");
  std::vector<PieceTrie::Piece> pieces;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    pieces.emplace_back(texts[i], static_cast<TokenId>(i));
  }
  const auto trie = PieceTrie::make(pieces);
  ASSERT_TRUE(trie);
  for (const auto& [text, id] : pieces) {
    std::vector<PieceTrie::Piece> found;
    trie->for_each_prefix(text, [&, &whole = text](std::size_t size, TokenId found_id) {
      found.emplace_back(whole.substr(0, size), found_id);
    });
    std::vector<PieceTrie::Piece> expected;
    for (const PieceTrie::Piece& piece : pieces) {
      if (!piece.first.empty() && text.substr(0, piece.first.size()) == piece.first) {
        expected.push_back(piece);
      }
    }
    std::sort(expected.begin(), expected.end());  // a shorter one comes first
    EXPECT_EQ(found, expected) << text;
  }
}

TEST(PieceTrie, RefusesAPieceThatIsTooLong) {
  const std::string text(PieceTrie::kPieceSizeMax + 1, 'a');
  const auto trie = PieceTrie::make({{text, 0}});
  ASSERT_FALSE(trie);
  EXPECT_EQ(trie.error().kind, ErrorKind::Unsupported);
}

TEST(LibraryNumber, RoundsTwice) {
  // What the library writes for these scores; the nearest numbers are others.
  EXPECT_EQ(library_number("-9.289237976074219"), -0x1.2941700000001p+3);
  EXPECT_EQ(library_number("-15.889914512634277"), -0x1.fc7a2dfffffffp+3);
  EXPECT_EQ(library_number("2.2250738585072011e-308"), 0x1p-1022);
  EXPECT_EQ(library_number("1844674407370955161.65"), 0x1.999999999999ap+60);
}

TEST(LibraryNumber, ReadsEveryForm) {
  EXPECT_EQ(library_number("-0.25"), -0.25);
  EXPECT_EQ(library_number("7"), 7.0);
  EXPECT_EQ(library_number("-1.5e2,"), -150.0);
  EXPECT_EQ(library_number("1E-2 "), 0.01);
  EXPECT_EQ(library_number("0e400"), 0.0);
  EXPECT_EQ(library_number("1e-5000"), 0.0);
  EXPECT_EQ(library_number("1e309"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(library_number("123456789012345678901234567890"), 12345678901234567890.0 * 1e10);
}

}  // namespace
}  // namespace muster
