#include "cli/plan_options.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace muster {
namespace {

Result<Workload> workload(std::map<std::string, std::string, std::less<>> flags) {
  Arguments arguments;
  arguments.flags = std::move(flags);
  return workload_of(arguments, ModelKind::Decoder);
}

std::string refusal(const std::string& flag, const std::string& value) {
  const auto read = workload({{flag, value}});
  EXPECT_FALSE(read) << flag << " " << value;
  return read ? "" : read.error().message;
}

TEST(WorkloadOf, LengthsAreTokensOrThousandsOf1024) {
  const auto context = [](const char* text) { return workload({{"--context", text}})->context; };
  EXPECT_EQ(context("8192"), 8192U);
  EXPECT_EQ(context("8k"), 8192U);
  EXPECT_EQ(context("128K"), 131'072U);
  EXPECT_EQ(workload({{"--prefill-tokens", "2k"}})->prefill_tokens, 2048U);
}

TEST(WorkloadOf, ALengthOfAnotherFormIsRefusedWithTheRightOne) {
  const std::string wanted = "wanted a whole number of tokens, such as 8192 or 8k";
  // 4194304k are 2^32 tokens, one more than fit.
  for (const auto* text : {"", "k", "0", "0k", "8kk", "8 k", "1.5k", "-8k", "8M", "4194304k"}) {
    EXPECT_EQ(refusal("--context", text), "--context " + std::string(text) + ": " + wanted);
  }
  EXPECT_EQ(workload({{"--context", "4194303k"}})->context, 4'294'966'272U);
}

TEST(WorkloadOf, CountsHaveNoUnit) {
  EXPECT_EQ(refusal("--batch", "8k"), "--batch 8k: wanted a whole number of 1 or more");
}

}  // namespace
}  // namespace muster
