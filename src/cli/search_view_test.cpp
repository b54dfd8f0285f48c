#include "cli/search_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

const TerminalInfo kTerminal{.width = 80};

HitEntries entries() {
  IndexEntry with;
  with.row = 3;
  with.id = "a7";
  with.input = "in.jsonl";
  with.line = 4;
  with.fields = R"({"lang":"de","tags":["x",1]})";
  with.text = "a text";
  IndexEntry without;
  without.row = 9;
  without.input = "in.jsonl";
  without.line = 10;
  without.text = "another";
  return {{3, with}, {9, without}};
}

TEST(DescribeHits, ShowsKeptFieldsWhereThereAreAny) {
  EXPECT_EQ(describe_hits("q", {{3, 0.75}, {9, -0.5}}, entries(), kTerminal),
            "q\n"
            "  score  id     fields                text\n"
            " 0.7500  a7     lang=de tags=[\"x\",1]  a text\n"
            "-0.5000  row 9                        another\n"
            "\n");
  EXPECT_EQ(describe_hits("q", {{9, 0.5}}, entries(), kTerminal),
            "q\n"
            " score  id     text\n"
            "0.5000  row 9  another\n"
            "\n");
  EXPECT_EQ(describe_hits("q", {}, {}, kTerminal), "q\nno text fits\n\n");
}

TEST(HitsJson, HasTheFieldsAsJson) {
  const auto json = nlohmann::json::parse(hits_json("q", {{3, 0.75}, {9, -0.5}}, entries()));
  EXPECT_EQ(json["query"], "q");
  ASSERT_EQ(json["hits"].size(), 2U);
  EXPECT_EQ(json["hits"][0]["fields"]["tags"][1], 1);
  EXPECT_EQ(json["hits"][0]["score"], 0.75);
  EXPECT_EQ(json["hits"][0]["line"], 4);
  EXPECT_FALSE(json["hits"][1].contains("fields"));
  EXPECT_FALSE(json["hits"][1].contains("id"));
}

}  // namespace
}  // namespace muster
