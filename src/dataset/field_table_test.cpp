#include "dataset/field_table.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(NumberOfText, IsWhatJsonCallsANumber) {
  for (const auto& [text, number] : {std::pair("0", 0.0),
                                     {"-0", -0.0},
                                     {"2020", 2020.0},
                                     {"-1.5", -1.5},
                                     {"1e3", 1000.0},
                                     {"0.25E-1", 0.025}}) {
    EXPECT_EQ(number_of_text(text), number) << text;
  }
  for (const auto* text : {"", "-", "007", "1.", ".5", "+1", "nan", "inf", "1 ", " 1", "0x10", "1e",
                           "1e999", "2020-01-01", "1.e3"}) {
    EXPECT_EQ(number_of_text(text), std::nullopt) << text;
  }
}

TEST(FieldTable, EqualValuesAreStoredOnce) {
  FieldTable table;
  const auto text = [](const char* word) { return FieldValue{{word, number_of_text(word)}}; };
  table.add_row();
  ASSERT_TRUE(table.set("lang", text("de")));
  table.add_row();
  table.add_row();
  ASSERT_TRUE(table.set("year", text("2020")));
  ASSERT_TRUE(table.set("lang", text("de")));
  table.add_row();
  ASSERT_TRUE(table.set("lang", {{"d", {}}, {"e", {}}}));
  ASSERT_TRUE(table.set("year", {}));
  EXPECT_EQ(table.row_count(), 4U);
  EXPECT_EQ(table.names(), (std::vector<std::string>{"lang", "year"}));
  const auto* lang = table.find("lang");
  ASSERT_NE(lang, nullptr);
  EXPECT_EQ(lang->of_row, (std::vector<std::uint32_t>{1, 0, 1, 2}));
  ASSERT_EQ(lang->values.size(), 3U);
  EXPECT_TRUE(lang->values[0].empty());
  EXPECT_EQ(lang->values[2][1].text, "e");
  const auto* year = table.find("year");
  EXPECT_EQ(year->of_row, (std::vector<std::uint32_t>{0, 0, 1, 0}));
  EXPECT_EQ(year->values[1][0].number, 2020.0);
  EXPECT_EQ(table.find("nothing"), nullptr);
}

TEST(FieldTable, OfANameThatComesTwiceTheLastValueCounts) {
  FieldTable table;
  table.add_row();
  ASSERT_TRUE(table.set("a", {{"1", 1}}));
  ASSERT_TRUE(table.set("a", {{"2", 2}}));
  EXPECT_EQ(table.find("a")->of_row.back(), 2U);
}

TEST(FieldTable, TooManyNamesAreRefused) {
  FieldTable table;
  table.add_row();
  for (int i = 0; i < 1024; ++i) ASSERT_TRUE(table.set(std::to_string(i), {{"x", {}}}));
  EXPECT_TRUE(table.set("7", {{"y", {}}}));
  EXPECT_EQ(table.set("one more", {{"x", {}}}).error().kind, ErrorKind::ResourceExhausted);
}

TEST(FieldTable, AColumnIsANumberWhereEveryValueReadsAsOne) {
  FieldTable table;
  table.add_row();
  ASSERT_TRUE(table.set("price", {{"9", 9}, {"1.5", 1.5}}));
  ASSERT_TRUE(table.set("size", {{"9", 9}}));
  ASSERT_TRUE(table.set("none", {}));
  EXPECT_TRUE(table.find("size")->is_number());
  table.add_row();
  ASSERT_TRUE(table.set("size", {{"9", 9}, {"large", {}}}));
  table.finish();
  EXPECT_TRUE(table.find("price")->is_number());
  EXPECT_FALSE(table.find("size")->is_number());
  EXPECT_FALSE(table.find("none")->is_number());
}

}  // namespace
}  // namespace muster
