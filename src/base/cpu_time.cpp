// CPU time by getrusage, which counts in microseconds and costs one system call. That of other
// processes that run is in /proc (hw/cpu).

#include "base/cpu_time.h"

namespace muster {

double cpu_seconds(const timeval& time) {
  constexpr double kMicro = 1e-6;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * kMicro;
}

double cpu_seconds(const rusage& usage) {
  return cpu_seconds(usage.ru_utime) + cpu_seconds(usage.ru_stime);
}

double process_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return cpu_seconds(usage);
}

double thread_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return cpu_seconds(usage);
}

}  // namespace muster
