#include "tokenizer/decoder.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tokenizer/split/byte_alphabet.h"

namespace muster {
namespace {

using Texts = std::vector<std::string>;

TEST(WordPieceDecoder, JoinsPiecesAndCleansUp) {
  const auto decoder = make_wordpiece_decoder({});
  EXPECT_EQ(decoder->decode({"##un", "##aff", "able", ",", "do", "n't"}),
            (Texts{"##un", "aff", " able", ",", " do", "n't"}));
  EXPECT_EQ(make_wordpiece_decoder({"##", false})->decode({"a", "."}), (Texts{"a", " ."}));
}

TEST(ByteLevelDecoder, RestoresBytesAcrossTokens) {
  const auto decoder = make_byte_level_decoder();
  EXPECT_EQ(decoder->decode({"Ġa", "Ã", "©"}), Texts{" aé"});
  EXPECT_EQ(decoder->decode({"Ã", "a"}), Texts{"\xEF\xBF\xBD"
                                               "a"});
  // A token outside the alphabet stands for itself.
  EXPECT_EQ(decoder->decode({"中", "a"}), Texts{"中a"});
}

// As in the tests of the library's metaspace.rs.
TEST(MetaspaceDecoder, TurnsMarksIntoSpaces) {
  EXPECT_EQ(make_metaspace_decoder("▁", true)->decode({"▁Hey", "▁friend!"}),
            (Texts{"Hey", " friend!"}));
  EXPECT_EQ(make_metaspace_decoder("▁", false)->decode({"▁Hey", "▁friend!"}),
            (Texts{" Hey", " friend!"}));
}

TEST(ByteAlphabet, HasACharacterForEveryByte) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(byte_of_character(kByteCharacters[byte]), byte);
  }
  EXPECT_EQ(byte_of_character(U' '), std::nullopt);
  EXPECT_EQ(byte_of_character(0x144), std::nullopt);
  EXPECT_EQ(kByteCharacters[' '], U'Ġ');
  EXPECT_EQ(kByteCharacters['\n'], U'Ċ');
}

TEST(BpeDecoder, MakesSpacesOfSuffixes) {
  EXPECT_EQ(make_bpe_decoder("</w>")->decode({"hel", "lo</w>", "you</w>"}),
            (Texts{"hel", "lo ", "you"}));
}

TEST(DecoderSequence, PassesTokensOn) {
  std::vector<std::unique_ptr<const Decoder>> steps;
  steps.push_back(make_wordpiece_decoder({"##", false}));
  steps.push_back(make_fuse_decoder());
  EXPECT_EQ(make_decoder_sequence(std::move(steps))->decode({"a", "##b", "c"}), Texts{"ab c"});
}

TEST(ReplaceInvalidUtf8, ReplacesEachMaximalPart) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(replace_invalid_utf8("aé😀"), "aé😀");
  EXPECT_EQ(replace_invalid_utf8("\xE4\xB8z"), bad + "z");           // cut short: one
  EXPECT_EQ(replace_invalid_utf8("\xC0\x80"), bad + bad);            // never a lead byte
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), bad + bad + bad);  // a surrogate
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"), bad);
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), bad + bad + bad + bad);
}

}  // namespace
}  // namespace muster
