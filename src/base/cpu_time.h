#pragma once

#include <sys/resource.h>

namespace muster {

/// Seconds of a time that getrusage or wait4 has told. Threads: pure.
double cpu_seconds(const timeval& time);

/// Seconds of CPU, of user and kernel together. Threads: pure.
double cpu_seconds(const rusage& usage);

/// What this process has taken so far, with all of its threads. Threads: thread-safe.
double process_cpu_seconds();

/// What the calling thread has taken so far. Threads: thread-safe.
double thread_cpu_seconds();

}  // namespace muster
