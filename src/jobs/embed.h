#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "client/server_access.h"
#include "dataset/text_reader.h"
#include "spec/device.h"
#include "spec/encoder_spec.h"
#include "spec/precision.h"

namespace muster {

/// A server that computes the rows in place of this machine's devices.
struct EmbedServer {
  ServerAccess access;
  std::size_t connection_count = 8;  // requests under way at once
  /// Before a lost connection is tried again, doubled each time; where the server says
  /// `Retry-After` that counts.
  Duration first_wait = std::chrono::milliseconds(250);
};

/// How rows are written to a stream; stream_output.h says what each looks like.
enum class StreamFormat : std::uint8_t { Jsonl, F32 };

/// Where rows go that are not kept in files.
struct EmbedStream {
  StreamFormat format = StreamFormat::Jsonl;
  std::string name;  // for messages: "standard output"
  std::function<Status(std::string_view)> write;
  std::function<Status()> flush;
};

/// What `muster embed` is asked to do; every field is already checked for form by the caller.
struct EmbedOptions {
  std::string model;  // folder or hub id; with a server the name there, empty for its only one
  /// Then everything below that says where and how the model runs counts for nothing, but
  /// `prompt_name`: the server has settled it.
  std::optional<EmbedServer> server;
  TextReaderOptions input;
  std::filesystem::path out;
  std::optional<EmbedStream> stream;        // in the place of `out`; neither resumed nor restarted
  std::vector<Device> devices;              // Cpu devices carry their CPUs
  std::optional<Precision> precision;       // nullopt: auto
  std::uint32_t batch_tokens = 4096;        // upper bound of one batch
  std::optional<std::uint32_t> length_max;  // tokens, special ones included; nullopt: the model's
  std::optional<Pooling> pooling;           // nullopt: the model's
  std::optional<bool> normalize;            // nullopt: the model's
  std::optional<std::string> prompt_name;   // of the model's prompts
  bool skip_bad = false;
  bool resume = false;   // go on where an interrupted run stopped, or say that it is done
  bool restart = false;  // drop what an interrupted run has left; not with `resume`
  std::filesystem::path worker_program;  // muster-worker
  std::filesystem::path torch_root;  // the wheel's folder `torch`; put on the worker's library path
  std::filesystem::path cache_folder;  // precision verdicts
};

/// One device in a report, or the server that did the work.
struct DeviceProgress {
  std::string name;  // "cpu:0", "127.0.0.1:8000"
  std::uint64_t text_count = 0;
  std::uint64_t token_count = 0;
  /// Time in the engine, summed over lanes, divided by the number of lanes; of a server not known.
  std::optional<double> busy_seconds;
  double ready_seconds = 0;                 // time since its first worker was ready
  std::uint32_t restart_count = 0;          // of a server: how often it was unavailable
  std::uint64_t weights_bytes = 0;          // in its worker; 0: not counted
  std::uint64_t load_peak_bytes = 0;        // the most beside them while it loaded
  std::uint64_t activation_peak_bytes = 0;  // and since
  /// "starting", "ready", "restarting", "quarantined", "unavailable", "given up".
  std::string state;
  std::string reason;  // why it was given up, or is not ready
};

/// Where the wall time of the parent's loop went, and what its other threads did beside. Seconds.
struct TimeSplit {
  double read = 0;             // reading and decompressing the input
  double wait = 0;             // waiting for the workers
  double wait_for_writer = 0;  // for the thread that writes, and the disk
  double other = 0;            // scheduling, frames
  double start = 0;            // until the first worker was ready
  double tokenize = 0;         // on threads beside the loop, summed: no part of the wall time, as
  double write = 0;            // vectors and index, on another one
};

struct EmbedProgress {
  /// "starting workers": what is done before the first device is ready; empty from then on.
  std::string phase;
  std::uint64_t text_count = 0;     // vectors written so far, and
  std::uint64_t token_count = 0;    // their tokens; resumed rows are not counted
  std::uint64_t resumed_count = 0;  // rows found done by --resume, those ahead when they are met
  std::uint64_t bad_count = 0;      // skipped records
  std::uint64_t blank_count = 0;    // blank lines that were passed over
  std::uint64_t truncated_count = 0;
  std::uint64_t duplicate_id_count = 0;  // records read with the id of an earlier one
  std::uint64_t input_size_consumed = 0;
  std::uint64_t read_token_count = 0;     // of the texts read by this run; 0: nobody can tell yet
  std::uint64_t resumed_token_count = 0;  // those of them whose rows were found ahead
  std::uint64_t read_count = 0;           // records read so far, those found done included, and
  std::uint64_t input_size_read = 0;  // the bytes they took: more than consumed, work is under way
  std::uint64_t input_size_resumed = 0;           // the bytes of the records found done by --resume
  std::optional<std::uint64_t> input_size_total;  // bytes; nullopt for standard input
  double elapsed_seconds = 0;                     // since the first worker was ready
  std::vector<DeviceProgress> devices;
};

struct EmbedReport {
  bool was_complete = false;  // `resume` found the run done: nothing was computed
  EmbedProgress progress;
  TimeSplit time;
  std::uint32_t dim = 0;
  Precision precision = Precision::Fp32;
  std::string precision_reason;  // "bf16: 2.1x fp32, cosine mean 0.99991 min 0.9997" or "asked for"
  std::string equality_class;
  std::filesystem::path out;    // the name of the stream where there is one
  std::filesystem::path index;  // empty with a stream
  std::string first_duplicate;  // "corpus.jsonl:7": the first record with the id of an earlier one
  bool are_all_ids_compared = true;
  double total_seconds = 0;         // of the whole call
  double first_vector_seconds = 0;  // from the start of the call to the first row back
  double parent_cpu_seconds = 0;    // user + system of this process
  double loop_cpu_seconds = 0;      // of these the loop's thread alone, which cannot be divided
  /// Of the workers, those that died included; nullopt when a server did the work.
  std::optional<double> worker_cpu_seconds;
};

/// What the caller hears while it runs. All are called on the caller's thread.
struct EmbedEvents {
  /// At most ten times a second, from the start on: also while workers start and load.
  std::function<void(const EmbedProgress&)> on_progress;
  std::function<void(const std::string&)>
      on_notice;  // a sentence for people: a worker died, the precision chosen
};

/// Embeds a corpus on all devices, or by a server: reads, tokenises, cuts batches for whoever is
/// free, writes rows in input order, and survives the death of any worker.
///
/// `cancelled` is looked at between steps (Ctrl-C): the run then ends with Cancelled, and every row
/// that has come back is kept for `resume`, as far as the disk has room. Errors: those of reading,
/// writing and the model; InvalidArgument for a bad record without `skip_bad`, for an output that
/// would overwrite what is read or what no run has made, and for unfinished work at its place
/// without `resume` or `restart`, and for a stream with them; Unavailable when no device can work,
/// or another run is writing this output; Cancelled. Nothing is ever left under the final names
/// after an error.
Result<EmbedReport> embed_corpus(const EmbedOptions& options, const EmbedEvents& events,
                                 const Clock& clock, const std::function<bool()>& cancelled);

}  // namespace muster
