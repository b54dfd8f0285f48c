#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace muster {

/// Runs `work`, which reads `mapping`, and tells whether it came to its end.
///
/// Whoever may write a mapped file can cut it shorter. A page behind its new end raises SIGBUS, as
/// does one that the disk cannot give, and that would end this process with all that it serves.
/// Here it ends `work` alone: false. A size that was looked at before says nothing of the next
/// moment; and reading with pread in place of the mapping would copy every byte once more, where a
/// search is as fast as memory. A scope costs some nanoseconds.
///
/// `work` is left where it reads, as by longjmp: nothing that it holds then may have a destructor
/// to run, nor be half changed. Allocations between its reads are fine. Scopes may be nested.
///
/// The handler is put in place by the first call and stays. It passes on what is not a read of a
/// mapping in a scope of its own thread: to the handler before it, else to the usual end.
///
/// Threads: thread-safe; a scope is its thread's own. Source: sigaction(2), siginfo BUS_ADRERR;
/// mmap(2), "SIGBUS".
[[nodiscard]] bool read_mapped(std::span<const std::byte> mapping,
                               const std::function<void()>& work);

}  // namespace muster
