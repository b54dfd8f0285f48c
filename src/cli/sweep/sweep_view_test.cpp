#include "cli/sweep/sweep_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

Json record_of(int batch, double rate, bool is_valid = true) {
  Json record{{"valid", is_valid}};
  record["config"] = {{"batch_size", batch}, {"torch_dtype", "fp32"}, {"device_ids", {0, 1}}};
  for (const auto* key :
       {"throughput_output_tokens_per_second", "avg_time_to_first_token", "p99_latency_seconds"}) {
    record["summary"][key] = nullptr;
  }
  record["summary"]["throughput_prompts_per_second"] = rate;
  record["summary"]["min_latency_seconds"] = 0.001;
  record["summary"]["avg_latency_seconds"] = 0.0123;
  record["summary"]["p95_latency_seconds"] = nullptr;
  record["summary"]["max_latency_seconds"] = 0.2;
  record["summary"]["failed_prompts"] = 0;
  record["energy"]["joules_per_prompt"] = nullptr;
  return record;
}

TEST(SweepText, HasARowForEachPointAndTheBestFirst) {
  auto known = record_of(8, 812.4);
  known["summary"]["p95_latency_seconds"] = 0.0301;
  const auto text = sweep_text({record_of(1, 100), known, record_of(32, 900, false)},
                               {"batch_size", "device_ids"}, 120);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "highest throughput: batch_size=8 device_ids=0,1, 812 prompts/s")
      << text;
  EXPECT_NE(text.find("batch_size  device_ids  prompts/s"), std::string::npos) << text;
  EXPECT_EQ(text.find("J/prompt"), std::string::npos) << "nobody knows it";
  EXPECT_NE(text.find("30.1"), std::string::npos);
  EXPECT_NE(text.find("  -  "), std::string::npos) << "of one point it is not known";
  EXPECT_NE(text.find("INVALID"), std::string::npos);
}

TEST(SweepText, SaysWhereNothingCanBeTrusted) {
  EXPECT_EQ(sweep_text({}, {}, 80), "no point was measured\n");
  EXPECT_TRUE(sweep_text({record_of(1, 5, false)}, {}, 80).starts_with("no point is valid\n"));
  EXPECT_TRUE(sweep_text({record_of(1, 5)}, {}, 80).starts_with("5 prompts/s\n"));
  auto unknown = record_of(8, 5);
  unknown["summary"]["throughput_prompts_per_second"] = nullptr;
  EXPECT_TRUE(sweep_text({record_of(1, 5, false), unknown}, {}, 80).starts_with("- prompts/s\n"))
      << "one point is valid";
}

TEST(SweepText, SaysWhyPointsAreInvalid) {
  auto late = record_of(8, 5, false);
  late["invalid_reasons"] = {"the load generator was late", 7};
  const auto text = sweep_text({record_of(1, 5), late}, {"batch_size"}, 80);
  EXPECT_NE(text.find("\nbatch_size=8 is INVALID: the load generator was late\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(sweep_text({record_of(1, 5)}, {}, 80).find("INVALID"), std::string::npos);
  const auto many = sweep_text(std::vector<Json>(7, late), {"batch_size"}, 80);
  EXPECT_NE(many.find("and 2 more: invalid_reasons in the table\n"), std::string::npos) << many;
}

TEST(SweepText, SaysThatARowIsNotSteady) {
  auto rising = record_of(1, 5);
  rising["summary"]["steady"] = false;
  EXPECT_NE(sweep_text({rising}, {}, 120).find("not steady"), std::string::npos);
  rising["summary"]["steady"] = nullptr;
  EXPECT_EQ(sweep_text({rising}, {}, 120).find("not steady"), std::string::npos);
}

// A file that was changed by hand holds any number.
TEST(SweepText, ShowsAnyNumber) {
  EXPECT_TRUE(sweep_text({record_of(1, 1e19)}, {}, 80).starts_with("10000000000000000000 "));
}

TEST(OtherBuildsText, SaysWhichPointsOtherBuildsHaveMeasured) {
  RecordTable table;
  for (const auto* build : {"0.1.0 (abc)", "0.1.0 (def)", "0.1.0 (abc)"}) {
    table.put({{"point", std::string("p") + std::to_string(table.row_count())},
               {"backend_info", {{"build", build}}}});
  }
  EXPECT_EQ(other_builds_text(table, "x.csv", "0.1.0 (abc)", false),
            "x.csv has 1 point of another build of muster (0.1.0 (def)): kept beside those of this "
            "one");
  EXPECT_EQ(other_builds_text(table, "x.csv", "0.2.0", true),
            "x.csv has 3 points of another build of muster (0.1.0 (abc), 0.1.0 (def)): the server "
            "is what is measured, so they count");
  EXPECT_EQ(other_builds_text({}, "x.csv", "0.2.0", false), "");
}

TEST(SweepText, FitsTheTerminal) {
  const auto text = sweep_text({record_of(1, 100)}, {"batch_size", "torch_dtype"}, 60);
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    EXPECT_LE(end - at, 60U) << text.substr(at, end - at);
    at = end + 1;
  }
}

}  // namespace
}  // namespace muster
