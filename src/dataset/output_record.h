#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dataset/run_journal.h"

namespace muster {

/// What a run has computed of each record.
enum class OutputKind : std::uint8_t {
  Vectors,  // `muster embed`: OUT and an index beside it
  Replies,  // `muster generate --prompts`: OUT alone, a line for each
};

/// "vectors of muster embed", "replies of muster generate".
std::string_view output_kind_words(OutputKind kind);

/// What `x.npy.run.json` says of the files beside it: how the vectors were made, and which bytes
/// vectors and index are. A query must be made the same way to be compared with them, and an index
/// must be the vectors' own for a row to lead to its text. Of replies it says the same, with
/// `vectors` meaning OUT; what is of vectors alone is neither written nor read.
struct OutputRecord {
  OutputKind kind = OutputKind::Vectors;
  std::string model;   // absolute path of the folder, or of a GGUF file
  std::string server;  // that computed; empty: this machine's devices
  std::string model_hash;
  std::string equality_class;
  std::string precision;
  // Of vectors alone.
  std::string pooling;
  bool normalize = false;
  std::string prompt_name;
  std::uint32_t length_max = 0;
  std::uint32_t dim = 0;

  std::uint64_t row_count = 0;     // vectors, or replies
  std::uint64_t vectors_size = 0;  // bytes of the file
  std::string vectors_hash;        // Hash128 of the rows: all behind the head
  std::uint64_t index_size = 0;    // of vectors alone
  std::string index_hash;          // Hash128 of the whole index

  std::uint64_t record_count = 0;  // of the inputs, bad ones included
  std::string records_hash;        // Hash128 over them, as in a RunStep
  RunIdentity identity;            // what the run was asked for
  std::vector<std::string> kept;   // names of the fields in the index
};

/// Where the record of OUT lies: "x.npy" has "x.npy.run.json" beside it.
std::filesystem::path record_path_of(const std::filesystem::path& out);

/// The content of the file: one JSON object.
std::string output_record_json(const OutputRecord& record);

/// Reads such a file.
///
/// Errors: NotFound; Corrupt when it is not what a run writes.
Result<OutputRecord> read_output_record(const std::filesystem::path& path);

/// Whether vectors and index are those that the record speaks of, by size and hash: both files are
/// read once. The head of the vectors is not hashed; whoever opens them compares rows and
/// dimension.
///
/// Errors: Corrupt, naming the file that is another; those of opening them.
Status check_output(const OutputRecord& record, const std::filesystem::path& out);

/// Whether `out` and what lies beside it have the names that earlier versions gave ("x.index.jsonl"
/// beside "x.npy"), which two outputs could share.
bool has_names_of_earlier_version(const std::filesystem::path& out);

}  // namespace muster
