#include "net/unix_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "net/http_client.h"
#include "net/http_server.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class UnixSocketTest : public ::testing::Test {
 protected:
  UnixSocketTest() {
    std::string name = ::testing::TempDir() + "muster_unix_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~UnixSocketTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // What a server leaves that was killed: the file, and nobody behind it.
  void leave_stale(const std::string& name) const {
    const auto address = unix_address(path(name));
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
  }

  fs::path folder_;
};

TEST_F(UnixSocketTest, ListensWithTheModeAndTakesItsFileAway) {
  {
    const auto listener = UnixListener::listen({.path = path("s")});
    ASSERT_TRUE(listener) << listener.error().message;
    EXPECT_EQ(fs::status(path("s")).permissions(), fs::perms(0600));
    EXPECT_TRUE(fs::is_socket(path("s")));
  }
  EXPECT_FALSE(fs::exists(path("s")));
  const auto open = UnixListener::listen({.path = path("t"), .mode = 0666});
  ASSERT_TRUE(open);
  EXPECT_EQ(fs::status(path("t")).permissions(), fs::perms(0666));
}

TEST_F(UnixSocketTest, TakesThePlaceOfASocketThatNobodyListensOn) {
  leave_stale("s");
  const auto listener = UnixListener::listen({.path = path("s")});
  ASSERT_TRUE(listener) << listener.error().message;
  const auto second = UnixListener::listen({.path = path("s")});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(second.error().message,
            path("s") +
                ": another program listens there: end it, or name another path with "
                "--unix-socket");
  EXPECT_TRUE(fs::is_socket(path("s"))) << "the refused one must not take it away";
}

// That of a logger is in use, and no stream can be connected to it.
TEST_F(UnixSocketTest, LeavesASocketAloneThatItCannotConnectTo) {
  const auto address = unix_address(path("log"));
  const UniqueFd logger(::socket(AF_UNIX, SOCK_DGRAM, 0));
  ASSERT_EQ(::bind(logger.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
  const auto listener = UnixListener::listen({.path = path("log")});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(listener.error().message,
            path("log") +
                ": a socket is there, and whether it is in use cannot be told (Protocol wrong type "
                "for socket): remove it, or name another path with --unix-socket");
  EXPECT_TRUE(fs::is_socket(path("log")));
}

TEST_F(UnixSocketTest, LeavesOtherFilesAlone) {
  std::ofstream(path("notes")) << "text";
  const auto over = UnixListener::listen({.path = path("notes")});
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(over.error().message, path("notes") +
                                      ": a file is there that is no socket, and it is left as it "
                                      "is: name another path with --unix-socket");
  EXPECT_EQ(fs::file_size(path("notes")), 4U);
  fs::create_symlink(path("notes"), path("link"));
  EXPECT_FALSE(UnixListener::listen({.path = path("link")}));
  const auto nowhere = UnixListener::listen({.path = path("no/such/s")});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().message,
            path("no/such/s") + ": cannot listen there: No such file or directory");
}

TEST_F(UnixSocketTest, DoesNotTakeAwayWhatIsAnothersByNow) {
  auto listener = UnixListener::listen({.path = path("s")});
  ASSERT_TRUE(listener);
  fs::rename(path("s"), path("moved"));
  leave_stale("s");
  listener->close();
  EXPECT_TRUE(fs::exists(path("s")));
  EXPECT_TRUE(fs::exists(path("moved")));
}

TEST_F(UnixSocketTest, NamesTheLimitOfAPath) {
  EXPECT_TRUE(unix_address(std::string(107, 'a')));
  const auto longer = unix_address(std::string(108, 'a'));
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().message, "the path of a Unix socket has 1 to 107 bytes: \"" +
                                        std::string(108, 'a') + "\" has 108");
  EXPECT_FALSE(unix_address(""));
}

TEST_F(UnixSocketTest, AServerAnswersOnBothItsPortAndItsSocket) {
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  options.unix_socket = UnixSocketOptions{.path = path("s")};
  auto server = HttpServer::start(options, [](HttpRequest request, const HttpRespond& respond) {
    respond({.body = request.peer.substr(0, request.peer.find(':')) +
                     (request.is_loopback_peer ? " here " : " elsewhere ") +
                     std::string(request.header("Host").value_or(""))});
  });
  ASSERT_TRUE(server) << server.error().message;
  auto by_path = HttpClient::open("unix:" + path("s"));
  ASSERT_TRUE(by_path);
  EXPECT_EQ((*by_path)->call("GET", "/")->body, "unix here localhost");
  EXPECT_EQ((*by_path)->call("GET", "/")->body, "unix here localhost") << "the connection is kept";
  auto by_port = HttpClient::open("http://127.0.0.1:" + std::to_string((*server)->port()));
  EXPECT_TRUE((*by_port)->call("GET", "/")->body.starts_with("127.0.0.1 here 127.0.0.1:"));

  server->reset();
  EXPECT_FALSE(fs::exists(path("s")));
  auto late = HttpClient::open("unix:" + path("s"));
  const auto refused = (*late)->call("GET", "/");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(refused.error().message,
            "unix:" + path("s") + ": cannot connect: No such file or directory");
}

TEST_F(UnixSocketTest, AServerMayHaveNoPortAtAll) {
  HttpServerOptions options;
  options.listens_on_port = false;
  options.unix_socket = UnixSocketOptions{.path = path("s")};
  auto server = HttpServer::start(
      options, [](HttpRequest, const HttpRespond& respond) { respond({.body = "well"}); });
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_EQ((*server)->port(), 0);
  EXPECT_EQ((*HttpClient::open("unix:" + path("s")))->call("GET", "/")->body, "well");
  server->reset();
  EXPECT_FALSE(fs::exists(path("s")));
}

TEST_F(UnixSocketTest, AUrlOfAPathIsRead) {
  const auto url = parse_http_url("unix:/run/muster.sock");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->unix_path, "/run/muster.sock");
  EXPECT_EQ(url->address(), "unix:/run/muster.sock");
  EXPECT_FALSE(parse_http_url("unix:"));
}

}  // namespace
}  // namespace muster
