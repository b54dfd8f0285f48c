// Which calls for replies are let in, and what they are charged, on real worker processes that
// count (stand_ins/counting_worker).
#include "serving/generation_fixture.h"

namespace muster {
namespace {

class GenerationAdmissionTest : public GenerationServiceTest {};

// ---- A caller's own limits ----

TEST_F(GenerationAdmissionTest, EachReplyOfACallCountsForItsCallersRequests) {
  start("wait_at=1");
  service_->set_limits({{"ci", {.requests_at_once = 2}}, {"slow", {.requests_per_minute = 4}}});
  Outcome two;
  ask({.caller = "ci", .text = "a", .choice_count = 2}, two);
  EXPECT_FALSE(two.error) << message(two);
  Outcome third;
  ask({.caller = "ci", .text = "a"}, third);
  EXPECT_EQ(message(third), "key ci: 2 requests at once");
  EXPECT_EQ(third.error->error.kind, ErrorKind::ResourceExhausted);

  Outcome three;
  ask({.caller = "slow", .text = "a", .choice_count = 3}, three);
  EXPECT_FALSE(three.error) << message(three);
  Outcome more;
  ask({.caller = "slow", .text = "a", .choice_count = 2}, more);
  EXPECT_EQ(message(more), "key slow has used its 4 requests a minute");
  EXPECT_EQ(service_->status().limited_count, 2U);
}

// Nobody should come again with it.
TEST_F(GenerationAdmissionTest, MoreRepliesThanACallerMayHaveAreNotHisToAskFor) {
  start("wait_at=1");
  service_->set_limits({{"ci", {.requests_at_once = 2}}});
  Outcome outcome;
  ask({.caller = "ci", .text = "a", .choice_count = 1, .candidate_count = 3}, outcome);
  EXPECT_EQ(message(outcome), "key ci: 2 requests at once, and 3 are asked for");
  EXPECT_EQ(outcome.error->error.kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(outcome.error->field, CallField::Choices);
  EXPECT_FALSE(outcome.error->retry_after);
  EXPECT_EQ(service_->status().limited_count, 0U);
}

}  // namespace
}  // namespace muster
