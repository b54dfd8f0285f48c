// Certificates and keys are checked when they are loaded and not at the first handshake, so that
// a reload with a bad file is an error and the old ones stay in use. Each message names the file
// and what is wrong with it. A key with a passphrase is refused, since a server has nobody to
// ask.

#include "net/tls_files.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <cstdint>

#include "base/file.h"

namespace muster {
namespace {

constexpr std::uint64_t kPemBytesMost = 4 << 20;  // a bundle of all public authorities is 0.2 MB

Error fault(const std::filesystem::path& file, std::string_view what) {
  return {ErrorKind::InvalidArgument, fmt::format("{}: {}", file.string(), what)};
}

// The text has to outlive what is returned.
Openssl<BIO> reader_of(const std::string& text) {
  return Openssl<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A program that serves asks nobody for a passphrase.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*is_writing*/, void* was_asked) {
  *static_cast<bool*>(was_asked) = true;
  return -1;
}

std::string time_text(const ASN1_TIME* time) {
  const Openssl<BIO> out(BIO_new(BIO_s_mem()));
  if (ASN1_TIME_print(out.get(), time) != 1) return "an unreadable date";
  char* text = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

Status check_dates(const X509& certificate, const std::filesystem::path& file) {
  const auto* const begin = X509_get0_notBefore(&certificate);
  const auto* const end = X509_get0_notAfter(&certificate);
  if (X509_cmp_current_time(end) < 0) {
    return fault(file, "the certificate has expired: " + time_text(end));
  }
  if (X509_cmp_current_time(begin) > 0) {
    return fault(file, "the certificate is not valid before " + time_text(begin));
  }
  return Done{};
}

Result<Openssl<EVP_PKEY>> read_key(const std::filesystem::path& file) {
  const auto text = MUSTER_TRY(read_file(file, kPemBytesMost));
  const auto reader = reader_of(text);
  bool was_asked = false;
  Openssl<EVP_PKEY> key(PEM_read_bio_PrivateKey(reader.get(), nullptr, no_passphrase, &was_asked));
  if (was_asked) return fault(file, "the key has a passphrase; it is read without one");
  if (!key) return fault(file, "no private key in PEM form: " + take_openssl_error());
  return key;
}

}  // namespace

std::string take_openssl_error() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "no reason is known" : reason;
}

Status use_identity(SSL_CTX& context, const std::filesystem::path& certificate_file,
                    const std::filesystem::path& key_file) {
  ERR_clear_error();
  const auto text = MUSTER_TRY(read_file(certificate_file, kPemBytesMost));
  const auto reader = reader_of(text);
  const Openssl<X509> own(PEM_read_bio_X509_AUX(reader.get(), nullptr, nullptr, nullptr));
  if (!own) {
    return fault(certificate_file, "no certificate in PEM form: " + take_openssl_error());
  }
  MUSTER_TRY(check_dates(*own, certificate_file));
  if (SSL_CTX_use_certificate(&context, own.get()) != 1) {
    return fault(certificate_file, take_openssl_error());
  }
  while (X509* const next = PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)) {
    SSL_CTX_add0_chain_cert(&context, next);  // which owns it now
  }
  ERR_clear_error();  // the end of the file counts as one
  const auto key = MUSTER_TRY(read_key(key_file));
  if (X509_check_private_key(own.get(), key.get()) != 1) {
    ERR_clear_error();
    return fault(key_file, "this is not the key of the certificate " + certificate_file.string());
  }
  if (SSL_CTX_use_PrivateKey(&context, key.get()) != 1) {
    return fault(key_file, take_openssl_error());
  }
  return Done{};
}

Status use_authorities(SSL_CTX& context, const std::filesystem::path& file, bool is_asked) {
  ERR_clear_error();
  const auto text = MUSTER_TRY(read_file(file, kPemBytesMost));
  const auto reader = reader_of(text);
  int count = 0;
  for (;; ++count) {
    const Openssl<X509> authority(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr));
    if (!authority) break;
    X509_STORE_add_cert(SSL_CTX_get_cert_store(&context), authority.get());
    if (is_asked) SSL_CTX_add_client_CA(&context, authority.get());
  }
  if (count == 0) return fault(file, "no certificate in PEM form: " + take_openssl_error());
  ERR_clear_error();
  return Done{};
}

}  // namespace muster
