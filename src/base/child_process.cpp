// What every parent of a child process needs: descriptors that are closed on exec, so that no other
// child inherits them, and a standard error that is kept only as its last few kilobytes, because
// those are what explains a death.

#include "base/child_process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace muster {
namespace {

constexpr std::size_t kPieceSize = 4096;
constexpr std::size_t kTailSize = 4096;

// The kernel doubles what is asked for, to count its own records, and tells the double. It grants
// less than it is asked for without an error. Source: man 7 socket, SO_SNDBUF.
void widen_send_buffer(int socket) {
  int now = 0;
  socklen_t size = sizeof now;
  if (::getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &now, &size) != 0) return;
  if (now >= 2 * kSendBufferWanted) return;
  const int wanted = kSendBufferWanted;
  (void)::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted);
}

}  // namespace

std::filesystem::path program_beside(std::string_view name) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / name;
}

Result<ChildPipes> open_child_pipes(std::string_view who) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return system_error(std::string(who) + " socket", "create", errno);
  }
  ChildPipes pipes;
  pipes.socket_here.reset(sockets[0]);
  pipes.socket_there.reset(sockets[1]);
  widen_send_buffer(sockets[1]);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return system_error(std::string(who) + " pipe", "create", errno);
  }
  pipes.stderr_read.reset(ends[0]);
  pipes.stderr_write.reset(ends[1]);
  ::fcntl(pipes.stderr_read.get(), F_SETFL, O_NONBLOCK);
  return pipes;
}

Result<UniqueFd> copy_above(int last, int fd, std::string_view who) {
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, last + 1));
  if (!copy.is_open()) return system_error(std::string(who), "copy a descriptor", errno);
  return copy;
}

std::string read_child_output(UniqueFd& pipe) {
  std::array<char, kPieceSize> piece{};
  ssize_t size = -1;
  do {
    size = ::read(pipe.get(), piece.data(), piece.size());
  } while (size < 0 && errno == EINTR);
  if (size == 0) pipe.reset();
  return size > 0 ? std::string(piece.data(), static_cast<std::size_t>(size)) : std::string();
}

void keep_child_output(std::string& tail, std::string_view text) {
  tail += text;
  if (tail.size() > kTailSize) tail.erase(0, tail.size() - kTailSize);
}

bool is_fault_signal(int number) {
  return number == SIGSEGV || number == SIGABRT || number == SIGBUS || number == SIGILL ||
         number == SIGFPE || number == SIGTRAP || number == SIGSYS;
}

void kill_process(const UniqueFd& pidfd) {
  ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
}

}  // namespace muster
