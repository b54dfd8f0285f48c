#include "net/socket_address.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(SocketAddress, ReadsAndWritesBothKinds) {
  for (const auto& [host, text] : {std::pair{"192.0.2.7", "192.0.2.7:80"}, {"::1", "[::1]:80"}}) {
    auto address = SocketAddress::parse(host);
    ASSERT_TRUE(address) << host;
    address->set_port(80);
    EXPECT_EQ(address->text(), text);
    EXPECT_EQ(address->port(), 80);
  }
  EXPECT_FALSE(SocketAddress::parse("localhost"));
  EXPECT_FALSE(SocketAddress::parse("127.0.0.256"));
}

TEST(SocketAddress, KnowsThisMachine) {
  for (const char* host : {"127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(SocketAddress::parse(host)->is_loopback()) << host;
  }
  for (const char* host : {"128.0.0.1", "10.127.0.1", "::", "fe80::1", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(SocketAddress::parse(host)->is_loopback()) << host;
  }
}

}  // namespace
}  // namespace muster
