// HTTP and TLS by libcurl, one transfer at a time over one handle whose connections are kept. Every
// limit on time is one of progress: a connection must come up within 10 s and bytes must keep
// coming, while a whole file may take hours. A token goes only to the host that it is for:
// redirects to another host lose it, https is never left, and a libcurl that would not keep to that
// is refused.

#include "hub/transfer.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/build_info.h"
#include "base/text.h"
#include "hub/curl_library.h"

namespace muster {
namespace {

// libcurl's own type for numbers.
using CurlLong = long;  // NOLINT(google-runtime-int)

// Source: huggingface_hub 2.x, constants.py: 10 s for a connection.
constexpr CurlLong kConnectSeconds = 10;
// A stream that gives nothing for so long is taken for dead; a busy mirror pauses for less.
constexpr CurlLong kStallSeconds = 30;
// The hub redirects once or twice (an old name, the store of large files).
constexpr CurlLong kRedirectsMost = 10;
// What one call takes: large enough that hashing and writing, not calls, cost the time.
constexpr CurlLong kBufferBytes = 256 << 10;

TransferFault fault_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return TransferFault::None;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return TransferFault::Unreachable;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
      return TransferFault::Untrusted;
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return TransferFault::Refused;
    default:
      return TransferFault::Broken;
  }
}

// "HTTP/1.1 206 Partial Content", "HTTP/2 200"; 0 for anything else.
int status_in(std::string_view line) {
  const auto space = line.find(' ');
  int status = 0;
  if (space != std::string_view::npos) {
    std::from_chars(line.data() + space + 1, line.data() + line.size(), status);
  }
  return status;
}

// What the callbacks of one transfer work with.
struct Call {
  const TransferTake& take;
  const std::function<bool()>& is_cancelled;
  TransferHead head;
  std::optional<Error> error;
};

// libcurl is C: nothing may be thrown through it, and nothing here throws but a failed allocation.
std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& head = static_cast<Call*>(user)->head;
  const std::string_view line = trim({data, size * count});
  if (line.starts_with("HTTP/")) {
    head = {.status = status_in(line), .headers = {}};
  } else if (const auto colon = line.find(':'); colon != std::string_view::npos) {
    head.headers.emplace_back(line.substr(0, colon), trim(line.substr(colon + 1)));
  }
  return size * count;
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& call = *static_cast<Call*>(user);
  const auto taken = call.take(call.head, {data, size * count});
  if (taken) return size * count;
  call.error = taken.error();
  return size * count + 1;  // anything else than what came ends the transfer
}

int on_time(void* user, curl_off_t /*down_all*/, curl_off_t /*down*/, curl_off_t /*up_all*/,
            curl_off_t /*up*/) {
  return static_cast<Call*>(user)->is_cancelled() ? 1 : 0;
}

class CurlTransfer final : public Transfer {
 public:
  CurlTransfer(const CurlLibrary& curl, CURL* handle, TransferOptions options)
      : curl_(curl), handle_(handle), options_(std::move(options)) {}
  ~CurlTransfer() override { curl_.easy_cleanup(handle_); }
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  Result<TransferEnd> get(const TransferRequest& request, const TransferTake& take) override {
    if (!request.token.empty()) MUSTER_TRY(check_keeps_tokens(curl_.version));
    Call call{.take = take, .is_cancelled = options_.is_cancelled, .head = {}, .error = {}};
    std::array<char, CURL_ERROR_SIZE> words{};
    curl_.easy_reset(handle_);  // keeps the connections
    set_limits(request);
    set(CURLOPT_ERRORBUFFER, words.data());
    set(CURLOPT_HEADERFUNCTION, &on_header);
    set(CURLOPT_HEADERDATA, &call);
    set(CURLOPT_WRITEFUNCTION, &on_body);
    set(CURLOPT_WRITEDATA, &call);
    set(CURLOPT_XFERINFOFUNCTION, &on_time);
    set(CURLOPT_XFERINFODATA, &call);
    curl_slist* headers = nullptr;
    if (!request.token.empty()) {
      headers = curl_.slist_append(nullptr, ("Authorization: Bearer " + request.token).c_str());
      set(CURLOPT_HTTPHEADER, headers);
    }
    const auto code = curl_.easy_perform(handle_);
    curl_.slist_free_all(headers);
    if (call.error) return *std::move(call.error);
    if (code == CURLE_ABORTED_BY_CALLBACK) return Error{ErrorKind::Cancelled, "interrupted"};
    return TransferEnd{.head = std::move(call.head),
                       .fault = fault_of(code),
                       .fault_text = words[0] != '\0' ? words.data() : curl_.easy_strerror(code)};
  }

 private:
  template <typename Value>
  void set(CURLoption option, Value value) {
    // Every option here is one that all of libcurl's builds know.
    curl_.easy_setopt(handle_, option, value);
  }

  void set_limits(const TransferRequest& request) {
    const bool is_tls = request.url.starts_with("https:");
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS, CurlLong{CURLPROTO_HTTP | CURLPROTO_HTTPS});
    set(CURLOPT_REDIR_PROTOCOLS,
        is_tls ? CurlLong{CURLPROTO_HTTPS} : CurlLong{CURLPROTO_HTTP | CURLPROTO_HTTPS});
    set(CURLOPT_FOLLOWLOCATION, CurlLong{1});
    set(CURLOPT_MAXREDIRS, kRedirectsMost);
    set(CURLOPT_UNRESTRICTED_AUTH, CurlLong{0});
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, CurlLong{1});
    set(CURLOPT_LOW_SPEED_TIME, kStallSeconds);
    set(CURLOPT_BUFFERSIZE, kBufferBytes);
    set(CURLOPT_NOSIGNAL, CurlLong{1});
    set(CURLOPT_NOPROGRESS, CurlLong{0});
    set(CURLOPT_USERAGENT, user_agent_.c_str());
    if (request.from > 0) set(CURLOPT_RANGE, fmt::format("{}-", request.from).c_str());
    if (!options_.certificates.empty()) set(CURLOPT_CAINFO, options_.certificates.c_str());
  }

  const CurlLibrary curl_;
  CURL* const handle_;
  const TransferOptions options_;
  const std::string user_agent_ = fmt::format("muster/{}", version());
};

}  // namespace

Result<std::unique_ptr<Transfer>> Transfer::open(TransferOptions options) {
  const auto curl = MUSTER_TRY(CurlLibrary::open());
  CURL* handle = curl.easy_init();
  if (handle == nullptr) return Error{ErrorKind::ResourceExhausted, "libcurl gives no handle"};
  return std::unique_ptr<Transfer>(
      std::make_unique<CurlTransfer>(curl, handle, std::move(options)));
}

}  // namespace muster
