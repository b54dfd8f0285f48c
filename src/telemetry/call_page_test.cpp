#include "telemetry/call_page.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace muster {
namespace {

using std::chrono::milliseconds;

TEST(CallPage, TellsTheCallThatASlotIsIn) {
  auto page = CallPage::create();
  ASSERT_TRUE(page);
  EXPECT_FALSE(page->in_progress(3));
  page->enter(3, page->add_function("nvmlDeviceGetFieldValues"), TimePoint(milliseconds(5)));
  const auto call = page->in_progress(3);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->function, "nvmlDeviceGetFieldValues");
  EXPECT_EQ(call->since, TimePoint(milliseconds(5)));
  page->leave(3);
  EXPECT_FALSE(page->in_progress(3));
}

TEST(CallPage, ALongNameIsCut) {
  auto page = CallPage::create();
  ASSERT_TRUE(page);
  const std::string name(100, 'x');
  page->enter(0, page->add_function(name.c_str()), TimePoint(milliseconds(1)));
  EXPECT_EQ(page->in_progress(0)->function, std::string(47, 'x'));
}

TEST(CallPage, AFunctionHasOneNumber) {
  auto page = CallPage::create();
  ASSERT_TRUE(page);
  const auto first = page->add_function("first");
  EXPECT_NE(page->add_function("second"), first);
  EXPECT_EQ(page->add_function(std::string("first").c_str()), first);
}

TEST(CallPage, AFunctionTooManyHasNoNameButIsInProgress) {
  auto page = CallPage::create();
  ASSERT_TRUE(page);
  for (std::uint32_t i = 0; i < CallPage::kFunctionsMax; ++i) {
    page->add_function(std::to_string(i).c_str());
  }
  page->enter(0, page->add_function("one more"), TimePoint(milliseconds(1)));
  EXPECT_EQ(page->in_progress(0)->function, "");
}

TEST(CallPage, SlotsPastTheLastAreNotKept) {
  auto page = CallPage::create();
  ASSERT_TRUE(page);
  page->enter(CallPage::kDevicesMax + 1, page->add_function("f"), TimePoint(milliseconds(1)));
  EXPECT_FALSE(page->in_progress(CallPage::kDevicesMax + 1));
  page->leave(CallPage::kDevicesMax + 1);
}

TEST(CallPage, AfterACrashTheOtherProcessKnowsInWhoseCallItWas) {
  auto page = CallPage::create();
  ASSERT_TRUE(page);
  const pid_t child = ::fork();
  if (child == 0) {
    page->note_crashes();
    page->enter(1, page->add_function("quick"), TimePoint(milliseconds(1)));
    page->leave(1);
    page->enter(2, page->add_function("broken"), TimePoint(milliseconds(2)));
    std::raise(SIGSEGV);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
  EXPECT_EQ(page->crashed_slot(), 2U);
  EXPECT_EQ(page->in_progress(2)->function, "broken");
  page->clear();
  EXPECT_FALSE(page->crashed_slot());
  EXPECT_FALSE(page->in_progress(2));
}

}  // namespace
}  // namespace muster
