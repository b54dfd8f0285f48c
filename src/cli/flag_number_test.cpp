#include "cli/flag_number.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(WholeNumberOf, TakesDigitsInItsRange) {
  EXPECT_EQ(*whole_number_of("--seed", "0", {}), 0U);
  EXPECT_EQ(*whole_number_of("--seed", "18446744073709551615", {}), UINT64_MAX);
  EXPECT_EQ(*whole_number_of("--n", "1", {.least = 1, .most = 9}), 1U);
}

TEST(WholeNumberOf, NamesTheNearestRightForm) {
  const auto message = [](const std::string& text) {
    const auto number = whole_number_of("--seed", text, {.least = 1, .most = 2000, .example = 7});
    EXPECT_FALSE(number) << text;
    if (number) return std::string();
    EXPECT_EQ(number.error().kind, ErrorKind::InvalidArgument);
    const std::string begin = "--seed must be a whole number from 1 to 2000: \"" + text + "\"; ";
    EXPECT_TRUE(number.error().message.starts_with(begin)) << number.error().message;
    return number.error().message.substr(begin.size());
  };
  for (const auto* text : {"abc", "", "-1", "0", "2001", "1.5", "7x", "nan", "1e99"}) {
    EXPECT_EQ(message(text), "such as --seed 7") << text;
  }
  EXPECT_EQ(message("7.0"), "did you mean 7?");
  EXPECT_EQ(message("+7"), "did you mean 7?");
  EXPECT_EQ(message(" 7"), "did you mean 7?");
  EXPECT_EQ(message("1e3"), "did you mean 1000?");
  EXPECT_EQ(message("1_000"), "did you mean 1000?");
  EXPECT_EQ(message("1,000"), "did you mean 1000?");
  EXPECT_EQ(message("7,0"), "did you mean 7?");
}

TEST(NumberOf, NamesTheNearestRightForm) {
  const NumberRange range{.least = 0, .most = 100, .example = 0.8};
  EXPECT_EQ(*number_of("--temperature", "0.5", range), 0.5);
  EXPECT_EQ(*number_of("--temperature", "1e1", range), 10);
  const auto message = [&](const std::string& text) {
    const auto number = number_of("--temperature", text, range);
    EXPECT_FALSE(number) << text;
    return number ? "" : number.error().message;
  };
  EXPECT_EQ(message("0,8"),
            "--temperature must be a number from 0 to 100: \"0,8\"; did you mean 0.8?");
  EXPECT_EQ(message("warm"),
            "--temperature must be a number from 0 to 100: \"warm\"; such as --temperature 0.8");
  EXPECT_EQ(message("101"),
            "--temperature must be a number from 0 to 100: \"101\"; such as --temperature 0.8");
  for (const auto* text : {"nan", "inf", "1.2,3", ""}) {
    EXPECT_TRUE(message(text).ends_with("such as --temperature 0.8")) << text;
  }
}

}  // namespace
}  // namespace muster
