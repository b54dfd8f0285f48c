#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hw/device_sampler.h"
#include "hw/kernel_file.h"

namespace muster {

/// What a zone of RAPL measures.
enum class RaplDomain : std::uint8_t {
  Package,  // a socket, or a die of it
  Dram,     // its memory
  Part,     // core, uncore: in the package already
  Psys,     // the whole platform, packages included
};

/// One zone of RAPL, as powercap shows it.
struct RaplZone {
  RaplDomain domain = RaplDomain::Part;
  std::optional<std::uint32_t> package;  // the socket; psys has none
  std::filesystem::path folder;          // ".../intel-rapl:0:1"
  std::uint64_t range_uj = 0;            // energy_uj runs from 0 to this, and starts again
};

/// The zones of this machine, in order of their names; AMD's processors are shown under the same
/// names. The copies that some Intel parts show over MMIO (`intel-rapl-mmio:N`) are the same
/// packages and left out. root: in front of /sys.
///
/// Source: Linux, Documentation/power/powercap/powercap.rst; drivers/powercap/intel_rapl_common.c
/// (names "package-S" and "package-S-die-D").
std::vector<RaplZone> find_rapl_zones(const std::filesystem::path& root);

/// Energy since the first reading of a counter that starts again at 0 after its range.
///
/// The counter behind energy_uj has 32 bits of u nanojoules; the kernel shows the highest one,
///   range_uj = floor((2^32 - 1) u / 1000),
/// so a turn is 2^32 u / 1000 microjoules: one step more than the range. u is found from the range;
/// where none fits, the counter is taken to step by one microjoule. Turns are counted as long as
/// it is read at least once in each (a package of 500 W turns 2^32 x 15.3 uJ in two minutes).
///
/// Source: drivers/powercap/intel_rapl_common.c, rapl_unit_xlate and get_max_energy_counter
/// (ENERGY_STATUS_MASK 0xffffffff, ENERGY_UNIT_SCALE 1000).
class RaplCounter {
 public:
  explicit RaplCounter(std::uint64_t range_uj);

  /// Joules since the first call.
  double add(std::uint64_t energy_uj);

  std::uint64_t turns() const { return turns_; }

 private:
  std::uint64_t turn_nj_;
  std::optional<std::uint64_t> first_uj_;
  std::uint64_t last_uj_ = 0;
  std::uint64_t turns_ = 0;
};

/// The energy of several zones of one domain together: the dies of a socket.
///
/// Threads: not thread-safe; owned by one sampler.
class RaplEnergy {
 public:
  /// The zones of `domain` in the socket `package`.
  RaplEnergy(const std::vector<RaplZone>& zones, RaplDomain domain, std::uint32_t package);

  bool is_there() const { return !parts_.empty(); }

  /// Joules since the first call that succeeded, in `sample` as `reading`; what fails is listed
  /// with its errno. Since Linux 5.10 energy_uj is for root alone: EACCES, 13. Source:
  /// CVE-2020-8694; commit 949dd0104c49 "powercap: restrict energy meter to root access".
  void read(Reading reading, CallWatch& watch, DeviceSample& sample);

 private:
  struct Part {
    KernelFile file;
    RaplCounter counter;
  };
  std::vector<Part> parts_;
};

}  // namespace muster
