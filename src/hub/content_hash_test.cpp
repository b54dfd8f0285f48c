#include "hub/content_hash.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// `printf 'hello\n' | git hash-object --stdin` and `printf 'hello\n' | sha256sum`.
TEST(ContentHash, IsWhatGitAndSha256sumSay) {
  ContentHash git(HashKind::GitBlob, 6);
  git.update("hel");
  git.update("lo\n");
  EXPECT_EQ(git.finish(), "ce013625030ba8dba906f756967f9e9ca394464a");
  ContentHash lfs(HashKind::Sha256, 6);
  lfs.update("hello\n");
  EXPECT_EQ(lfs.finish(), "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
}

// git's well-known empty blob.
TEST(ContentHash, OfNothing) {
  EXPECT_EQ(ContentHash(HashKind::GitBlob, 0).finish(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

}  // namespace
}  // namespace muster
