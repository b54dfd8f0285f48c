// A point's file is the truth and the table follows from it: the file is durable before the table
// is touched. Nothing is removed or written over that muster bench has not made; a point's file is
// known by its name, of hexadecimal digits, and by what is in it. A folder has the points of one
// table, which a note in it names: two tables whose points may have the same ids would otherwise
// drop each other's.
#include "sweep/point_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t kPointBytesMost = 4ULL << 30;    // as muster bench diff reads
constexpr std::uint64_t kTableBytesMost = 256ULL << 20;  // 10,000 points of some kilobytes
constexpr std::string_view kEnding = ".json";
constexpr std::size_t kIdSize = 16;
constexpr std::string_view kNoteFile = ".table";
constexpr std::string_view kNoteHead = "points of muster bench run: ";  // and the table behind it
constexpr std::uint64_t kNoteBytesMost = 8192;                          // PATH_MAX is 4096

Error no_point(std::string_view name, std::string_view why) {
  return corrupt_error(fmt::format("{}: this is no point of muster bench run: {}", name, why));
}

// The id in a file's name; empty where it is none.
std::string id_of(const fs::path& file) {
  const auto name = file.filename().string();
  if (name.size() != kIdSize + kEnding.size() || !name.ends_with(kEnding)) return {};
  const auto id = name.substr(0, kIdSize);
  return id.find_first_not_of("0123456789abcdef") == std::string::npos ? id : std::string();
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    files.push_back(entry.path());
  }
  return files;
}

Status remove_file(const fs::path& file) {
  std::error_code fault;
  fs::remove(file, fault);
  if (fault) return system_error(file.string(), "remove", fault.value());
  return Done{};
}

// Absolute first: where nothing of a relative path is there, it would stay one.
fs::path real_path(const fs::path& path) {
  std::error_code fault;
  const auto whole = fs::absolute(path, fault);
  auto real = fs::weakly_canonical(whole, fault);
  return fault ? whole : real;
}

// From the folder on, so that folder and table can be moved or copied together.
std::string note_of(const SweepFiles& files) {
  const auto table = real_path(files.table).lexically_proximate(real_path(files.folder));
  return fmt::format("{}{}\n", kNoteHead, table.string());
}

// One that cannot be looked at, as on a share that is away, is not gone.
bool is_gone(const fs::path& file) {
  std::error_code fault;
  return fs::status(file, fault).type() == fs::file_type::not_found;
}

// A table that is gone has no points any more.
Status check_owner(const SweepFiles& files) {
  const auto file = files.folder / kNoteFile;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return Done{};
  const auto note = MUSTER_TRY(read_regular_file(file, kNoteBytesMost));
  if (note == note_of(files)) return Done{};
  const bool names_a_table =
      note.starts_with(kNoteHead) && note.ends_with('\n') && note.size() > kNoteHead.size() + 1;
  if (!names_a_table) {
    return invalid_error(fmt::format(
        "{}: that is no note of muster bench run, and it would be overwritten: remove it",
        file.string()));
  }
  const auto named = note.substr(kNoteHead.size(), note.size() - kNoteHead.size() - 1);
  const auto owner = (real_path(files.folder) / named).lexically_normal();
  if (real_path(owner) == real_path(files.table) || is_gone(owner)) return Done{};
  return invalid_error(
      fmt::format("{} has the points of {}: name another table by reporter.output_file, or "
                  "another folder by output_dir",
                  files.folder.string(), owner.string()));
}

}  // namespace

Status make_folder(const fs::path& folder) {
  const auto path = folder.empty() ? fs::path(".") : folder;
  std::error_code fault;
  fs::create_directories(path, fault);
  if (fault) return system_error(path.string(), "make", fault.value());
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    return system_error(path.string(), "write into", errno);
  }
  return Done{};
}

SweepFiles sweep_files(const SweepConfig& config) {
  SweepFiles files;
  files.table = *config.text(SweepKey::OutputFile);
  files.folder = files.table;
  files.folder.replace_extension(".points");
  if (const auto folder = config.text(SweepKey::OutputDir)) {
    files.folder = fs::path(*folder) / files.folder.filename();
  }
  return files;
}

Result<KeptPoint> read_kept_point(std::string_view json, std::string_view name) {
  // The points of the result hold its samples, which are most of it.
  const auto keep = [](int depth, Json::parse_event_t event, Json& parsed) {
    constexpr int kTop = 1;
    return event != Json::parse_event_t::key || depth > kTop || parsed != "points";
  };
  const auto parsed = Json::parse(json, keep, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return no_point(name, "it is no JSON object");
  const auto record = parsed.find("run");
  if (record == parsed.end() || !record->is_object()) return no_point(name, "it has no `run`");
  const auto id = record->find("point");
  const auto valid = record->find("valid");
  if (id == record->end() || !id->is_string() || valid == record->end() || !valid->is_boolean()) {
    return no_point(name, "its `run` has no point or no valid");
  }
  return KeptPoint{.id = id->get<std::string>(), .is_valid = valid->get<bool>(), .record = *record};
}

Result<PointStore> PointStore::open(SweepFiles files) {
  std::error_code ignored;
  std::string text;
  if (fs::exists(files.table, ignored)) {
    text = MUSTER_TRY(read_regular_file(files.table, kTableBytesMost));
  }
  auto table = MUSTER_TRY(RecordTable::read(text, files.table.string()));
  if (fs::exists(files.folder, ignored) && !fs::is_directory(files.folder, ignored)) {
    return invalid_error(
        fmt::format("{}: the points of the run go into a folder of this name, and it is a file",
                    files.folder.string()));
  }
  MUSTER_TRY(check_owner(files));
  return PointStore(std::move(files), std::move(table));
}

fs::path PointStore::file_of(const std::string& id) const {
  return files_.folder / (id + std::string(kEnding));
}

Result<std::optional<KeptPoint>> PointStore::find(const std::string& id) const {
  const auto file = file_of(id);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::optional<KeptPoint>();
  const auto text = MUSTER_TRY(read_regular_file(file, kPointBytesMost));
  auto kept = read_kept_point(text, file.string());
  if (!kept || kept->id != id) {
    return invalid_error(fmt::format(
        "{}: that is no point of muster bench run, and it would be overwritten: remove it",
        file.string()));
  }
  return std::optional<KeptPoint>(std::move(*kept));
}

Status PointStore::begin() {
  MUSTER_TRY(make_folder(files_.folder));
  for (const auto& file : files_in(files_.folder)) {
    const auto whole = unfinished_name(file);
    const bool is_ours = whole == kNoteFile || !id_of(whole).empty();
    if (is_ours) MUSTER_TRY(remove_file(file));
  }
  MUSTER_TRY(remove_unfinished(files_.table));
  const auto note = note_of(files_);
  const auto there = read_regular_file(files_.folder / kNoteFile, kNoteBytesMost);
  if (there && *there == note) return Done{};
  return write_file_atomically(files_.folder / kNoteFile, note);
}

Status PointStore::keep(const std::string& json, const KeptPoint& point) {
  MUSTER_TRY(write_file_atomically(file_of(point.id), json));
  table_.put(point.record);
  return write_table();
}

Status PointStore::complete(const std::vector<KeptPoint>& points) {
  bool is_changed = false;
  for (const auto& point : points) {
    if (table_.is_up_to_date(point.record)) continue;
    table_.put(point.record);
    is_changed = true;
  }
  return is_changed ? write_table() : Status(Done{});
}

Status PointStore::write_table() const {
  return write_file_atomically(files_.table, table_.text());
}

// The table first: a kill in between leaves points without rows, which `complete` puts in, and no
// rows without points. Whoever has made a link of the table keeps it: an empty file has no rows.
Status PointStore::drop() {
  std::error_code ignored;
  MUSTER_TRY(fs::is_symlink(files_.table, ignored) ? write_file_atomically(files_.table, "")
                                                   : remove_file(files_.table));
  table_ = {};
  for (const auto& file : files_in(files_.folder)) {
    if (id_of(file).empty()) continue;
    const auto text = MUSTER_TRY(read_regular_file(file, kPointBytesMost));
    if (read_kept_point(text, file.string())) MUSTER_TRY(remove_file(file));
  }
  return Done{};
}

}  // namespace muster
