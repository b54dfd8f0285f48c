#include "dataset/json_look.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

JsonLook look(std::string_view text) { return look_for_json(text, /*is_whole=*/true); }

TEST(LookForJson, KnowsObjectsALine) {
  EXPECT_EQ(look("{\"text\": \"a\"}\n{\"text\": \"b\"}\n"), JsonLook::Lines);
  EXPECT_EQ(look("\xef\xbb\xbf\n  {\"text\":\"a\"}"), JsonLook::Lines);
  EXPECT_EQ(look("{}\n"), JsonLook::Lines);
  EXPECT_EQ(look("{\"text\": \"never closed\n"), JsonLook::Lines);
}

TEST(LookForJson, KnowsDocuments) {
  EXPECT_EQ(look("[{\"text\": \"a\"}, {\"text\": \"b\"}]"), JsonLook::Document);
  EXPECT_EQ(look("[\n  \"a\",\n  \"b\"\n]\n"), JsonLook::Document);
  EXPECT_EQ(look("{\n  \"text\": \"a\"\n}\n"), JsonLook::Document);
  EXPECT_EQ(look("[[1, -2.5e3], [true, null], []]"), JsonLook::Document);
  EXPECT_EQ(look("[]"), JsonLook::Document);
}

TEST(LookForJson, LeavesTextsAlone) {
  for (const char* text :
       {"", "\n\n", "a text\n{\"text\": 1}\n", "[1] Smith et al.\n", "[Chorus]\n", "{name} of\n",
        "[1, 2] as shown\n", "{\"name\"} of\n", "[", "{", "[x\n", "\"a\"\n", "[1 2]\n", "[,]\n",
        "[1,]\n", "[\"a\nb\"]\n", "(a) {\"text\": 1}\n"}) {
    EXPECT_EQ(look(text), JsonLook::Text) << text;
  }
}

// Where a read ends must not matter: with fewer bytes the answer is the same, or that more are
// needed.
TEST(LookForJson, NeverChangesItsMindWithMoreBytes) {
  for (const std::string text :
       {"[\"a\", \"b\\\"\", 12.5, true]\n", "{\n \"a\" : 1}\n", "[1, 2] as shown\n", "[12] Smith\n",
        "[{}, {\"a\": 1}]\n", "[tru]\n", "\n\n{\"text\": 1}\n"}) {
    const auto whole = look(text);
    for (std::size_t size = 0; size < text.size(); ++size) {
      const auto part = look_for_json(std::string_view(text).substr(0, size), false);
      EXPECT_TRUE(part == JsonLook::Open || part == whole) << text << " at " << size;
    }
  }
}

}  // namespace
}  // namespace muster
