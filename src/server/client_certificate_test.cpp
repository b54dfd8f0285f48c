// Whom a client certificate names, on a whole server.

#include <set>

#include "net/test_certificates.h"
#include "server/server_fixture.h"

namespace muster {
namespace {

class ClientCertificateTest : public ServerFixture {};

TEST_F(ClientCertificateTest, ItsNameIsInEveryLineOfTheAuditLog) {
  const testing::TestFolder files;
  const auto authority = testing::make_identity({.name = "authority"});
  const auto server =
      testing::make_identity({.name = "server", .alternatives = "IP:127.0.0.1"}, &authority);
  const auto jane = testing::make_identity({.name = "jane"}, &authority);
  const auto ca = files.write("ca.pem", authority.certificate);
  options_.http.tls = TlsOptions{files.write("server.pem", server.certificate),
                                 files.write("server.key", server.key), ca};
  client_tls_ = {ca, files.write("jane.pem", jane.certificate), files.write("jane.key", jane.key)};
  options_.http.limits.body_bytes = 1000;
  options_.audit_file = folder_ / "audit.jsonl";
  start();
  // Of a route, of none, and refused before it was whole: each is told of in a place of its own.
  EXPECT_EQ(get("/v1/models").status, 200);
  EXPECT_EQ(get("/nowhere").status, 404);
  EXPECT_EQ(post("/v1/embeddings", std::string(2000, ' ')).status, 413);
  loop_.stop();
  thread_.join();
  server_.reset();
  std::ifstream file(options_.audit_file);
  std::set<int> seen;
  for (std::string line; std::getline(file, line);) {
    const auto entry = Json::parse(line);
    EXPECT_EQ(entry.value("client", ""), "jane") << line;
    seen.insert(entry["status"].get<int>());
  }
  for (const int status : {200, 404, 413}) EXPECT_TRUE(seen.contains(status)) << status;
}

}  // namespace
}  // namespace muster
