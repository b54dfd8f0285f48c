// OpenSSL behind the Transport interface. It reads and writes through a BIO of our own over the
// socket, since OpenSSL's raises SIGPIPE. Either direction may need the other first (needs_write
// says so), so callers wait for what the outcome names and not for what they wanted. Head and
// body of a small answer become one record.

#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "net/socket_address.h"
#include "net/tls_files.h"

namespace muster {
namespace {

// Source: RFC 9325, section 4.2, and RFC 8446; the suites of TLS 1.3 are OpenSSL's, all of them
// good.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr std::size_t kRecordBytes = 16 << 10;  // the most that one record carries
constexpr std::string_view kSessionContext = "muster";
constexpr std::string_view kHttp11 = "http/1.1";

struct SocketState {
  int fd = -1;
  bool has_ended = false;
};

// OpenSSL's own BIO for sockets raises SIGPIPE when the peer has gone.
int socket_write(BIO* bio, const char* data, int size) {
  const auto& state = *static_cast<SocketState*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto sent =
      ::send(state.fd, data, static_cast<std::size_t>(size), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int socket_read(BIO* bio, char* data, int size) {
  auto& state = *static_cast<SocketState*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto taken = ::recv(state.fd, data, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (taken == 0) state.has_ended = true;
  if (taken < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(taken);
}

long socket_control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  if (command == BIO_CTRL_EOF) return static_cast<SocketState*>(BIO_get_data(bio))->has_ended;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

Openssl<BIO_METHOD> make_socket_method() {
  Openssl<BIO_METHOD> method(
      BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "muster socket"));
  MUSTER_CHECK(method);
  BIO_meth_set_write(method.get(), socket_write);
  BIO_meth_set_read(method.get(), socket_read);
  BIO_meth_set_ctrl(method.get(), socket_control);
  return method;
}

// The common name, unless it is no text.
std::string common_name(const X509& certificate) {
  const auto* const subject = X509_get_subject_name(&certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return {};
  unsigned char* bytes = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&bytes, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return {};
  std::string name(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return name.find('\0') == std::string::npos ? name : std::string();
}

class OpensslContext;

class TlsTransport final : public Transport {
 public:
  TlsTransport(std::shared_ptr<OpensslContext> context, Openssl<SSL> ssl, int fd,
               BIO_METHOD& method)
      : context_(std::move(context)), ssl_(std::move(ssl)), socket_{fd} {
    BIO* const bio = BIO_new(&method);
    MUSTER_CHECK(bio != nullptr);
    BIO_set_data(bio, &socket_);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);  // which owns it now
  }

  IoOutcome handshake() override;
  IoOutcome read(std::span<char> buffer) override;
  IoOutcome write(std::string_view head, std::string_view body) override;
  void end() override;
  std::string peer_name() const override { return peer_name_; }
  std::string problem() const override { return problem_; }

 private:
  IoOutcome outcome_of(int result);

  std::shared_ptr<OpensslContext> context_;
  Openssl<SSL> ssl_;
  SocketState socket_;
  bool is_broken_ = false;  // OpenSSL must not be called again
  std::string peer_name_;
  std::string problem_;
};

class OpensslContext final : public TlsContext {
 public:
  explicit OpensslContext(const SSL_METHOD* method) : context(SSL_CTX_new(method)) {
    MUSTER_CHECK(context);
    auto* const it = context.get();
    SSL_CTX_set_min_proto_version(it, TLS1_2_VERSION);
    MUSTER_CHECK(SSL_CTX_set_cipher_list(it, kCiphers) == 1);
    SSL_CTX_set_options(it, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    // An idle connection gives its buffers back; what is sent again may lie elsewhere.
    SSL_CTX_set_mode(it, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                             SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  }

  std::unique_ptr<Transport> accept(int fd) override {
    auto ssl = make();
    SSL_set_accept_state(ssl.get());
    return transport(std::move(ssl), fd);
  }

  std::unique_ptr<Transport> connect(int fd, const std::string& host) override {
    auto ssl = make();
    SSL_set_connect_state(ssl.get());
    if (SocketAddress::parse(host)) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host.c_str());
    } else {
      SSL_set1_host(ssl.get(), host.c_str());
      SSL_set_tlsext_host_name(ssl.get(), host.c_str());
    }
    return transport(std::move(ssl), fd);
  }

  const Openssl<SSL_CTX> context;
  std::string record;  // head and body of an answer as one record; empty between calls

 private:
  Openssl<SSL> make() {
    Openssl<SSL> ssl(SSL_new(context.get()));
    MUSTER_CHECK(ssl);
    return ssl;
  }

  std::unique_ptr<Transport> transport(Openssl<SSL> ssl, int fd) {
    return std::make_unique<TlsTransport>(
        std::static_pointer_cast<OpensslContext>(shared_from_this()), std::move(ssl), fd, *method_);
  }

  const Openssl<BIO_METHOD> method_ = make_socket_method();
};

IoOutcome TlsTransport::outcome_of(int result) {
  if (result > 0) return {IoOutcome::Kind::Done, static_cast<std::size_t>(result)};
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return {IoOutcome::Kind::Later};
  if (error == SSL_ERROR_WANT_WRITE) return {.kind = IoOutcome::Kind::Later, .needs_write = true};
  if (error == SSL_ERROR_ZERO_RETURN) return {IoOutcome::Kind::End};
  is_broken_ = true;
  const auto reason = ERR_GET_REASON(ERR_peek_last_error());
  const auto verified = SSL_get_verify_result(ssl_.get());
  if (socket_.has_ended) {
    problem_ = "the connection was closed";
  } else if (verified != X509_V_OK) {
    problem_ = X509_verify_cert_error_string(verified);
  } else {
    problem_ = take_openssl_error();
  }
  ERR_clear_error();
  return {.kind = socket_.has_ended ? IoOutcome::Kind::End : IoOutcome::Kind::Failed,
          .is_plain_http = reason == SSL_R_HTTP_REQUEST};
}

IoOutcome TlsTransport::handshake() {
  ERR_clear_error();
  const auto outcome = outcome_of(SSL_do_handshake(ssl_.get()));
  if (outcome.kind != IoOutcome::Kind::Done) return outcome;
  const auto* const peer = SSL_get0_peer_certificate(ssl_.get());
  if (peer != nullptr && SSL_get_verify_result(ssl_.get()) == X509_V_OK) {
    peer_name_ = common_name(*peer);
  }
  return outcome;
}

IoOutcome TlsTransport::read(std::span<char> buffer) {
  if (is_broken_) return {IoOutcome::Kind::Failed};
  ERR_clear_error();
  return outcome_of(SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size())));
}

IoOutcome TlsTransport::write(std::string_view head, std::string_view body) {
  if (is_broken_) return {IoOutcome::Kind::Failed};
  ERR_clear_error();
  auto bytes = head.empty() ? body : head;
  if (!head.empty() && !body.empty() && head.size() < kRecordBytes) {
    context_->record.assign(head).append(body.substr(0, kRecordBytes - head.size()));
    bytes = context_->record;
  }
  const auto size = std::min(bytes.size(), kRecordBytes);
  return outcome_of(SSL_write(ssl_.get(), bytes.data(), static_cast<int>(size)));
}

// Without "close notify" a peer cannot tell the end of a message from an attacker's cut.
void TlsTransport::end() {
  if (!is_broken_ && SSL_is_init_finished(ssl_.get()) != 0) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());  // "close notify"; if it cannot be sent now, the end must do
    ERR_clear_error();
  }
  ::shutdown(socket_.fd, SHUT_WR);
}

// Clients that offer HTTP/2 too are told which it is.
int select_protocol(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned offered_size, void* /*unused*/) {
  std::string wire(1, static_cast<char>(kHttp11.size()));
  wire += kHttp11;
  for (unsigned at = 0; at < offered_size; at += 1U + offered[at]) {
    const std::string_view rest(reinterpret_cast<const char*>(offered) + at, offered_size - at);
    if (!rest.starts_with(wire)) continue;
    *out = offered + at + 1;
    *out_size = static_cast<unsigned char>(kHttp11.size());
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_NOACK;
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::for_server(const TlsOptions& options) {
  auto made = std::make_shared<OpensslContext>(TLS_server_method());
  auto& context = *made->context;
  SSL_CTX_set_options(&context, SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_alpn_select_cb(&context, select_protocol, nullptr);
  MUSTER_TRY(use_identity(context, options.certificate_file, options.key_file));
  // What a resumed session knows of its client is bound to this server.
  SSL_CTX_set_session_id_context(&context,
                                 reinterpret_cast<const unsigned char*>(kSessionContext.data()),
                                 kSessionContext.size());
  SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_OFF);  // tickets need none
  if (!options.client_ca_file.empty()) {
    MUSTER_TRY(use_authorities(context, options.client_ca_file, true));
    SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return std::shared_ptr<TlsContext>(std::move(made));
}

Result<std::shared_ptr<TlsContext>> TlsContext::for_client(const TlsClientOptions& options) {
  auto made = std::make_shared<OpensslContext>(TLS_client_method());
  auto& context = *made->context;
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER, nullptr);
  if (options.ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(&context);
  } else {
    MUSTER_TRY(use_authorities(context, options.ca_file, false));
  }
  if (!options.certificate_file.empty()) {
    MUSTER_TRY(use_identity(context, options.certificate_file, options.key_file));
  }
  return std::shared_ptr<TlsContext>(std::move(made));
}

}  // namespace muster
