// The record beside a finished output says what was asked for and the size and hash of each file,
// so that a later command can tell whether the files are still those of that run. Hashes are over
// the rows and not over the header of the vectors. Fields of a record are required unless they were
// added later (`server`, `kept`).

#include "dataset/output_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/hash.h"
#include "dataset/file_hash.h"
#include "dataset/vector_file.h"
#include "dataset/vector_writer.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// A command line's inputs can take megabytes; no record of ours takes more.
constexpr std::uint64_t kFileSizeMax = 64 << 20;

// Only where it is not vectors, which records said nothing of before there was anything else.
constexpr const char* kKindKey = "holds";
constexpr const char* kReplies = "replies";

// Takes fields of the wanted type out of an object; the first that is not so is kept.
class RecordFields {
 public:
  RecordFields(const Json& json, const std::filesystem::path& path) : json_(json), path_(path) {}

  template <typename Value>
  void take(const char* name, Value& value) {
    const auto found = json_.find(name);
    const bool is_good =
        found != json_.end() && (std::is_same_v<Value, std::string> ? found->is_string()
                                 : std::is_same_v<Value, bool>      ? found->is_boolean()
                                                                    : found->is_number_unsigned());
    if (is_good) {
      value = found->template get<Value>();
    } else if (outcome_) {
      outcome_ = Error{
          ErrorKind::Corrupt,
          fmt::format("{}: the field is missing or of another type: {}", path_.string(), name)};
    }
  }

  Status outcome() const { return outcome_; }

 private:
  const Json& json_;
  const std::filesystem::path& path_;
  Status outcome_ = Done{};
};

Json identity_json(const RunIdentity& identity) {
  Json entries = Json::array();
  for (const auto& [name, value] : identity) entries.push_back(Json::array({name, value}));
  return entries;
}

RunIdentity read_identity(const Json& json) {
  RunIdentity identity;
  const auto entries = json.value("identity", Json::array());
  for (const auto& entry : entries) {
    if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
      identity.emplace_back(entry[0].get<std::string>(), entry[1].get<std::string>());
    }
  }
  return identity;
}

Json vectors_json(const OutputRecord& record) {
  Json json{{"muster_output", 1},
            {"model", record.model},
            {"model_hash", record.model_hash},
            {"equality_class", record.equality_class},
            {"precision", record.precision},
            {"pooling", record.pooling},
            {"normalize", record.normalize},
            {"prompt_name", record.prompt_name},
            {"length_max", record.length_max},
            {"dim", record.dim},
            {"rows", record.row_count},
            {"vectors_size", record.vectors_size},
            {"vectors_hash", record.vectors_hash},
            {"index_size", record.index_size},
            {"index_hash", record.index_hash},
            {"records", record.record_count},
            {"records_hash", record.records_hash},
            {"identity", identity_json(record.identity)}};
  if (!record.server.empty()) json["server"] = record.server;
  if (!record.kept.empty()) json["kept"] = record.kept;
  return json;
}

Json replies_json(const OutputRecord& record) {
  return Json{{"muster_output", 1},
              {kKindKey, kReplies},
              {"model", record.model},
              {"model_hash", record.model_hash},
              {"equality_class", record.equality_class},
              {"precision", record.precision},
              {"replies", record.row_count},
              {"out_size", record.vectors_size},
              {"out_hash", record.vectors_hash},
              {"records", record.record_count},
              {"records_hash", record.records_hash},
              {"identity", identity_json(record.identity)}};
}

void take_vectors(RecordFields& fields, OutputRecord& record) {
  fields.take("pooling", record.pooling);
  fields.take("normalize", record.normalize);
  fields.take("prompt_name", record.prompt_name);
  fields.take("length_max", record.length_max);
  fields.take("dim", record.dim);
  fields.take("rows", record.row_count);
  fields.take("vectors_size", record.vectors_size);
  fields.take("vectors_hash", record.vectors_hash);
  fields.take("index_size", record.index_size);
  fields.take("index_hash", record.index_hash);
}

void take_replies(RecordFields& fields, OutputRecord& record) {
  record.kind = OutputKind::Replies;
  fields.take("replies", record.row_count);
  fields.take("out_size", record.vectors_size);
  fields.take("out_hash", record.vectors_hash);
}

Error another(const std::filesystem::path& path, const std::filesystem::path& out,
              const std::string& why) {
  return Error{ErrorKind::Corrupt, fmt::format("{}: not the file that {} speaks of: {}",
                                               path.string(), record_path_of(out).string(), why)};
}

Status check_file(const std::filesystem::path& path, const std::filesystem::path& out,
                  std::uint64_t begin, std::uint64_t size, const std::string& hash) {
  std::error_code error;
  const auto found = std::filesystem::file_size(path, error);
  if (error) return system_error(path.string(), "read", error.value());
  if (found != size) return another(path, out, fmt::format("{} bytes, not {}", found, size));
  Hash128 sum;
  MUSTER_TRY(hash_bytes_of(path, begin, size, sum));
  if (sum.hex() != hash) return another(path, out, "the content is not the same");
  return Done{};
}

}  // namespace

std::filesystem::path record_path_of(const std::filesystem::path& out) {
  auto path = out;
  return path += ".run.json";
}

std::string_view output_kind_words(OutputKind kind) {
  return kind == OutputKind::Vectors ? "vectors of muster embed" : "replies of muster generate";
}

std::string output_record_json(const OutputRecord& record) {
  const auto json =
      record.kind == OutputKind::Replies ? replies_json(record) : vectors_json(record);
  // A path may hold bytes that are not UTF-8; they are replaced, not thrown at.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<OutputRecord> read_output_record(const std::filesystem::path& path) {
  const auto text = MUSTER_TRY(read_file(path, kFileSizeMax));
  const auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return Error{ErrorKind::Corrupt, fmt::format("{}: not a JSON object", path.string())};
  }
  OutputRecord record;
  RecordFields fields(json, path);
  fields.take("model", record.model);
  fields.take("model_hash", record.model_hash);
  fields.take("equality_class", record.equality_class);
  fields.take("precision", record.precision);
  const auto kind = json.find(kKindKey);
  if (kind != json.end() && *kind == kReplies) {
    take_replies(fields, record);
  } else {
    take_vectors(fields, record);
  }
  fields.take("records", record.record_count);
  fields.take("records_hash", record.records_hash);
  if (json.contains("server")) fields.take("server", record.server);
  MUSTER_TRY(fields.outcome());
  record.identity = read_identity(json);
  for (const auto& name : json.value("kept", Json::array())) {
    if (name.is_string()) record.kept.push_back(name.get<std::string>());
  }
  return record;
}

Status check_output(const OutputRecord& record, const std::filesystem::path& out) {
  if (record.kind == OutputKind::Replies) {
    return check_file(out, out, 0, record.vectors_size, record.vectors_hash);
  }
  const auto format = MUSTER_TRY(vector_format_of(out));
  MUSTER_TRY(
      check_file(out, out, vector_header_size(format), record.vectors_size, record.vectors_hash));
  return check_file(index_path_of(out), out, 0, record.index_size, record.index_hash);
}

bool has_names_of_earlier_version(const std::filesystem::path& out) {
  const auto is_there = [&](const char* ending) {
    auto path = out;
    std::error_code ignored;
    return std::filesystem::exists(path.replace_extension(ending), ignored);
  };
  return is_there(".index.jsonl") || is_there(".run.json");
}

}  // namespace muster
