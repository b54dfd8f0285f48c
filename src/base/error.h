#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace muster {

/// The one list of failure kinds. Each maps to one HTTP status and one exit code (docs/errors.md).
enum class ErrorKind : std::uint8_t {
  InvalidArgument,    // the caller can fix it
  NotFound,           // names something that is not there
  Unsupported,        // well formed, but this build or machine cannot do it
  ResourceExhausted,  // a stated limit is reached; retry later
  DeadlineExceeded,   // the time allowed ran out
  Unavailable,        // a peer or driver is gone; may come back
  Corrupt,            // data on disk or on the wire breaks its own format
  Cancelled,          // someone asked us to stop
  Internal,           // our own fault: a bug, or a library's exception nobody foresaw
};

/// How many kinds there are; a kind read from outside is checked against it.
inline constexpr std::uint8_t kErrorKindCount = 9;

/// A failure as a value: it crosses threads, processes and HTTP unchanged.
struct Error {
  ErrorKind kind;
  std::string message;  // a fixed sentence first, the values last: "KV cache is full: 512 blocks"
};

/// The name as it is printed and sent: "InvalidArgument".
std::string_view error_kind_name(ErrorKind kind);

/// The process exit code of a command that ends with this kind. Source: docs/errors.md.
int exit_code(ErrorKind kind);

/// The Error of this kind that says `message`: for the kinds that parsers give most.
inline Error invalid_error(std::string message) {
  return {ErrorKind::InvalidArgument, std::move(message)};
}
inline Error corrupt_error(std::string message) { return {ErrorKind::Corrupt, std::move(message)}; }

/// The Error for a failed system call, with `errno` put into words and mapped to a kind: ENOENT is
/// NotFound; ENOSPC, EDQUOT, EFBIG, ENOMEM, EMFILE and ENFILE are ResourceExhausted; EACCES, EPERM,
/// EISDIR, ENOTDIR, EROFS and ENAMETOOLONG are InvalidArgument (the caller named the wrong thing);
/// EPIPE and ECONNRESET are Unavailable; the rest is Internal. Example: `/data/x.npy: cannot write:
/// No space left on device`.
Error system_error(std::string_view subject, std::string_view action, int error_number);

}  // namespace muster
