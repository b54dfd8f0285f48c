#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "doctor/compute_outcome.h"
#include "doctor/kernel_log.h"
#include "spec/device.h"
#include "spec/telemetry.h"

namespace muster {

/// The torch wheel that the workers load.
struct TorchFacts {
  std::filesystem::path root;
  std::string how;                                  // "this build"
  std::string version;                              // "2.11.0+cu130"
  std::optional<std::string> cuda_version;          // "13.0"; nullopt: made for CPUs alone
  bool has_cuda_library = false;                    // lib/libtorch_cuda.so
  std::vector<std::string> missing_libraries = {};  // that it needs: "libcublas.so.13"
};

/// muster-worker, as it names itself.
struct WorkerFacts {
  std::filesystem::path program;
  std::string build;  // "0.1.0 (cc14302)"
};

struct FolderFacts {
  std::filesystem::path folder;
  bool is_writable = false;
  std::uint64_t size_bytes = 0;
  std::uint64_t free_bytes = 0;
};

/// What the system says of itself. An Error of kind NotFound: there is nothing of the kind here;
/// of another kind: it could not be looked at.
struct SystemFacts {
  std::uint32_t nvidia_gpus_on_bus = 0;      // by the PCI bus, whatever the driver says
  std::optional<std::string> nvidia_module;  // version of the kernel's module, "580.95.05"
  Result<std::vector<KernelXid>> kernel_xids = Error{ErrorKind::NotFound, "not looked at"};
  double seconds_since_boot = 0;
  std::optional<std::uint32_t> cpus_online;
  std::uint64_t open_files_max = 0;  // of this process, soft
  Result<std::uint32_t> energy_domains = Error{ErrorKind::NotFound, "not looked at"};  // of RAPL
  Result<std::string> clock_source = Error{ErrorKind::NotFound, "not looked at"};      // "tsc"
  Result<FolderFacts> shared_memory = Error{ErrorKind::NotFound, "not looked at"};     // /dev/shm
};

/// Everything that the checks are made from.
struct DoctorFacts {
  TelemetrySnapshot snapshot;
  Inventory inventory;        // GPUs are those of the snapshot
  bool is_simulated = false;  // the devices are thought of; what is below was not looked at
  SystemFacts system;
  std::optional<std::string> cuda_visible_devices;
  std::string build;  // of this program
  Result<TorchFacts> torch = Error{ErrorKind::NotFound, "not looked at"};
  Result<WorkerFacts> worker = Error{ErrorKind::NotFound, "not looked at"};
  Result<FolderFacts> cache = Error{ErrorKind::NotFound, "not looked at"};
  std::vector<ComputeOutcome> compute;  // empty: no test was made
  std::string compute_left_out;         // why not
};

}  // namespace muster
