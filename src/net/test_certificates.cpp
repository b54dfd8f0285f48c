// Certificates for tests, made anew each time, so that none in the repository can expire. Keys
// are P-256, which are quicker to make than RSA keys.

#include "net/test_certificates.h"

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <fstream>

#include "net/tls_files.h"

namespace muster::testing {
namespace {

constexpr long kDay = 24L * 60 * 60;

std::string text_of(const Openssl<BIO>& bio) {
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

void extend(X509& certificate, int kind, const std::string& value) {
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(&certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

template <typename Read>
auto read_pem(const std::string& text, Read read) {
  const Openssl<BIO> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  return read(bio.get(), nullptr, nullptr, nullptr);
}

}  // namespace

TestIdentity make_identity(const TestCertificate& wanted, const TestIdentity* issuer) {
  const Openssl<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Openssl<X509> certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  static std::atomic<long> serial = 1;
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kDay * (wanted.days < 0 ? 9 : 1));
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kDay * wanted.days);
  auto* const subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(wanted.name.data()),
                             static_cast<int>(wanted.name.size()), -1, 0);
  X509_set_pubkey(certificate.get(), key.get());
  if (!wanted.alternatives.empty()) {
    extend(*certificate, NID_subject_alt_name, wanted.alternatives);
  }
  if (issuer == nullptr) {
    extend(*certificate, NID_basic_constraints, "critical,CA:TRUE");
    X509_set_issuer_name(certificate.get(), subject);
    X509_sign(certificate.get(), key.get(), EVP_sha256());
  } else {
    const Openssl<X509> other(read_pem(issuer->certificate, PEM_read_bio_X509));
    const Openssl<EVP_PKEY> other_key(read_pem(issuer->key, PEM_read_bio_PrivateKey));
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(other.get()));
    X509_sign(certificate.get(), other_key.get(), EVP_sha256());
  }
  const Openssl<BIO> certificate_text(BIO_new(BIO_s_mem()));
  const Openssl<BIO> key_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(certificate_text.get(), certificate.get());
  PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {text_of(certificate_text), text_of(key_text)};
}

TestFolder::TestFolder() {
  auto pattern = (std::filesystem::temp_directory_path() / "muster-net-XXXXXX").string();
  EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::filesystem::path TestFolder::write(const std::string& name, const std::string& content) const {
  std::ofstream(folder_ / name) << content;
  return folder_ / name;
}

}  // namespace muster::testing
