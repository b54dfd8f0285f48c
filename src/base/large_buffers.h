#pragma once

namespace muster {

/// Makes the C library return the memory of large buffers to the system when they are freed.
///
/// By default glibc raises the size from which a buffer is a mapping of its own, up to 32 MiB, each
/// time such a buffer is freed (mallopt(3), M_MMAP_THRESHOLD); the next ones then lie in the heap,
/// which keeps their pages. Under hostile clients that is the difference between 434 MiB and
/// 201 MiB held by a server with a limit of 256 MiB (tools/accept/ground/row05_attacks.py).
///
/// Threads: call it before any thread is started. Without glibc it does nothing.
void return_large_buffers();

}  // namespace muster
