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

TEST(Access, BodiesAreJson) {
  const auto embed = RouteScope::Embed;
  EXPECT_TRUE(check_content_type(request_with({{"Content-Type", "application/json"}}), embed));
  EXPECT_TRUE(check_content_type(
      request_with({{"content-type", "Application/JSON; charset=utf-8"}}), embed));
  EXPECT_TRUE(check_content_type(request_with({}), embed));
  const auto outcome = check_content_type(request_with({{"Content-Type", "text/plain"}}), embed);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, 415);
}

// "Simple" requests of another origin's page carry text/plain or no type at all.
TEST(Access, AdministrationDemandsTheTypeThatAPageMustAskFor) {
  EXPECT_FALSE(check_content_type(request_with({}), RouteScope::Admin));
  EXPECT_TRUE(
      check_content_type(request_with({{"Content-Type", "application/json"}}), RouteScope::Admin));
}

}  // namespace
}  // namespace muster
