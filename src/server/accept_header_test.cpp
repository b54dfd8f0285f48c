#include "server/accept_header.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr std::string_view kRaw = "application/octet-stream";

TEST(AcceptHeader, NamesATypeAmongOthers) {
  for (const auto* accept :
       {"application/octet-stream", "application/json, Application/Octet-Stream",
        "application/json;q=0.5,application/octet-stream;q=0.001",
        "application/octet-stream ; q=1.0"}) {
    EXPECT_TRUE(names_type(accept, kRaw)) << accept;
  }
}

TEST(AcceptHeader, AWeightOfZeroAndAWildcardNameNothing) {
  for (const auto* accept :
       {"application/octet-stream;q=0", "application/octet-stream; Q=0.000, */*",
        "application/octet-stream;a=b;q=0", "*/*", "application/*", "",
        "x-application/octet-stream", "application/octet-streams"}) {
    EXPECT_FALSE(names_type(accept, kRaw)) << accept;
  }
}

}  // namespace
}  // namespace muster
