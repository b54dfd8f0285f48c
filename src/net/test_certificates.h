#pragma once

#include <filesystem>
#include <string>

namespace muster::testing {

/// A certificate and its key as PEM text.
struct TestIdentity {
  std::string certificate;
  std::string key;
};

struct TestCertificate {
  std::string name;               // the common name
  std::string alternatives = {};  // "IP:127.0.0.1,DNS:localhost"; empty: none
  int days = 1;                   // from yesterday on; negative: it is over
};

/// Made anew (P-256). issuer: who signs it; nullptr: it signs itself and may sign others.
TestIdentity make_identity(const TestCertificate& wanted, const TestIdentity* issuer = nullptr);

/// A folder of its own that is removed at the end.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::filesystem::path write(const std::string& name, const std::string& content) const;
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_;
};

}  // namespace muster::testing
