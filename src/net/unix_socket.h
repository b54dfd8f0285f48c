#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster {

/// A socket in the file system that a server listens on.
struct UnixSocketOptions {
  std::string path;
  std::uint32_t mode = 0600;  // who may connect: whoever may write the file
};

/// The address of a path. Errors: InvalidArgument: an empty path, or one that is too long for the
/// system (107 bytes). Source: unix(7).
Result<sockaddr_un> unix_address(std::string_view path);

/// Listens on a Unix socket and takes its file away again.
///
/// What lies at the path gives way only if it is a socket on which nobody listens, such as one that
/// a killed server has left; of two servers that begin at once, one gets it. Nobody can connect
/// before the file has its mode.
///
/// Threads: not thread-safe.
class UnixListener {
 public:
  UnixListener() = default;

  /// Errors: Unavailable (a program listens there, or may do so), InvalidArgument (another kind of
  /// file, no folder, no permission, those of `unix_address`).
  static Result<UnixListener> listen(const UnixSocketOptions& options);
  ~UnixListener() { close(); }
  UnixListener(UnixListener&& other) noexcept;
  UnixListener& operator=(UnixListener&& other) noexcept;

  int fd() const { return fd_.get(); }

  /// The file goes unless it is another's by now.
  void close();

 private:
  UniqueFd fd_;
  std::string path_;
  dev_t device_ = 0;  // of the file, by which it is known again
  ino_t inode_ = 0;
};

/// Who is at the other end of a Unix socket: the effective user when it connected; no value where
/// the system does not tell.
struct UnixPeer {
  bool is_known = false;
  uid_t user = 0;

  static UnixPeer of(int fd);
  /// The user of this process, or root.
  bool is_own_user() const;
  /// "unix:1000".
  std::string text() const;
};

}  // namespace muster
