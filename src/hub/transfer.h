#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http_message.h"

namespace muster {

/// The status and headers of an answer; of the last one where redirects were followed.
struct TransferHead {
  int status = 0;  // 0: none came
  HttpHeaders headers;
};

/// Why an answer is not whole.
enum class TransferFault : std::uint8_t {
  None,
  Unreachable,  // no such name, no connection, a proxy that refuses
  Untrusted,    // the certificate
  Refused,      // too many redirects, or one to another protocol
  Broken,       // the connection ended, or nothing came for too long
};

struct TransferEnd {
  TransferHead head;
  TransferFault fault = TransferFault::None;
  std::string fault_text;  // in libcurl's words
};

struct TransferRequest {
  std::string url;
  std::string token;       // goes to the URL's own host alone, never to where it redirects
  std::uint64_t from = 0;  // asks for the bytes from there on; the answer may be whole all the same
};

/// Called with each piece of the body of the last answer. An Error ends the transfer with it.
using TransferTake = std::function<Status(const TransferHead&, std::string_view)>;

struct TransferOptions {
  std::string certificates;            // a file of certificate authorities; empty: libcurl's own
  std::function<bool()> is_cancelled;  // asked at least once a second while nothing comes
};

/// GET over HTTP and TLS by libcurl, one at a time over kept connections; proxies as libcurl reads
/// them (https_proxy, all_proxy, no_proxy). From https it is never redirected to http.
///
/// Threads: not thread-safe; one thread makes and uses it.
class Transfer {
 public:
  /// Errors: those of CurlLibrary::open.
  static Result<std::unique_ptr<Transfer>> open(TransferOptions options);
  virtual ~Transfer() = default;

  /// Errors: what `take` returned; Cancelled; those of check_keeps_tokens for a token. All else is
  /// told by the end.
  virtual Result<TransferEnd> get(const TransferRequest& request, const TransferTake& take) = 0;
};

}  // namespace muster
