#include <gtest/gtest.h>

#include "net/http_server.h"

namespace muster {
namespace {

TEST(ParseListenAddress, TakesAnAddressAndAPort) {
  struct Case {
    const char* text;
    const char* host;
    std::uint16_t port;
  };
  for (const auto& [text, host, port] :
       {Case{"127.0.0.1:9400", "127.0.0.1", 9400}, Case{"[::1]:0", "::1", 0},
        Case{"localhost:65535", "localhost", 65535}}) {
    SCOPED_TRACE(text);
    const auto address = parse_listen_address(text);
    ASSERT_TRUE(address) << address.error().message;
    EXPECT_EQ(address->host, host);
    EXPECT_EQ(address->port, port);
  }
}

TEST(ParseListenAddress, ShowsTheRightForm) {
  for (const char* text :
       {"", ":9400", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:9400", "127.0.0.1:9400x",
        "127.0.0.1:-1", "[]:1", "300.1.1.1:9400", "host:9400"}) {
    SCOPED_TRACE(text);
    const auto address = parse_listen_address(text);
    ASSERT_FALSE(address);
    EXPECT_EQ(address.error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(address.error().message, std::string("not an address to listen on: \"") + text +
                                           "\"; it looks like 127.0.0.1:8000 or [::1]:8000");
  }
}

}  // namespace
}  // namespace muster
