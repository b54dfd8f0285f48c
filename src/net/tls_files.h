#pragma once

#include <openssl/ssl.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"

namespace muster {

/// Frees what OpenSSL has made.
struct OpensslFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(BIO_METHOD* method) const { BIO_meth_free(method); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <typename T>
using Openssl = std::unique_ptr<T, OpensslFree>;

/// Shows the certificate chain and its key. Errors: as TlsContext's.
Status use_identity(SSL_CTX& context, const std::filesystem::path& certificate_file,
                    const std::filesystem::path& key_file);

/// Trusts the certificates of a file; with `is_asked` clients are also told of them.
Status use_authorities(SSL_CTX& context, const std::filesystem::path& file, bool is_asked);

/// What OpenSSL says went wrong last; its queue is empty then.
std::string take_openssl_error();

}  // namespace muster
