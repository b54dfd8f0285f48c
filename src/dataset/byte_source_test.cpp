#include "dataset/byte_source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/unique_fd.h"

namespace muster {
namespace {

// Its other end stays open and silent; no signal comes while it is waited for, as when one came
// just before.
TEST(ByteSource, ASilentPipeIsLeftWhenItsReaderIsInterrupted) {
  const auto path = std::filesystem::path(testing::TempDir()) /
                    ("byte_source." + std::to_string(::getpid()) + ".fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const UniqueFd other_end(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(other_end.is_open());
  int looks = 0;
  const auto source = open_raw_source(path.string(), [&] { return ++looks == 3; });
  std::filesystem::remove(path);
  ASSERT_TRUE(source) << source.error().message;
  std::array<char, 16> bytes{};
  ASSERT_EQ(::write(other_end.get(), "abc", 3), 3);
  const auto first = (*source)->read(bytes);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(*first, 3U);
  const auto ended = (*source)->read(bytes);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind, ErrorKind::Cancelled);
  EXPECT_EQ(looks, 3);
}

}  // namespace
}  // namespace muster
