// A GGUF file has tokenizer and templates in its metadata; a folder spreads them over several
// files, and what is read later replaces what has the same name. So the order of reading is the
// order of precedence: the old configuration first, the files of newer releases last. A folder may
// lack every file but the tokenizer. Templates are kept as text and parsed when one is chosen, so a
// broken one that nobody uses does no harm.

#include "chat/decoder_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <system_error>
#include <utility>
#include <variant>

#include "base/file.h"
#include "modelfile/decoder_config.h"
#include "modelfile/gguf_file.h"
#include "modelfile/json_fields.h"
#include "tokenizer/reading/gguf_tokenizer.h"

// One description of a model's text side out of two kinds of files. A GGUF file has everything in
// its metadata; a folder spreads it over half a dozen files, of which the newer ones go before.

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kConfigBytesMax = std::uint64_t{64} << 20;
constexpr std::string_view kDefault = "default";

/// A template takes the place of one of its name that was there.
void put_template(std::string name, std::string text, std::vector<NamedChatTemplate>& templates) {
  const auto same = std::find_if(templates.begin(), templates.end(),
                                 [&](const auto& each) { return each.name == name; });
  if (same != templates.end()) {
    same->text = std::move(text);
  } else {
    templates.push_back({std::move(name), std::move(text)});
  }
}

// --- GGUF ---

std::string token_at(const GgufTokens& tokens, std::optional<std::uint32_t> id) {
  return id ? std::string(tokens.tokens[*id]) : std::string();
}

Result<DecoderText> load_gguf(const fs::path& path) {
  const auto file = MUSTER_TRY(GgufFile::open(path));
  const auto tokens = MUSTER_TRY(file.tokens());
  auto tokenizer = make_gguf_tokenizer(tokens);
  if (!tokenizer) {
    return Error{tokenizer.error().kind,
                 fmt::format("{}: {}", path.string(), tokenizer.error().message)};
  }
  DecoderText text;
  text.tokenizer = *std::move(tokenizer);
  text.bos_token = token_at(tokens, tokens.bos_id);
  text.eos_token = token_at(tokens, tokens.eos_id);
  text.stop_ids = tokens.stop_ids;
  if (!tokens.chat_template.empty()) {
    put_template(std::string(kDefault), std::string(tokens.chat_template), text.templates);
  }
  // Source: gguf-py of llama.cpp, constants.py, CHAT_TEMPLATE_N.
  constexpr std::string_view kNamed = "tokenizer.chat_template.";
  for (const auto& [key, value] : file.header().metadata) {
    const auto* template_text = std::get_if<std::string>(&value);
    if (!key.starts_with(kNamed) || template_text == nullptr) continue;
    put_template(key.substr(kNamed.size()), *template_text, text.templates);
  }
  return text;
}

// --- a folder ---

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// A special token: a text, or an object with its content.
Result<std::string> special_token(const JsonFields& config, std::string_view key) {
  const auto* value = config.find(key);
  if (value == nullptr) return std::string();
  if (value->is_object() && value->contains("content")) value = &(*value)["content"];
  if (value->is_string()) return value->get<std::string>();
  return config.wrong(key, "a token");
}

/// `chat_template`: a text, or a list of names with theirs.
Status read_templates(const JsonFields& config, std::vector<NamedChatTemplate>& templates) {
  constexpr std::string_view kKey = "chat_template";
  const auto* value = config.find(kKey);
  if (value == nullptr) return Done{};
  if (value->is_string()) {
    put_template(std::string(kDefault), value->get<std::string>(), templates);
    return Done{};
  }
  if (!value->is_array()) return config.wrong(kKey, "a text or a list of named texts");
  for (const auto& each : *value) {
    const bool is_named = each.is_object() && each.contains("name") && each["name"].is_string() &&
                          each.contains("template") && each["template"].is_string();
    if (!is_named) return config.wrong(kKey, "a text or a list of named texts");
    put_template(each["name"].get<std::string>(), each["template"].get<std::string>(), templates);
  }
  return Done{};
}

Status read_tokenizer_config(const fs::path& folder, DecoderText& text) {
  for (const auto* name : {"tokenizer_config.json", "chat_template.json"}) {
    if (!is_there(folder / name)) continue;
    const auto content = MUSTER_TRY(read_regular_file(folder / name, kConfigBytesMax));
    const auto config = MUSTER_TRY(JsonFields::parse((folder / name).string(), content));
    MUSTER_TRY(read_templates(config, text.templates));
    auto bos = MUSTER_TRY(special_token(config, "bos_token"));
    auto eos = MUSTER_TRY(special_token(config, "eos_token"));
    if (!bos.empty()) text.bos_token = std::move(bos);
    if (!eos.empty()) text.eos_token = std::move(eos);
  }
  return Done{};
}

// The names are sorted first, since a folder is listed in any order and the result must not depend
// on it.
Status read_template_files(const fs::path& folder, std::vector<NamedChatTemplate>& templates) {
  if (is_there(folder / "chat_template.jinja")) {
    auto content = MUSTER_TRY(read_regular_file(folder / "chat_template.jinja", kConfigBytesMax));
    put_template(std::string(kDefault), std::move(content), templates);
  }
  std::error_code error;
  std::set<fs::path> others;
  for (const auto& entry : fs::directory_iterator(folder / "additional_chat_templates", error)) {
    if (entry.path().extension() == ".jinja") others.insert(entry.path());
  }
  for (const auto& path : others) {
    auto content = MUSTER_TRY(read_regular_file(path, kConfigBytesMax));
    put_template(path.stem().string(), std::move(content), templates);
  }
  return Done{};
}

// What is wrong within a tokenizer is told by the file's name alone; which folder's it is, is known
// here. That it cannot be read is told by its path.
Error in_folder(const fs::path& folder, const Error& error) {
  if (!error.message.starts_with("tokenizer.json: ")) return error;
  return Error{error.kind, (folder / error.message).string()};
}

// Generation may stop at tokens of two sources, the model's configuration and the tokenizer's; a
// set keeps each once and in order.
Result<DecoderText> load_folder(const fs::path& folder) {
  DecoderText text;
  auto tokenizer = Tokenizer::load(folder / "tokenizer.json");
  if (!tokenizer) return in_folder(folder, tokenizer.error());
  text.tokenizer = *std::move(tokenizer);
  MUSTER_TRY(read_tokenizer_config(folder, text));
  MUSTER_TRY(read_template_files(folder, text.templates));
  std::set<TokenId> stops;
  // A folder that is no decoder has a tokenizer all the same.
  if (const auto spec = read_decoder_spec(folder)) {
    stops.insert(spec->stop_ids.begin(), spec->stop_ids.end());
  }
  if (const auto eos = text.tokenizer->find_token(text.eos_token)) stops.insert(*eos);
  text.stop_ids.assign(stops.begin(), stops.end());
  return text;
}

}  // namespace

Result<ChatTemplate> DecoderText::find_template(std::optional<std::string_view> name,
                                                bool has_tools) const {
  const auto find = [&](std::string_view wanted) -> const NamedChatTemplate* {
    const auto found = std::find_if(templates.begin(), templates.end(),
                                    [&](const auto& each) { return each.name == wanted; });
    return found == templates.end() ? nullptr : &*found;
  };
  if (templates.empty()) {
    return Error{ErrorKind::NotFound, "the model has no chat template"};
  }
  // Source: transformers 5.17, get_chat_template.
  const auto* found = name ? find(*name) : has_tools ? find("tool_use") : nullptr;
  if (found == nullptr && !name) found = find(kDefault);
  if (found != nullptr) return ChatTemplate::parse(found->text);
  std::vector<std::string> names;
  for (const auto& each : templates) names.push_back(each.name);
  return Error{ErrorKind::NotFound,
               fmt::format("the model has no chat template of that name: {} (it has {})",
                           name.value_or(kDefault), fmt::join(names, ", "))};
}

// By the name alone: a GGUF file is always one file, and everything else is a folder.
Result<DecoderText> load_decoder_text(const fs::path& source) {
  return source.extension() == ".gguf" ? load_gguf(source) : load_folder(source);
}

// Without special tokens of the tokenizer's own: the template has written those that the model
// wants.
std::vector<TokenId> encode_rendered(const Tokenizer& tokenizer, std::string_view rendered,
                                     Tokenizer::Scratch& scratch) {
  std::vector<TokenId> ids;
  tokenizer.encode_content(rendered, std::numeric_limits<std::uint32_t>::max(), scratch, ids);
  return ids;
}

}  // namespace muster
