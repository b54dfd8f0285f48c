// Workers that end before they were ready: when they count as such that cannot start.

#include "coordinator/decoder_workers_fixture.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Three lives: the fourth is tried all the same, and may do better.
TEST_F(DecoderWorkersTest, OneWhoseWorkersEndBeforeTheyWereReadyCannotStart) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  processes_->groups[0].output = "told to exit\n";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(workers_->view(0).start_failure, "");
    pass(milliseconds(0));
    die(0, {.reason = "exit code 3", .is_own_fault = true});
  }
  EXPECT_EQ(workers_->view(0).start_failure, "its worker ended with exit code 3");
  EXPECT_EQ(workers_->view(0).reason,
            "its worker ended with exit code 3; it last said: told to exit");
  pass(seconds(31));
  EXPECT_EQ(workers_->view(0).start_failure, "its worker ended with exit code 3");
  ASSERT_NO_FATAL_FAILURE(load(0));
  EXPECT_EQ(workers_->view(0).start_failure, "");
  for (int i = 0; i < 3; ++i) {
    die(0, kAborted);
    pass(seconds(31));
  }
  EXPECT_EQ(workers_->view(0).start_failure, "") << "it has been ready";
}

// As by a system without memory, which may have some later.
TEST_F(DecoderWorkersTest, OneThatIsKilledFromOutsideMayStartYet) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  for (int i = 0; i < 5; ++i) {
    die(0, kKilled);
    pass(seconds(31));
  }
  EXPECT_FALSE(workers_->can_work());
  EXPECT_EQ(workers_->view(0).start_failure, "");
}

TEST_F(DecoderWorkersTest, OnlyFaultsInARowMeanThatOneCannotStart) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  for (const auto& death : {kAborted, kAborted, kKilled, kAborted, kAborted}) {
    die(0, death);
    pass(seconds(31));
    EXPECT_EQ(workers_->view(0).start_failure, "");
  }
  die(0, kAborted);
  EXPECT_EQ(workers_->view(0).start_failure, "its worker ended with signal 6 (Aborted)");
}

// It came so far as to look for memory.
TEST_F(DecoderWorkersTest, OneThatOnlyFoundNoMemoryInBetweenMayStartYet) {
  options_.waits_for_memory = true;
  ASSERT_NO_FATAL_FAILURE(make(1));
  for (int i = 0; i < 2; ++i) {
    die(0, kAborted);
    pass(milliseconds(0));
  }
  ASSERT_NO_FATAL_FAILURE(fail_load(0, ErrorKind::ResourceExhausted));
  die(0, kExited);
  pass(seconds(1));
  die(0, kAborted);
  EXPECT_EQ(start_count(0), 4U);
  EXPECT_EQ(workers_->view(0).start_failure, "");
}

}  // namespace
}  // namespace muster
