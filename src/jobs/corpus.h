#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dataset/text_reader.h"

namespace muster {

/// How results are written to a stream; stream_output.h says what each looks like.
enum class StreamFormat : std::uint8_t { Jsonl, F32 };

/// Where results go that are not kept in files.
struct CorpusStream {
  StreamFormat format = StreamFormat::Jsonl;
  std::string name;  // for messages: "standard output"
  std::function<Status(std::string_view)> write;
  std::function<Status()> flush;
};

/// What a run over the records of files is asked to do, whatever it computes of each; every field
/// is already checked for form by the caller.
struct CorpusOptions {
  TextReaderOptions input;
  std::filesystem::path out;
  std::optional<CorpusStream> stream;  // in the place of `out`; neither resumed nor restarted
  bool skip_bad = false;
  bool resume = false;   // go on where an interrupted run stopped, or say that it is done
  bool restart = false;  // drop what an interrupted run has left; not with `resume`
};

/// One device in a report, or the server that did the work.
struct DeviceProgress {
  std::string name;  // "cpu:0", "127.0.0.1:8000"
  std::uint64_t text_count = 0;
  std::uint64_t token_count = 0;  // that it has read; of replies, those that it has chosen
  /// Time in the engine, summed over lanes, divided by the number of lanes; of a server, and of
  /// replies, not known.
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
  double read = 0;             // waiting for records of the input, and keeping them
  double wait = 0;             // waiting for the workers
  double wait_for_writer = 0;  // for the thread that writes, and the disk
  double other = 0;            // scheduling, frames
  double measure = 0;          // which precision is fastest, before a model is loaded
  double start = 0;            // until the first worker was ready, measuring included
  double tokenize = 0;         // on threads beside the loop, summed: no part of the wall time, as
  double write = 0;            // results, on another one
};

struct CorpusProgress {
  /// "starting workers": what is done before the first device is ready; empty from then on.
  std::string phase;
  std::uint64_t text_count = 0;         // results written so far,
  std::uint64_t token_count = 0;        // the tokens of their texts, and
  std::uint64_t reply_token_count = 0;  // of their replies; those of resumed ones are not counted
  std::uint64_t resumed_count = 0;      // found done by --resume, those ahead when they are met
  std::uint64_t bad_count = 0;          // skipped records
  std::uint64_t blank_count = 0;        // blank lines that were passed over
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

/// What became of a run, whatever it has computed.
struct CorpusReport {
  bool was_complete = false;  // `resume` found the run done: nothing was computed
  CorpusProgress progress;
  TimeSplit time;
  std::string equality_class;
  std::filesystem::path out;    // the name of the stream where there is one
  std::string first_duplicate;  // "corpus.jsonl:7": the first record with the id of an earlier one
  bool are_all_ids_compared = true;
  double total_seconds = 0;         // of the whole call
  double first_result_seconds = 0;  // from the start of the call to the first row or reply
  double parent_cpu_seconds = 0;    // user + system of this process
  double loop_cpu_seconds = 0;      // of these the loop's thread alone, which cannot be divided
  /// Of the workers, those that died included; nullopt when nobody counts it.
  std::optional<double> worker_cpu_seconds;
};

/// What the caller hears while it runs. All are called on the caller's thread.
struct CorpusEvents {
  /// At most ten times a second, from the start on: also while workers start and load.
  std::function<void(const CorpusProgress&)> on_progress;
  std::function<void(const std::string&)>
      on_notice;  // a sentence for people: a worker died, the precision chosen
};

}  // namespace muster
