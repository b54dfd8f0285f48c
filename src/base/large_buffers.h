#pragma once

namespace muster {

/// Makes the C library return the memory of large buffers to the system when they are freed.
///
/// By default glibc raises the size from which a buffer is a mapping of its own, up to 32 MiB, each
/// time such a buffer is freed (mallopt(3), M_MMAP_THRESHOLD); the next ones then lie in the heap,
/// which keeps their pages. Under all attacks of tools/accept/ground/row05_attacks.py at once for
/// 30 s a server with a limit of 256 MiB and a cache of 64 MiB grew by 434 MiB, and by 209 MiB with
/// what is set here (2026-11-23, set through glibc's variables, a busy machine with two cores).
///
/// Threads: call it before any thread is started. Without glibc it does nothing.
void return_large_buffers();

}  // namespace muster
