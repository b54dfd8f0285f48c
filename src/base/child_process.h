#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster {

/// Where a program that is installed with the running one lies: beside it. It need not be there.
std::filesystem::path program_beside(std::string_view name);

/// What joins a process that we start with us: a stream socket pair, and a pipe for what it prints.
/// All four are closed on exec; `stderr_read` does not block. What is sent from there may wait in
/// the socket up to kSendBufferWanted, as far as the kernel grants it (net.core.wmem_max).
struct ChildPipes {
  UniqueFd socket_here;
  UniqueFd socket_there;
  UniqueFd stderr_read;
  UniqueFd stderr_write;
};

/// Bytes: an answer of a worker, 1.2 MB of rows for 16,384 tokens, is sent at once and read by one
/// or two calls, instead of by one for each 200 KB that a socket holds by itself.
inline constexpr int kSendBufferWanted = 1 << 20;

/// who: what messages begin with: "worker". Errors: those of the system, ResourceExhausted when
/// there are no descriptors left.
Result<ChildPipes> open_child_pipes(std::string_view who);

/// A copy of a descriptor whose number is above `last`, closed on exec: no dup2 to a number up to
/// that closes it. who: as above. Errors: ResourceExhausted when there are no descriptors left.
Result<UniqueFd> copy_above(int last, int fd, std::string_view who);

/// Takes what a child has printed: the next piece, or empty when there is nothing more for now;
/// `pipe` is closed at its end.
std::string read_child_output(UniqueFd& pipe);

/// Appends to what is kept of a child's output: its last 4 KB, for the report of its death.
void keep_child_output(std::string& tail, std::string_view text);

/// A signal that a process raises by a fault of its own (SIGSEGV, SIGABRT, …).
bool is_fault_signal(int number);

/// Kills the process of a pidfd: the number cannot have been given to another process meanwhile.
void kill_process(const UniqueFd& pidfd);

}  // namespace muster
