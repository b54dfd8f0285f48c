#include "server/request_id.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace muster {
namespace {

TEST(RequestId, AClientsOwnIsKept) {
  EXPECT_EQ(request_id_for("job-7.part_3"), "job-7.part_3");
  EXPECT_EQ(request_id_for(std::string(128, 'x')), std::string(128, 'x'));
}

TEST(RequestId, WhatCouldForgeALineOfALogIsNotKept) {
  for (const std::string& given : {std::string(), std::string(129, 'x'), std::string("a b"),
                                   std::string("a\nb"), std::string("\"}"), std::string("é")}) {
    const auto made = request_id_for(given);
    EXPECT_EQ(made.size(), 32) << given;
    EXPECT_EQ(made.find_first_not_of("0123456789abcdef"), std::string::npos);
  }
}

TEST(RequestId, EachMadeOneIsAnother) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(request_id_for(std::nullopt));
  EXPECT_EQ(ids.size(), 1000);
}

}  // namespace
}  // namespace muster
