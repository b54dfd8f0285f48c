#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace muster {
namespace {

TEST(ExitCode, IsTheTableOfDocsErrors) {
  EXPECT_EQ(exit_code(ErrorKind::InvalidArgument), 2);
  EXPECT_EQ(exit_code(ErrorKind::NotFound), 3);
  EXPECT_EQ(exit_code(ErrorKind::Unsupported), 4);
  EXPECT_EQ(exit_code(ErrorKind::DeadlineExceeded), 5);
  EXPECT_EQ(exit_code(ErrorKind::Unavailable), 6);
  EXPECT_EQ(exit_code(ErrorKind::Corrupt), 7);
  EXPECT_EQ(exit_code(ErrorKind::ResourceExhausted), 8);
  EXPECT_EQ(exit_code(ErrorKind::Cancelled), 9);
  EXPECT_EQ(exit_code(ErrorKind::Internal), 10);
}

TEST(ErrorKindName, NamesEachKindDifferently) {
  std::set<std::string_view> names;
  for (std::uint8_t i = 0; i < kErrorKindCount; ++i) {
    names.insert(error_kind_name(static_cast<ErrorKind>(i)));
  }
  EXPECT_EQ(names.size(), kErrorKindCount);
}

TEST(SystemError, NamesSubjectActionAndReason) {
  const auto error = system_error("/data/x.npy", "write", ENOSPC);
  EXPECT_EQ(error.kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(error.message, "/data/x.npy: cannot write: No space left on device");
}

TEST(SystemError, AMissingFileIsNotFound) {
  EXPECT_EQ(system_error("x", "open", ENOENT).kind, ErrorKind::NotFound);
}

}  // namespace
}  // namespace muster
