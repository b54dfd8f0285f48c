// Which fields --keep names.

#include "cli/embed_options.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Names = std::vector<std::string>;

Result<Names> kept(const Names& values) {
  Arguments arguments;
  arguments.repeated["--keep"] = values;
  return kept_fields(arguments);
}

TEST(KeptFields, AListNamesSeveralEachOnce) {
  EXPECT_EQ(*kept({"lang,meta.year"}), (Names{"lang", "meta.year"}));
  EXPECT_EQ(*kept({"lang, year", "tags,lang"}), (Names{"lang", "year", "tags"}));
  EXPECT_EQ(*kept({"lang", "year"}), (Names{"lang", "year"}));
  EXPECT_EQ(*kept({}), Names{});
}

TEST(KeptFields, ABackslashKeepsACommaInAName) {
  EXPECT_EQ(*kept({R"(city\, country,year)"}), (Names{"city, country", "year"}));
  EXPECT_EQ(*kept({R"(a\b)"}), Names{R"(a\b)"});
  EXPECT_EQ(*kept({" a "}), Names{" a "}) << "a single name is taken as it is";
}

TEST(KeptFields, ANameThatIsMissingIsAnError) {
  EXPECT_EQ(kept({""}).error().message, "--keep needs the name of a field");
  for (const std::string list : {"lang,", ",lang", "lang,,year", "lang, ,year"}) {
    const auto refused = kept({list});
    ASSERT_FALSE(refused) << list;
    EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(refused.error().message, "--keep has a name missing beside a comma: \"" + list +
                                           "\"; fields are named as in lang,year");
  }
  std::string many = "f0";
  for (int i = 1; i < 64; ++i) many += ",f" + std::to_string(i);
  EXPECT_EQ(kept({many})->size(), 64U);
  EXPECT_EQ(kept({many + ",f64"}).error().message, "--keep takes at most 64 fields: 65");
}

}  // namespace
}  // namespace muster
