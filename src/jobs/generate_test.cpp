#include "jobs/generate.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

std::string error_of(const GenerateOptions& options) {
  const SteadyClock clock;
  const auto report = generate_text(options, {}, clock, [] { return false; });
  EXPECT_FALSE(report);
  if (report) return {};
  EXPECT_EQ(report.error().kind, ErrorKind::InvalidArgument);
  return report.error().message;
}

// Before the model is looked for: the regex engine reads on behind a text that breaks off.
TEST(GenerateText, RefusesWhatIsNotUtf8) {
  GenerateOptions options;
  options.prompt = "Why\xE4";
  EXPECT_EQ(error_of(options), "the prompt is not UTF-8 at byte 3");
  options.prompt = "Why?";
  options.system = "\xFF";
  EXPECT_EQ(error_of(options), "the system's text is not UTF-8 at byte 0");
}

// A worker that was sent no token took that for a fault of its own and died.
TEST(GenerateText, RefusesAnEmptyPromptBeforeAWorkerIsStarted) {
  EXPECT_EQ(error_of({}), "the prompt is empty: there is nothing to continue");
}

}  // namespace
}  // namespace muster
