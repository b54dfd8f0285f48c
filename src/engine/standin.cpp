// As libtorch_cuda.so does, the library registers itself with torch while it is loaded. Only the
// one beside the program is opened: whoever could put another one on the loader's path could do
// worse, but a stand-in must never be found by accident.

#include "engine/standin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/child_process.h"
#include "engine/guard.h"
#include "spec/standin_device.h"

namespace muster::engine {
namespace {

Status load_standin() {
  const auto path = program_beside(kStandinLibrary);
  // Never closed: torch keeps pointers into it until the process ends.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("the stand-in device cannot be loaded: {}", ::dlerror())};
  }
  using Open = const char* (*)();
  const auto open = reinterpret_cast<Open>(::dlsym(library, "muster_standin_open"));
  if (open == nullptr) {
    return Error{ErrorKind::Unsupported, fmt::format("{} is no stand-in device", path.string())};
  }
  return guarded([&]() -> Status {
    const char* reason = open();
    if (reason == nullptr) return Done{};
    return Error{ErrorKind::Unsupported, reason};
  });
}

}  // namespace

Status open_standin() {
  static const Status outcome = load_standin();
  return outcome;
}

}  // namespace muster::engine
