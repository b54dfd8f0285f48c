// TLS of the server and the client, with certificates that are made here.
#include "net/tls.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "net/connect_fixture.h"
#include "net/http_caller_fixture.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/test_certificates.h"
#include "net/tls_files.h"

namespace muster {
namespace {

using testing::make_identity;
using testing::TestFolder;

class Tls : public ::testing::Test {
 protected:
  Tls() : authority_(make_identity({.name = "authority"})) {
    ca_ = folder_.write("ca.pem", authority_.certificate);
    options_ = write("server", {.name = "server", .alternatives = "IP:127.0.0.1"});
  }

  // An identity that the authority has signed, as files.
  TlsOptions write(const std::string& name, const testing::TestCertificate& wanted) {
    const auto identity = make_identity(wanted, &authority_);
    return {folder_.write(name + ".pem", identity.certificate),
            folder_.write(name + ".key", identity.key),
            {}};
  }

  void start() {
    HttpServerOptions options;
    options.listen = {"127.0.0.1", 0};
    options.tls = options_;
    auto server =
        HttpServer::start(options, [](const HttpRequest& request, const HttpRespond& respond) {
          respond({.body = "hello " + request.client_name + request.body});
        });
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  Result<HttpAnswer> ask(const TlsClientOptions& tls, std::string_view body = {}) {
    const auto url = "https://127.0.0.1:" + std::to_string(server_->port());
    auto client = HttpClient::open(url, {.tls = tls});
    if (!client) return client.error();
    return (*client)->call("POST", "/", {}, body);
  }

  TestFolder folder_;
  testing::TestIdentity authority_;
  std::filesystem::path ca_;
  TlsOptions options_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Tls, CarriesRequestsAndLongAnswersOverOneConnection) {
  start();
  auto client = HttpClient::open("https://127.0.0.1:" + std::to_string(server_->port()),
                                 {.tls = {.ca_file = ca_}});
  ASSERT_TRUE(client) << client.error().message;
  const std::string long_body(5 << 20, 'x');
  for (const std::string& body : {std::string("you"), long_body, std::string("again")}) {
    const auto answer = (*client)->call("POST", "/", {}, body);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 200);
    EXPECT_TRUE(answer->body == "hello " + body) << answer->body.size();
  }
}

TEST_F(Tls, CarriesThemOnALoopToo) {
  start();
  const auto target = HttpClientTarget::find("https://127.0.0.1:" + std::to_string(server_->port()),
                                             {.ca_file = ca_});
  ASSERT_TRUE(target) << target.error().message;
  const std::string long_body(3 << 20, 'y');
  const auto head = http_request_head(target->url, "POST", "/", {}, long_body.size());
  EventLoop loop;
  HttpCaller caller(loop, *target, {head + long_body, head + long_body});
  loop.run();
  EXPECT_EQ(caller.said, "connected sent 200 end sent 200 end ");
  EXPECT_TRUE(caller.body == "hello " + long_body + "hello " + long_body) << caller.body.size();
  EXPECT_FALSE(HttpClientTarget::find("https://127.0.0.1:1", {.ca_file = "none.pem"}));
}

TEST_F(Tls, IsNotTrustedWithoutItsAuthorityOrForAnotherName) {
  start();
  const auto other = make_identity({.name = "other"});
  const auto untrusted = ask({.ca_file = folder_.write("other.pem", other.certificate)});
  ASSERT_FALSE(untrusted);
  EXPECT_EQ(untrusted.error().kind, ErrorKind::Unavailable);
  EXPECT_NE(untrusted.error().message.find("unable to get local issuer certificate"),
            std::string::npos)
      << untrusted.error().message;
  options_ = write("elsewhere", {.name = "elsewhere", .alternatives = "IP:192.0.2.1"});
  start();
  const auto misnamed = ask({.ca_file = ca_});
  ASSERT_FALSE(misnamed);
  EXPECT_NE(misnamed.error().message.find("IP address mismatch"), std::string::npos)
      << misnamed.error().message;
}

TEST_F(Tls, AsksForAClientCertificateAndTellsItsName) {
  options_.client_ca_file = ca_;
  start();
  const auto jane = write("jane", {.name = "jane"});
  const auto answer = ask({ca_, jane.certificate_file, jane.key_file}, "!");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "hello jane!");
  EXPECT_FALSE(ask({.ca_file = ca_})) << "no certificate";
  const auto stranger = make_identity({.name = "jane"});
  EXPECT_FALSE(ask({ca_, folder_.write("stranger.pem", stranger.certificate),
                    folder_.write("stranger.key", stranger.key)}))
      << "signed by nobody we know";
}

TEST_F(Tls, ShowsNewCertificatesAfterAReloadAndKeepsTheOldOnAnError) {
  EventLoop loop;
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  options.tls = options_;
  auto server = HttpServer::start(options, loop, [](const HttpRequest&, const HttpRespond&) {});
  ASSERT_TRUE(server);
  EXPECT_FALSE((*server)->reload_tls({folder_.path("none.pem"), options_.key_file, {}}));
  const auto renewed = write("renewed", {.name = "renewed", .alternatives = "IP:127.0.0.1"});
  EXPECT_TRUE((*server)->reload_tls(renewed));
  options.tls.reset();
  auto plain = HttpServer::start(options, loop, [](const HttpRequest&, const HttpRespond&) {});
  ASSERT_TRUE(plain);
  const auto refused = (*plain)->reload_tls(renewed);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
}

TEST_F(Tls, SaysWhatIsWrongWithItsFiles) {
  const auto expect = [](const TlsOptions& options, ErrorKind kind, const std::string& part) {
    const auto context = TlsContext::for_server(options);
    ASSERT_FALSE(context);
    EXPECT_EQ(context.error().kind, kind);
    EXPECT_NE(context.error().message.find(part), std::string::npos) << context.error().message;
  };
  const auto& [certificate, key, none] = options_;
  expect({folder_.path("none.pem"), key, {}}, ErrorKind::NotFound, "none.pem");
  expect({key, key, {}}, ErrorKind::InvalidArgument, "server.key: no certificate in PEM form");
  expect({certificate, certificate, {}}, ErrorKind::InvalidArgument,
         "server.pem: no private key in PEM form");
  const auto other = write("other", {.name = "other"});
  expect({certificate, other.key_file, {}}, ErrorKind::InvalidArgument,
         "other.key: this is not the key of the certificate " + certificate.string());
  const auto old = write("old", {.name = "old", .days = -2});
  expect(old, ErrorKind::InvalidArgument, "old.pem: the certificate has expired: ");
  expect({certificate, key, key}, ErrorKind::InvalidArgument,
         "server.key: no certificate in PEM form");
  const Openssl<EVP_PKEY> secret(EVP_EC_gen("P-256"));
  const Openssl<BIO> text(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(text.get(), secret.get(), EVP_aes_128_cbc(), nullptr, 0, nullptr,
                           const_cast<char*>("passphrase"));
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(text.get(), &bytes);
  const auto locked =
      folder_.write("locked.key", std::string(bytes, static_cast<std::size_t>(size)));
  expect({certificate, locked, {}}, ErrorKind::InvalidArgument,
         "locked.key: the key has a passphrase");
}

// What a server says to bytes that are not TLS, until it closes.
std::string answer_to(std::uint16_t port, std::string_view bytes) {
  const UniqueFd socket = connect_to(port);
  EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  std::string text;
  std::array<char, 4096> chunk{};
  for (;;) {
    const auto size = ::recv(socket.get(), chunk.data(), chunk.size(), 0);
    if (size <= 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(size));
  }
}

TEST_F(Tls, TellsPlainHttpWhereItHasComeAndClosesOnNonsense) {
  start();
  const auto told = answer_to(server_->port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(told.starts_with("HTTP/1.1 400 Bad Request\r\n")) << told;
  EXPECT_TRUE(told.ends_with("this port speaks TLS: use https://\n")) << told;
  const auto closed = answer_to(server_->port(), "\x01\x02 this is nothing at all \x03\x04");
  EXPECT_EQ(closed.find("HTTP"), std::string::npos) << "an alert at most";
  const auto answer = ask({.ca_file = ca_});
  EXPECT_TRUE(answer) << "others are served";
}

TEST_F(Tls, ARequestOnAPlainPortThatBeginsLikeTlsIsRefused) {
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  auto plain = HttpServer::start(options, [](const HttpRequest&, const HttpRespond&) {});
  ASSERT_TRUE(plain);
  const auto told = answer_to(
      (*plain)->port(), std::string_view("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\r\n\r\n", 14));
  EXPECT_TRUE(told.starts_with("HTTP/1.1 400 Bad Request\r\n")) << told;
}

}  // namespace
}  // namespace muster
