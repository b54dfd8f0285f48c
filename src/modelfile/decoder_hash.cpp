// A decoder's identity, for runs that are resumed: any other byte could mean another reply. Which
// files there are is what `load_decoder_text` and the engine read; one that is missing adds
// nothing.

#include "modelfile/decoder_hash.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/mapped_read.h"
#include "modelfile/gguf_file.h"
#include "modelfile/weight_files.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTextFiles[] = {
    "config.json",         "generation_config.json",  "tokenizer.json",     "tokenizer_config.json",
    "chat_template.jinja", "special_tokens_map.json", "chat_template.json",
};
constexpr const char* kMoreTemplates = "additional_chat_templates";

using Bytes = std::span<const std::byte>;

void add_all(Hash128& hash, Bytes bytes) { hash.update(bytes); }

// The beginning has a GGUF file's description; the pieces are of many tensors.
void add_sample(Hash128& hash, Bytes bytes) {
  constexpr std::size_t kBeginning = 1 << 20;
  constexpr std::size_t kPiece = 4096;
  constexpr std::size_t kPieces = 64;
  const auto beginning = bytes.first(std::min(kBeginning, bytes.size()));
  hash.update(beginning);
  const auto rest = bytes.subspan(beginning.size());
  if (rest.size() <= kPiece * kPieces) return hash.update(rest);
  const std::size_t stride = (rest.size() - kPiece) / (kPieces - 1);
  for (std::size_t i = 0; i < kPieces; ++i) hash.update(rest.subspan(i * stride, kPiece));
}

using Add = void (*)(Hash128&, Bytes);

// Its size first, so that no two sets of files give the same stream of bytes.
Status add_content(Hash128& hash, const fs::path& path, Add add) {
  const auto file = MUSTER_TRY(MappedFile::open(path));
  const auto bytes = file.bytes();
  hash.update(fmt::format("{}\n", bytes.size()));
  if (read_mapped(bytes, [&] { add(hash, bytes); })) return Done{};
  return Error{ErrorKind::Corrupt, fmt::format("{}: another program has cut it shorter while it "
                                               "was read",
                                               path.string())};
}

Status add_file(Hash128& hash, const fs::path& folder, const fs::path& name, Add add = add_all) {
  std::error_code ignored;
  if (!fs::exists(folder / name, ignored)) return Done{};
  hash.update(fmt::format("{}\n", name.generic_string()));
  return add_content(hash, folder / name, add);
}

// A folder is listed in any order.
std::set<fs::path> more_templates(const fs::path& folder) {
  std::set<fs::path> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / kMoreTemplates, error)) {
    if (entry.path().extension() == ".jinja") names.insert(entry.path().filename());
  }
  return names;
}

std::vector<fs::path> loaded_files(const fs::path& source) {
  std::error_code ignored;
  if (!fs::is_directory(source, ignored)) return gguf_split_files(source);
  std::vector<fs::path> files{source / "config.json"};
  // Of a broken index nothing is known but that a worker cannot load it either.
  if (const auto names = weight_files(source)) {
    for (const auto& name : *names) files.push_back(source / name);
  }
  return files;
}

// A line of each, in order; empty where none is there.
std::string stamp_of(const fs::path& source) {
  std::string stamp;
  bool is_any_there = false;
  for (const auto& file : loaded_files(source)) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0) {
      stamp += "none\n";
      continue;
    }
    is_any_there = true;
    stamp += fmt::format("{} {} {} {} {}\n", info.st_dev, info.st_ino, info.st_size,
                         info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  }
  return is_any_there ? stamp : std::string();
}

}  // namespace

DecoderStamp::DecoderStamp(fs::path source)
    : source_(std::move(source)), then_(stamp_of(source_)) {}

bool DecoderStamp::has_changed() const {
  const auto now = stamp_of(source_);
  return !then_.empty() && !now.empty() && now != then_;
}

Result<std::string> decoder_hash(const fs::path& source) {
  Hash128 hash;
  std::error_code ignored;
  if (!fs::is_directory(source, ignored)) {
    MUSTER_TRY(add_content(hash, source, add_all));
    return hash.hex();
  }
  for (const auto* name : kTextFiles) MUSTER_TRY(add_file(hash, source, name));
  for (const auto& name : more_templates(source)) {
    MUSTER_TRY(add_file(hash, source, fs::path(kMoreTemplates) / name));
  }
  if (has_no_weights(source)) return hash.hex();
  for (const auto& name : MUSTER_TRY(weight_files(source)))
    MUSTER_TRY(add_file(hash, source, name));
  return hash.hex();
}

Result<std::string> decoder_sample_hash(const fs::path& source) {
  Hash128 hash;
  std::error_code ignored;
  if (!fs::is_directory(source, ignored)) {
    MUSTER_TRY(add_content(hash, source, add_sample));
    return hash.hex();
  }
  MUSTER_TRY(add_file(hash, source, "config.json"));
  if (has_no_weights(source)) return hash.hex();
  for (const auto& name : MUSTER_TRY(weight_files(source))) {
    MUSTER_TRY(add_file(hash, source, name, add_sample));
  }
  return hash.hex();
}

}  // namespace muster
