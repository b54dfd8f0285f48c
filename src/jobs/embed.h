#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "client/server_access.h"
#include "jobs/corpus.h"
#include "spec/device.h"
#include "spec/encoder_spec.h"
#include "spec/precision.h"
#include "spec/telemetry.h"

namespace muster {

/// A server that computes the rows in place of this machine's devices.
struct EmbedServer {
  ServerAccess access;
  std::size_t connection_count = 8;  // requests under way at once
  /// Before a lost connection is tried again, doubled each time; where the server says
  /// `Retry-After` that counts.
  Duration first_wait = std::chrono::milliseconds(250);
};

/// What is new of the devices of a run, from whoever watches them.
struct DeviceNews {
  std::vector<DeviceFault> faults;    // by their places in EmbedOptions::devices
  std::optional<std::string> notice;  // a sentence for people: they cannot be watched
};

/// What `muster embed` is asked to do; every field is already checked for form by the caller.
struct EmbedOptions : CorpusOptions {
  std::string model;  // folder or hub id; with a server the name there, empty for its only one
  /// Then everything below that says where and how the model runs counts for nothing, but
  /// `prompt_name`: the server has settled it.
  std::optional<EmbedServer> server;
  std::vector<Device> devices;              // Cpu devices carry their CPUs
  std::optional<Precision> precision;       // nullopt: auto
  std::uint32_t batch_tokens = 4096;        // upper bound of one batch
  std::optional<std::uint32_t> length_max;  // tokens, special ones included; nullopt: the model's
  std::optional<Pooling> pooling;           // nullopt: the model's
  std::optional<bool> normalize;            // nullopt: the model's
  std::optional<std::string> prompt_name;   // of the model's prompts
  std::filesystem::path worker_program;     // muster-worker
  std::filesystem::path torch_root;  // the wheel's folder `torch`; put on the worker's library path
  std::filesystem::path cache_folder;  // precision verdicts
  /// Which of `devices` can be relied on no more, or again: what changed since the last call. It is
  /// asked ten times a second, by the loop, and waits for nothing; may be empty.
  std::function<DeviceNews()> device_news = {};
};

struct EmbedReport : CorpusReport {
  std::uint32_t dim = 0;
  Precision precision = Precision::Fp32;
  std::string precision_reason;  // "bf16: 2.1x fp32, cosine mean 0.99991 min 0.9997" or "asked for"
  std::filesystem::path index;   // empty with a stream
};

/// Embeds a corpus on all devices, or by a server: reads, tokenises, cuts batches for whoever is
/// free, writes rows in input order, and survives the death of any worker.
///
/// Where `resume` goes on with a run and no precision is named, it is that run's.
///
/// `cancelled` is looked at between steps (Ctrl-C): the run then ends with Cancelled, and every row
/// that has come back is kept for `resume`, as far as the disk has room. Errors: those of reading,
/// writing and the model; InvalidArgument for a bad record without `skip_bad`, for an output that
/// would overwrite what is read or what no run has made, and for unfinished work at its place
/// without `resume` or `restart`, and for a stream with them; Unavailable when no device can work,
/// or another run is writing this output; Cancelled. Nothing is ever left under the final names
/// after an error.
Result<EmbedReport> embed_corpus(const EmbedOptions& options, const CorpusEvents& events,
                                 const Clock& clock, const std::function<bool()>& cancelled);

}  // namespace muster
