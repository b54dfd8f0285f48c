#pragma once

#include <filesystem>

namespace muster {

/// What a server shows and asks for; PEM files.
struct TlsOptions {
  std::filesystem::path certificate_file =
      {};                               // the server's first, then those that lead to its root
  std::filesystem::path key_file = {};  // without a passphrase
  std::filesystem::path client_ca_file = {};  // empty: clients need no certificate; else they do
};

/// What a client trusts and shows; PEM files.
struct TlsClientOptions {
  std::filesystem::path ca_file = {};           // empty: the system's
  std::filesystem::path certificate_file = {};  // empty: none is shown
  std::filesystem::path key_file = {};
};

}  // namespace muster
