#include "cache/sha256.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace muster {
namespace {

// Fetched once: EVP_sha256() looks it up in the providers at each use.
// Source: OpenSSL 3.0, crypto(7), "Performance".
const EVP_MD* algorithm() {
  static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return fetched;
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

// OpenSSL refuses here only when it is out of memory or configured without SHA-256.
Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  MUSTER_CHECK(context_ != nullptr);
  MUSTER_CHECK(EVP_DigestInit_ex2(context_.get(), algorithm(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  MUSTER_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

void Sha256::update(std::string_view bytes) { update(std::as_bytes(std::span(bytes))); }

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  MUSTER_CHECK(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()),
                                  nullptr) == 1);
  MUSTER_CHECK(EVP_DigestInit_ex2(context_.get(), nullptr, nullptr) == 1);
  return digest;
}

Sha256Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

}  // namespace muster
