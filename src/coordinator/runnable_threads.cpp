#include "coordinator/runnable_threads.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/file.h"

namespace muster {

bool has_runnable_thread(pid_t pid) {
  std::error_code error;
  std::filesystem::directory_iterator thread(fmt::format("/proc/{}/task", pid), error);
  for (; !error && thread != std::filesystem::directory_iterator(); thread.increment(error)) {
    const auto stat = read_file(thread->path() / "stat");
    // A name may hold what looks like its end.
    const auto name_end = stat ? stat->rfind(") ") : std::string::npos;
    if (name_end != std::string::npos && stat->compare(name_end + 2, 1, "R") == 0) return true;
  }
  return false;
}

}  // namespace muster
