// Listening on a path has two gaps that a port does not have: a killed server leaves its file
// behind, and the file is there with some mode before it has the wanted one. The first is closed by
// asking whether anybody listens, under a lock on the folder; the second by giving the mode between
// bind and listen, as nobody can connect before listen.
#include "net/unix_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace muster {
namespace {

Error refused(const std::string& path, std::string_view what, int error) {
  return {ErrorKind::InvalidArgument,
          fmt::format("{}: cannot {}: {}", path, what, std::strerror(error))};
}

// Held for as long as it lives: servers that begin in the same folder come one after the other.
Result<UniqueFd> lock_folder_of(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return refused(path, "listen there", errno);
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return refused(path, "listen there", errno);
  }
  return fd;
}

// Why nobody can be connected to; 0: somebody was.
int connecting_error(const sockaddr_un& address) {
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* const place = reinterpret_cast<const sockaddr*>(&address);
  const bool is_connected = probe.is_open() && ::connect(probe.get(), place, sizeof address) == 0;
  return is_connected ? 0 : errno;
}

Status make_room(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) {
    return errno == ENOENT ? Status(Done{}) : Status(refused(path, "listen there", errno));
  }
  if (!S_ISSOCK(found.st_mode)) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: a file is there that is no socket, and it is left as it is: name "
                             "another path with --unix-socket",
                             path)};
  }
  const int error = connecting_error(address);
  // EAGAIN: somebody listens, and the queue of those who want in is full.
  if (error == 0 || error == EAGAIN || error == EINPROGRESS) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("{}: another program listens there: end it, or name another path with "
                             "--unix-socket",
                             path)};
  }
  // What else bars the way, such as a mode or another type of socket, says nothing of who is behind
  // it. Source: connect(2), unix(7).
  if (error != ECONNREFUSED && error != ENOENT) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("{}: a socket is there, and whether it is in use cannot be told ({}): "
                             "remove it, or name another path with --unix-socket",
                             path, std::strerror(error))};
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return refused(path, "take the place of a socket that nobody listens on", errno);
  }
  return Done{};
}

}  // namespace

Result<sockaddr_un> unix_address(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  constexpr std::size_t kSizeMost = sizeof address.sun_path - 1;
  if (path.empty() || path.size() > kSizeMost || path.find('\0') != path.npos) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("the path of a Unix socket has 1 to {} bytes: \"{}\" has {}",
                             kSizeMost, path, path.size())};
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

Result<UnixListener> UnixListener::listen(const UnixSocketOptions& options) {
  const auto address = MUSTER_TRY(unix_address(options.path));
  const auto lock = MUSTER_TRY(lock_folder_of(options.path));
  MUSTER_TRY(make_room(options.path, address));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return refused(options.path, "listen there", errno);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return refused(options.path, "listen there", errno);
  }
  UnixListener listener;
  listener.fd_ = std::move(fd);
  struct stat made {};
  if (::lstat(options.path.c_str(), &made) != 0) {
    return refused(options.path, "listen there", errno);
  }
  listener.path_ = options.path;
  listener.device_ = made.st_dev;
  listener.inode_ = made.st_ino;
  if (::chmod(options.path.c_str(), options.mode) != 0) {
    return refused(options.path, "set its mode", errno);
  }
  if (::listen(listener.fd_.get(), SOMAXCONN) != 0) {
    return refused(options.path, "listen there", errno);
  }
  return listener;
}

UnixListener::UnixListener(UnixListener&& other) noexcept { *this = std::move(other); }

UnixListener& UnixListener::operator=(UnixListener&& other) noexcept {
  if (this == &other) return *this;
  close();
  fd_ = std::move(other.fd_);
  path_ = std::exchange(other.path_, {});
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

// The file first: while this listens, no other server takes the path.
void UnixListener::close() {
  struct stat found {};
  const bool is_ours = !path_.empty() && ::lstat(path_.c_str(), &found) == 0 &&
                       found.st_dev == device_ && found.st_ino == inode_;
  if (is_ours) ::unlink(path_.c_str());
  path_.clear();
  fd_.reset();
}

UnixPeer UnixPeer::of(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return {};
  return {.is_known = true, .user = credentials.uid};
}

bool UnixPeer::is_own_user() const { return is_known && (user == ::geteuid() || user == 0); }

std::string UnixPeer::text() const {
  return is_known ? fmt::format("unix:{}", user) : std::string("unix");
}

}  // namespace muster
