// A GGUF model as one object, whether it is one file or many.
//
// All files are mapped, and tensors are views into the maps: opening costs the headers only. A
// split is checked against what the first file states (number of files, their order, number of
// tensors), so a file of another model is noticed.

#include "modelfile/gguf_file.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "modelfile/shown_name.h"

// A split model is one header in several files: the first file has the metadata, each has its own
// tensors. Which file a tensor is in matters only here, where its bytes are looked up.

namespace muster {
namespace {

namespace fs = std::filesystem;

struct SplitName {
  std::string prefix;  // with the folder
  std::uint32_t count = 0;
};

/// "model-00002-of-00003.gguf". Source: llama.cpp, llama_split_path.
std::optional<SplitName> parse_split_name(const std::string& path) {
  constexpr std::size_t kTail = std::string_view("-00001-of-00001.gguf").size();
  if (path.size() <= kTail) return std::nullopt;
  const std::string_view tail(path.data() + path.size() - kTail, kTail);
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-") return std::nullopt;
  std::uint32_t count = 0;
  const auto digits = tail.substr(10, 5);
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + 5, count);
  if (error != std::errc() || rest != digits.data() + 5 || count == 0) return std::nullopt;
  return SplitName{path.substr(0, path.size() - kTail), count};
}

fs::path split_file(const SplitName& name, std::uint32_t number) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", name.prefix, number, name.count);
}

Result<std::uint64_t> split_number(const GgufHeader& header, const char* key,
                                   std::uint64_t fallback) {
  const auto found = header.metadata.find(key);
  if (found == header.metadata.end()) return fallback;
  if (const auto* number = std::get_if<std::uint64_t>(&found->second)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&found->second); number && *number >= 0) {
    return static_cast<std::uint64_t>(*number);
  }
  return corrupt_error(fmt::format("{} is not a count", key));
}

struct GgufPart {
  MappedFile file;
  GgufHeader header;
};

Result<GgufPart> read_part(const fs::path& path) {
  auto file = MUSTER_TRY(MappedFile::open(path));
  auto header = parse_gguf_header(file.bytes(), file.bytes().size());
  if (header) return GgufPart{std::move(file), *std::move(header)};
  return Error{header.error().kind, fmt::format("{}: {}", path.string(), header.error().message)};
}

/// The parts of a file: itself, or all files of its split in their order.
Result<std::vector<GgufPart>> read_parts(const fs::path& path) {
  std::vector<GgufPart> parts;
  parts.push_back(MUSTER_TRY(read_part(path)));
  const auto count = MUSTER_TRY(split_number(parts.front().header, "split.count", 1));
  if (count <= 1) return parts;
  const auto name = parse_split_name(path.string());
  if (!name || name->count != count) {
    return corrupt_error(
        fmt::format("{}: split.count is {}, and the name does not end in -0000N-of-{:05}.gguf",
                    path.string(), count, count));
  }
  parts.clear();
  for (std::uint32_t i = 1; i <= name->count; ++i) {
    const auto file = split_file(*name, i);
    parts.push_back(MUSTER_TRY(read_part(file)));
    const auto number = MUSTER_TRY(split_number(parts.back().header, "split.no", 0));
    if (i > 1 && number != i - 1) {
      return corrupt_error(fmt::format("{}: split.no is not {}", file.string(), i - 1));
    }
  }
  return parts;
}

}  // namespace

Result<GgufFile> GgufFile::open(const fs::path& path) {
  auto parts = MUSTER_TRY(read_parts(path));
  GgufFile whole;
  whole.path_ = path;
  for (auto& part : parts) {
    for (const auto& tensor : part.header.tensors) {
      GgufView view{tensor.type,
                    std::vector<std::int64_t>(tensor.shape.rbegin(), tensor.shape.rend()),
                    part.file.bytes().subspan(tensor.begin, tensor.size)};
      if (!whole.tensors_.emplace(tensor.name, std::move(view)).second) {
        return corrupt_error(fmt::format("{}: two files of the split have one tensor: {}",
                                         path.string(), shown_name(tensor.name)));
      }
    }
    if (whole.files_.empty()) {
      whole.header_ = std::move(part.header);
    } else {
      std::move(part.header.tensors.begin(), part.header.tensors.end(),
                std::back_inserter(whole.header_.tensors));
    }
    whole.files_.push_back(std::move(part.file));
  }
  const auto held = whole.header_.tensors.size();
  const auto stated = MUSTER_TRY(split_number(whole.header_, "split.tensors.count", held));
  if (parts.size() > 1 && stated != held) {
    return corrupt_error(fmt::format("{}: split.tensors.count is {}, the files hold {}",
                                     path.string(), stated, held));
  }
  return whole;
}

const GgufView* GgufFile::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

std::vector<fs::path> gguf_split_files(const fs::path& path) {
  const auto name = parse_split_name(path.string());
  if (!name) return std::vector<fs::path>{path};
  std::vector<fs::path> files;
  for (std::uint32_t i = 1; i <= name->count; ++i) files.push_back(split_file(*name, i));
  return files;
}

Result<GgufTokens> GgufFile::tokens() const {
  auto tokens = read_gguf_tokens(header_, metadata_bytes());
  if (tokens) return tokens;
  return Error{tokens.error().kind, fmt::format("{}: {}", path_.string(), tokens.error().message)};
}

Result<DecoderSpec> GgufFile::decoder() const {
  auto spec = read_gguf_decoder(*this);
  if (spec) return spec;
  return Error{spec.error().kind, fmt::format("{}: {}", path_.string(), spec.error().message)};
}

}  // namespace muster
