#include "cli/memory_size.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(ParseMemorySize, CountsAsDockerDoes) {
  EXPECT_EQ(*parse_memory_size("--shm-size", "1g"), 1ULL << 30);
  EXPECT_EQ(*parse_memory_size("--shm-size", "2GiB"), 2ULL << 30);
  EXPECT_EQ(*parse_memory_size("--shm-size", "64MB"), 64ULL << 20);
  EXPECT_EQ(*parse_memory_size("--shm-size", "4096"), 4096U);
  EXPECT_EQ(*parse_memory_size("--shm-size", "1b"), 1U);
  for (const auto* text : {"", "g", "0", "-1g", "1x", "1gg", "1.5g", "20000000t"}) {
    const auto size = parse_memory_size("--shm-size", text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().message,
              "--shm-size is a size such as 512m or 1g: \"" + std::string(text) + "\"");
  }
}

}  // namespace
}  // namespace muster
