#include "jobs/embed_identity.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// A run of an earlier version has an entry more, and goes on with it.
TEST(EmbedIdentityTest, ARunThatGoesOnKeepsTheEntryOfBadRecords) {
  const RunIdentity now{{"--normalize", "on"}, {"the model", "9f"}, {"the precision", "bf16"}};
  const RunIdentity then{
      {"--normalize", "on"}, {"--skip-bad", "off"}, {"the model", "9f"}, {"the precision", "bf16"}};
  EXPECT_EQ(identity_as_begun(now, then), then);
  EXPECT_EQ(identity_as_begun(now, now), now);
  EXPECT_EQ(identity_as_begun(now, {}), now);
  EXPECT_EQ(identity_as_asked({}, then), identity_as_asked({}, now)) << "of a finished output";
}

}  // namespace
}  // namespace muster
