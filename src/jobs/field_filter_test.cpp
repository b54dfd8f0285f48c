#include "jobs/field_filter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

// Row 0: lang de, year 2019, tags [cat, black dog], ok true
// Row 1: lang en, year "2020" as a text of a CSV, date 2024-01-05
// Row 2: lang de-AT, year 2021.5, date 2023-12-31, ok false
// Row 3: nothing but "my field"
class FieldFilterTest : public testing::Test {
 protected:
  using Rows = std::vector<std::uint64_t>;

  FieldFilterTest() {
    add({{"lang", {text("de")}},
         {"year", {number("2019", 2019)}},
         {"tags", {text("cat"), text("black dog")}},
         {"ok", {text("true")}}});
    add({{"lang", {text("en")}}, {"year", {number("2020", 2020)}}, {"date", {text("2024-01-05")}}});
    add({{"lang", {text("de-AT")}},
         {"year", {number("2021.5", 2021.5)}},
         {"date", {text("2023-12-31")}},
         {"ok", {text("false")}}});
    add({{"my field", {text("in")}}});
  }

  static FieldScalar text(const char* value) { return {value, std::nullopt}; }
  static FieldScalar number(const char* value, double number) { return {value, number}; }

  void add(const std::vector<std::pair<const char*, FieldValue>>& fields) {
    table_.add_row();
    for (const auto& [name, value] : fields) ASSERT_TRUE(table_.set(name, value));
  }

  Rows rows(const std::string& condition) const {
    const auto filter = FieldFilter::parse(condition, table_.names());
    EXPECT_TRUE(filter) << condition << ": " << (filter ? "" : filter.error().message);
    if (!filter) return {};
    const RowFilter of_rows(*filter, table_);
    Rows taken;
    for (std::uint64_t row = 0; row < table_.row_count(); ++row) {
      if (of_rows.takes(row)) taken.push_back(row);
    }
    return taken;
  }

  std::string fault(const std::string& condition) const {
    const auto filter = FieldFilter::parse(condition, table_.names());
    EXPECT_FALSE(filter) << condition;
    return filter ? "" : filter.error().message;
  }

  FieldTable table_;
};

TEST_F(FieldFilterTest, ComparesTexts) {
  EXPECT_EQ(rows("lang=de"), (Rows{0}));
  EXPECT_EQ(rows("lang == \"de\""), (Rows{0}));
  EXPECT_EQ(rows("lang=de-AT"), (Rows{2}));
  EXPECT_EQ(rows("lang~de"), (Rows{0, 2}));
  EXPECT_EQ(rows("lang~\"-A\""), (Rows{2}));
  EXPECT_EQ(rows("lang=DE"), (Rows{}));
  EXPECT_EQ(rows("date>=2024-01-01"), (Rows{1})) << "dates of ISO 8601 sort as texts";
  EXPECT_EQ(rows("date<'2024-01-01'"), (Rows{2}));
  EXPECT_EQ(rows("ok=true"), (Rows{0}));
}

// lang and year have three values and "nothing" each: eight questions, one in a step.
TEST_F(FieldFilterTest, IsBoundInSteps) {
  const auto filter = FieldFilter::parse("lang=de or year>=2020", table_.names());
  ASSERT_TRUE(filter) << filter.error().message;
  auto in_steps = RowFilter::begin(*filter, table_);
  for (int i = 0; i < 7; ++i) EXPECT_FALSE(in_steps.bind(1)) << i;
  EXPECT_TRUE(in_steps.bind(1));
  const RowFilter at_once(*filter, table_);
  for (std::uint64_t row = 0; row < table_.row_count(); ++row) {
    EXPECT_EQ(in_steps.takes(row), at_once.takes(row)) << row;
  }
  EXPECT_TRUE(in_steps.takes(0));
  EXPECT_FALSE(in_steps.takes(3));
}

// 2^53 and 2^53 + 1 are one double; so are their opposites.
TEST_F(FieldFilterTest, TellsLargeWholeNumbersFromTheirNeighbours) {
  constexpr double kTwoTo53 = 9007199254740992.0;
  add({{"post", {number("9007199254740992", kTwoTo53)}}});    // row 4
  add({{"post", {number("9007199254740993", kTwoTo53)}}});    // row 5
  add({{"post", {number("-9007199254740993", -kTwoTo53)}}});  // row 6
  add({{"post", {number("1e+16", 1e16)}}});                   // row 7
  EXPECT_EQ(rows("post=9007199254740993"), (Rows{5}));
  EXPECT_EQ(rows("post in (9007199254740992, 7)"), (Rows{4}));
  EXPECT_EQ(rows("post<9007199254740993"), (Rows{4, 6}));
  EXPECT_EQ(rows("post<-9007199254740992"), (Rows{6}));
  EXPECT_EQ(rows("post=10000000000000000"), (Rows{7})) << "written otherwise, and the same number";
}

TEST_F(FieldFilterTest, ComparesNumbersAsNumbersAndInQuotesAsTexts) {
  EXPECT_EQ(rows("year=2020.0"), (Rows{1}));
  EXPECT_EQ(rows("year>=2020"), (Rows{1, 2}));
  EXPECT_EQ(rows("year > 2019 and year < 2021"), (Rows{1}));
  EXPECT_EQ(rows("year<=2e3"), (Rows{}));
  EXPECT_EQ(rows("year=\"2020\""), (Rows{1}));
  EXPECT_EQ(rows("year=\"2020.0\""), (Rows{}));
  EXPECT_EQ(rows("year~202"), (Rows{1, 2})) << "the digits are a text that is looked for";
  EXPECT_EQ(rows("lang>1"), (Rows{})) << "no text that is no number is above one";
}

TEST_F(FieldFilterTest, AListFitsWhereAnElementDoes) {
  EXPECT_EQ(rows("tags=cat"), (Rows{0}));
  EXPECT_EQ(rows("tags~dog"), (Rows{0}));
  EXPECT_EQ(rows("tags=dog"), (Rows{}));
  EXPECT_EQ(rows("tags in (dog, cat)"), (Rows{0}));
}

TEST_F(FieldFilterTest, WhatIsNotThereFitsNothingAndIsUnequalToAll) {
  EXPECT_EQ(rows("date"), (Rows{1, 2}));
  EXPECT_EQ(rows("not date"), (Rows{0, 3}));
  EXPECT_EQ(rows("lang!=de"), (Rows{1, 2, 3}));
  EXPECT_EQ(rows("tags!=cat"), (Rows{1, 2, 3}));
  EXPECT_EQ(rows("year<3000"), (Rows{0, 1, 2}));
  EXPECT_EQ(rows("lang not in (de, en)"), (Rows{2, 3}));
}

TEST_F(FieldFilterTest, AndGoesBeforeOrAndNotBeforeBoth) {
  EXPECT_EQ(rows("lang=en or lang=de and year=1"), (Rows{1}));
  EXPECT_EQ(rows("(lang=en or lang=de) and year=2019"), (Rows{0}));
  EXPECT_EQ(rows("not lang=en and year"), (Rows{0, 2}));
  EXPECT_EQ(rows("not (lang=en or year=2019)"), (Rows{2, 3}));
  EXPECT_EQ(rows("!lang=en&&year||`my field`"), (Rows{0, 2, 3}));
  EXPECT_EQ(rows("lang=de OR lang=en AND NOT year IN (1)"), (Rows{0, 1}));
}

TEST_F(FieldFilterTest, NamesAndValuesMayHoldAnything) {
  EXPECT_EQ(rows("`my field`=in"), (Rows{3})) << "behind a sign any word is a value";
  EXPECT_EQ(rows("`my field` in (in)"), (Rows{3}));
  EXPECT_EQ(rows(R"(lang="d\e")"), (Rows{0})) << "a backslash takes the next character as it is";
  table_.add_row();
  ASSERT_TRUE(table_.set("lang", {text("a\"b'c")}));
  EXPECT_EQ(rows(R"(lang="a\"b'c")"), (Rows{4}));
  EXPECT_EQ(rows(R"(lang='a"b\'c')"), (Rows{4}));
}

TEST_F(FieldFilterTest, AFaultNamesItsColumnAndTheNearestField) {
  EXPECT_EQ(fault("lnag=de"), "filter, column 1: no field \"lnag\"; nearest is \"lang\"");
  EXPECT_EQ(fault("lang=\u00e9 and  yaer>1"),
            "filter, column 13: no field \"yaer\"; nearest is \"year\"");
  EXPECT_EQ(fault("author=x"),
            "filter, column 1: no field \"author\"; there is \"lang\", \"year\", \"tags\", \"ok\", "
            "\"date\", \"my field\"");
  EXPECT_EQ(fault(""), "filter, column 1: a field is expected before the end");
  EXPECT_EQ(fault("lang="), "filter, column 6: a value is expected before the end");
  EXPECT_EQ(fault("lang=de year=1"),
            "filter, column 9: and, or or the end is expected before year=1");
  EXPECT_EQ(fault("(lang=de"), "filter, column 9: a ) is missing before the end");
  EXPECT_EQ(fault("lang in de"), "filter, column 9: a ( is expected before de");
  EXPECT_EQ(fault("lang in (de"), "filter, column 12: a , or ) is missing before the end");
  EXPECT_EQ(fault("lang=\"de"), "filter, column 6: a \" is missing at the end of the text");
  EXPECT_EQ(fault("`my field=1"), "filter, column 2: a ` is missing at the end of the name");
  EXPECT_EQ(fault("lang=\xff"), "filter, column 6: invalid UTF-8");
  const auto none = FieldFilter::parse("lang=de", {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "filter, column 1: no field \"lang\": none is kept; --keep FIELD of muster embed keeps "
            "one");
}

// year is a number in every row that has it, the first of them 2019.
TEST_F(FieldFilterTest, TheOrderOfANumberAndATextIsAFault) {
  const auto check = [this](const std::string& condition) {
    const auto filter = FieldFilter::parse(condition, table_.names());
    EXPECT_TRUE(filter) << condition;
    const auto checked = (*filter)->check(table_);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(check("year > \"x\""),
            "filter, column 8: year is a number, and \"x\" is a text: write a number without "
            "quotes, as year > 2019");
  EXPECT_EQ(check("lang=\u00e9 and not (ok or year<='2020')"),
            "filter, column 29: year is a number, and '2020' is a text: write a number without "
            "quotes, as year <= 2020");
  EXPECT_EQ(check("year<soon"),
            "filter, column 6: year is a number, and soon is a text: write a number without "
            "quotes, as year < 2019");
  for (const auto* fine : {"year>2019", "year=\"2020\"", "year!=x", "year~\"20\"", "year in (x, 1)",
                           "lang>\"d\"", "date>=2024-01-01", "not year"}) {
    EXPECT_EQ(check(fine), "") << fine;
  }
  add({{"my price", {number("9.5", 9.5)}}});
  EXPECT_EQ(check("`my price`>=\"x\""),
            "filter, column 13: my price is a number, and \"x\" is a text: write a number without "
            "quotes, as `my price` >= 9.5");
  add({{"year", {text("unknown")}}});
  EXPECT_EQ(check("year>\"x\""), "") << "a field that holds texts, too, is compared as text";
}

TEST_F(FieldFilterTest, IsBounded) {
  EXPECT_NE(fault(std::string(4097, ' ')).find("longer than 4,096 bytes"), std::string::npos);
  EXPECT_NE(fault(std::string(65, '(') + "ok").find("nested deeper than 64"), std::string::npos);
  EXPECT_NE(fault(std::string(65, '!') + "ok").find("nested deeper than 64"), std::string::npos);
  std::string many = "ok";
  for (int i = 0; i < 63; ++i) many += " or ok";
  EXPECT_EQ(rows(many), (Rows{0, 2}));
  EXPECT_NE(fault(many + " or ok").find("more than 64 comparisons"), std::string::npos);
  std::string list = "ok in (a";
  for (int i = 0; i < 255; ++i) list += ",a";
  EXPECT_EQ(rows(list + ")"), (Rows{}));
  EXPECT_NE(fault(list + ",a)").find("more than 256 values"), std::string::npos);
}

}  // namespace
}  // namespace muster
