#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "net/tls_options.h"
#include "net/transport.h"

namespace muster {

/// Certificates and rules that many connections share: TLS 1.2 and 1.3, forward secrecy, AEAD
/// ciphers alone, no renegotiation. Its transports keep it alive.
///
/// Threads: its transports are used on one thread at a time.
/// Source: RFC 9325, "Recommendations for Secure Use of TLS and DTLS".
class TlsContext : public std::enable_shared_from_this<TlsContext> {
 public:
  /// Errors: NotFound (no such file); InvalidArgument, naming the file and what is wrong with it:
  /// not PEM, a key with a passphrase or of another certificate, expired, not valid yet.
  static Result<std::shared_ptr<TlsContext>> for_server(const TlsOptions& options);
  static Result<std::shared_ptr<TlsContext>> for_client(const TlsClientOptions& options);

  virtual ~TlsContext() = default;

  /// The server's side of a connection; the descriptor stays the caller's.
  virtual std::unique_ptr<Transport> accept(int fd) = 0;

  /// The client's side; the server must show a valid certificate for `host` (a name or address).
  virtual std::unique_ptr<Transport> connect(int fd, const std::string& host) = 0;
};

}  // namespace muster
