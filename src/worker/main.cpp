// muster-worker: the program that owns one device. It is started by muster with its socket open,
// and is of no use by hand.

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "base/build_info.h"
#include "base/liveness_pipe.h"
#include "engine/cuda.h"
#include "spec/worker_arguments.h"
#include "worker/worker.h"

namespace {

struct Arguments {
  muster::DeviceKind device = muster::DeviceKind::Cpu;
  int socket = -1;
  int liveness = -1;       // none
  char* models = nullptr;  // written over: shown_models.h
};

std::optional<Arguments> parse_arguments(int argc, char** argv) {
  Arguments arguments;
  bool has_device = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    if (name == muster::kWorkerDeviceFlag) {
      const auto kind = value.substr(0, value.find(':'));
      for (const auto known :
           {muster::DeviceKind::Cpu, muster::DeviceKind::Cuda, muster::DeviceKind::Standin}) {
        if (kind != muster::device_kind_name(known)) continue;
        has_device = true;
        arguments.device = known;
      }
    } else if (name == "--socket-fd") {
      std::from_chars(value.data(), value.data() + value.size(), arguments.socket);
    } else if (name == muster::kWorkerLivenessFlag) {
      std::from_chars(value.data(), value.data() + value.size(), arguments.liveness);
    } else if (name == muster::kWorkerModelsFlag) {
      arguments.models = argv[i + 1];
    }
  }
  if (!has_device || arguments.socket < 0) return std::nullopt;
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    fmt::print("muster-worker {}\n", muster::build_name());
    return 0;
  }
  const auto arguments = parse_arguments(argc, argv);
  if (!arguments) {
    fmt::print(stderr,
               "muster-worker is started by muster: muster-worker --device cpu:0 --socket-fd 3\n");
    return 2;
  }
  if (arguments->liveness >= 0)
    (void)muster::keep_liveness_pipe(muster::UniqueFd(arguments->liveness));
  // No worker outlives its parent, even one that is deep in a long product: the kernel ends it. The
  // end of the stream does the same for a worker that is reading.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Ctrl-C and a service manager's SIGTERM are for the parent, which ends us by closing the socket.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_IGN);

  if (arguments->device == muster::DeviceKind::Cuda) {
    if (const auto dropped = muster::engine::drop_timed_kernels()) {
      fmt::print(stderr,
                 "{} is not heeded: two workers would compute with other kernels, and not the same "
                 "bits\n",
                 *dropped);
    }
  }
  muster::Worker worker(muster::UniqueFd(arguments->socket), arguments->device, arguments->models);
  const auto status = worker.run();
  if (!status && status.error().kind != muster::ErrorKind::Unavailable) {
    fmt::print(stderr, "muster-worker: {}\n", status.error().message);
    ::_exit(muster::exit_code(status.error().kind));
  }
  // Lanes may be deep in a product whose answer nobody waits for, and torch's own teardown takes
  // longer than the parent should wait.
  ::_exit(0);
}
