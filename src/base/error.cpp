// One table of all kinds with name and exit code, in the order of ErrorKind; its size is checked by
// the compiler. Errors of the system become kinds here and nowhere else, so that a full disk has
// the same exit code in every command.

#include "base/error.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace muster {
namespace {

struct KindRow {
  std::string_view name;
  int exit_code;
};

// In the order of ErrorKind; the codes are the table of docs/errors.md.
constexpr std::array<KindRow, kErrorKindCount> kKinds{{
    {"InvalidArgument", 2},
    {"NotFound", 3},
    {"Unsupported", 4},
    {"ResourceExhausted", 8},
    {"DeadlineExceeded", 5},
    {"Unavailable", 6},
    {"Corrupt", 7},
    {"Cancelled", 9},
    {"Internal", 10},
}};

const KindRow& row_of(ErrorKind kind) { return kKinds.at(static_cast<std::size_t>(kind)); }

ErrorKind kind_of_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
      return ErrorKind::NotFound;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return ErrorKind::ResourceExhausted;
    case EACCES:
    case EPERM:
    case EISDIR:
    case ENOTDIR:
    case EROFS:
    case ENAMETOOLONG:
      return ErrorKind::InvalidArgument;
    case EPIPE:
    case ECONNRESET:
      return ErrorKind::Unavailable;
    default:
      return ErrorKind::Internal;
  }
}

}  // namespace

std::string_view error_kind_name(ErrorKind kind) { return row_of(kind).name; }

int exit_code(ErrorKind kind) { return row_of(kind).exit_code; }

Error system_error(std::string_view subject, std::string_view action, int error_number) {
  return Error{kind_of_errno(error_number),
               fmt::format("{}: cannot {}: {}", subject, action,
                           std::generic_category().message(error_number))};
}

}  // namespace muster
