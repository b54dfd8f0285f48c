#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.h"
#include "coordinator/decoder_workers.h"
#include "spec/device.h"
#include "spec/generation.h"
#include "spec/machine.h"

namespace muster {

/// What one worker of a decoder takes beside its keys and values.
struct DecoderDemand {
  std::uint64_t weights_bytes = 0;
  std::uint64_t work_bytes = 0;    // activations of a step, and what chooses a token; on a GPU also
                                   // the driver's context and the libraries' workspaces
  std::uint64_t logits_bytes = 0;  // of a step
  std::uint64_t test_bytes = 0;    // of a load's self-tests, over before the cache is made

  std::uint64_t step_bytes() const { return work_bytes + logits_bytes; }
  std::uint64_t total() const { return weights_bytes + step_bytes(); }
  std::uint64_t with_cache(std::uint64_t cache_bytes) const {
    return weights_bytes + std::max(step_bytes() + cache_bytes, test_bytes);
  }
};

/// Where a worker runs.
struct DecoderPlace {
  DeviceKind device = DeviceKind::Cpu;
  std::uint32_t threads = 1;  // Cpu: one a core

  static DecoderPlace of(const Device& device);
};

/// For `sequences_most` sequences at once of up to `length_max` tokens, in steps of as many tokens
/// as a worker computes. A worker has a row of logits for each sequence, which chooses by it, and
/// for each id that a step may score.
///
/// On a CPU what the engine allocates (spec/cpu_decoder_memory.h). On a GPU as `muster plan` counts
/// it, and what attention gathers (spec/gpu_decoder_memory.h); but of a file whose weights are
/// converted (fp32, bf16, int8), every weight counts in that precision, since the engine undoes a
/// quantisation. So is counted on a CPU what it cannot compute and will refuse.
///
/// Errors: those of describe_model and of stage_memory. Cost: reads the headers of the files.
/// Threads: thread-safe. Source: docs/memory-model.md.
Result<DecoderDemand> decoder_demand(
    const std::filesystem::path& source, DecoderPrecision precision, std::uint32_t length_max,
    const DecoderPlace& place = {},
    std::uint32_t sequences_most = DecoderFleetOptions{}.streams_most);

/// The memory that the models of a server may take on its devices: what was free before its workers
/// came, the margin of a plan taken off.
///
/// Threads: immutable.
class DeviceMemory {
 public:
  /// machine: of these devices, as free as before the server's workers came.
  DeviceMemory(const Machine& machine, const std::vector<Device>& devices);

  /// What a new worker on a device may take. nullopt: that is not known.
  ///
  /// planned: what workers there take or will take. available: what a new program can have now of
  /// the host's memory, of which each CPU has its share; nullopt: not known.
  std::optional<std::uint64_t> room(std::size_t device, std::uint64_t planned,
                                    std::optional<std::uint64_t> available) const;

 private:
  struct Usable {
    std::optional<std::uint64_t> bytes;  // nullopt: not known
    bool is_of_host = false;             // a CPU's; a GPU has a memory of its own
  };

  std::vector<Usable> usable_;  // by device
  std::uint64_t usable_of_cpus_ = 0;
};

}  // namespace muster
