#include "server/access.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

HttpRequest request_with(HttpHeaders headers, bool is_loopback = true) {
  HttpRequest request;
  request.method = "POST";
  request.headers = std::move(headers);
  request.is_loopback_peer = is_loopback;
  return request;
}

TEST(Access, AdministrationWithoutKeysIsForThisMachine) {
  for (const std::string host : {"localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000"}) {
    EXPECT_TRUE(check_local_admin(request_with({{"Host", host}}))) << host;
  }
  EXPECT_FALSE(check_local_admin(request_with({{"Host", "localhost"}}, false)));
}

// A page may have its own name resolved to 127.0.0.1 ("DNS rebinding"); the browser still sends the
// name.
TEST(Access, AnotherNameOfThisMachineIsRefused) {
  for (const std::string host : {"example.com", "example.com:8000", "localhost.example.com", ""}) {
    const auto outcome = check_local_admin(request_with({{"Host", host}}));
    ASSERT_FALSE(outcome) << host;
    EXPECT_EQ(outcome.error().status, 403);
  }
  EXPECT_FALSE(check_local_admin(request_with({})));
}

// A reverse proxy on this machine connects from 127.0.0.1 for the whole world, and may well be set
// to send `Host: localhost`.
TEST(Access, WhatAProxyForwardsIsNotFromThisMachine) {
  for (const std::string name :
       {"Forwarded", "forwarded", "Via", "X-Real-IP", "X-Forwarded-For", "X-FORWARDED-HOST",
        "X-Forwarded-Proto", "True-Client-IP", "CF-Connecting-IP"}) {
    const auto outcome =
        check_local_admin(request_with({{"Host", "localhost:8000"}, {name, "203.0.113.7"}}));
    ASSERT_FALSE(outcome) << name;
    EXPECT_EQ(outcome.error().status, 403);
    EXPECT_NE(outcome.error().message.find("proxy"), std::string::npos);
  }
  EXPECT_TRUE(check_local_admin(request_with({{"Host", "localhost"}, {"X-Request-Id", "1"}})));
}

TEST(Access, SettingsWithoutKeysAreAskedByAddress) {
  for (const std::string host : {"localhost:8000", "127.0.0.1", "192.168.1.7:8000", "[::1]:8000",
                                 "[2001:db8::1]", "gpu-box:8000"}) {
    EXPECT_TRUE(check_host(request_with({{"Host", host}}))) << host;
  }
  for (const std::string host :
       {"example.com", "localhost.example.com:8000", "1.2.3.4.example.com"}) {
    const auto outcome = check_host(request_with({{"Host", host}}));
    ASSERT_FALSE(outcome) << host;
    EXPECT_EQ(outcome.error().status, 403);
  }
}

TEST(Access, BodiesAreJson) {
  const auto embed = RouteScope::Embed;
  EXPECT_TRUE(check_content_type(request_with({{"Content-Type", "application/json"}}), embed));
  EXPECT_TRUE(check_content_type(
      request_with({{"content-type", "Application/JSON; charset=utf-8"}}), embed));
  EXPECT_TRUE(check_content_type(request_with({}), embed));
  const HttpHeaders curls{{"Content-Type", "application/x-www-form-urlencoded"}};  // its own choice
  EXPECT_TRUE(check_content_type(request_with(curls), embed));
  const auto outcome = check_content_type(request_with({{"Content-Type", "text/plain"}}), embed);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, 415);
}

// What is not unpacked or recoded here must not be read as something else.
TEST(Access, BodiesAreNotPackedAndInUtf8) {
  const auto status_of = [](HttpHeaders headers) {
    const auto outcome = check_content_type(request_with(std::move(headers)), RouteScope::Embed);
    return outcome ? 200 : outcome.error().status;
  };
  EXPECT_EQ(status_of({{"Content-Encoding", "gzip"}}), 415);
  EXPECT_EQ(status_of({{"Content-Encoding", "Identity"}}), 200);
  EXPECT_EQ(status_of({{"Content-Type", "application/json; charset=utf-16"}}), 415);
  EXPECT_EQ(status_of({{"Content-Type", "application/json; charset=\"UTF-8\""}}), 200);
  EXPECT_EQ(status_of({{"Content-Type", "application/json; charset=us-ascii"}}), 200);
}

// "Simple" requests of another origin's page carry text/plain or no type at all.
TEST(Access, AdministrationDemandsTheTypeThatAPageMustAskFor) {
  EXPECT_FALSE(check_content_type(request_with({}), RouteScope::Admin));
  const HttpHeaders form{{"Content-Type", "application/x-www-form-urlencoded"}};
  EXPECT_FALSE(check_content_type(request_with(form), RouteScope::Admin));
  EXPECT_TRUE(
      check_content_type(request_with({{"Content-Type", "application/json"}}), RouteScope::Admin));
}

}  // namespace
}  // namespace muster
