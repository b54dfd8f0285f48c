// Bodies are appended by hand, because a request may hold megabytes of texts and building a JSON
// tree of them would copy each text once more. Answers are parsed as a tree and trusted in nothing:
// every field is looked at for its type, every list for its length, every row for its size, so that
// a server of another kind is reported as Corrupt and never read as vectors.

#include "client/server_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "dataset/json_text.h"
#include "tokenizer/normalize/charsmap.h"

namespace muster {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "rows are little-endian on the wire");

Error unlike(std::string_view field) {
  return {ErrorKind::Corrupt,
          fmt::format("the server's answer has no {} as muster serve has it", field)};
}

// Reads fields of an object; the first one that is missing or of another type is remembered.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  std::string text(const char* name) {
    const auto* value = find(name, &Json::is_string);
    return value == nullptr ? "" : value->get<std::string>();
  }
  bool boolean(const char* name) {
    const auto* value = find(name, &Json::is_boolean);
    return value != nullptr && value->get<bool>();
  }
  std::uint32_t count(const char* name) {
    const auto* value = find(name, &Json::is_number_unsigned);
    if (value == nullptr) return 0;
    const auto number = value->get<std::uint64_t>();
    if (number > std::numeric_limits<std::uint32_t>::max()) fault_ = name;
    return static_cast<std::uint32_t>(number);
  }
  std::vector<std::string> texts(const char* name) {
    std::vector<std::string> all;
    const auto* list = find(name, &Json::is_array);
    if (list == nullptr) return all;
    for (const auto& item : *list) {
      if (!item.is_string()) {
        fault_ = name;
        return all;
      }
      all.push_back(item.get<std::string>());
    }
    return all;
  }
  bool has(const char* name) const {
    return object_.is_object() && object_.contains(name) && !object_[name].is_null();
  }
  const std::optional<std::string>& fault() const { return fault_; }

 private:
  const Json* find(const char* name, bool (Json::*is_right)() const noexcept) {
    if (object_.is_object()) {
      const auto found = object_.find(name);
      if (found != object_.end() && ((*found).*is_right)()) return &*found;
    }
    if (!fault_) fault_ = name;
    return nullptr;
  }

  const Json& object_;
  std::optional<std::string> fault_;
};

// What decides the bits of a vector: models of other kinds lack some of it.
Status read_embedding(Fields& fields, ListedModel& model) {
  if (fields.has("dim")) model.dim = fields.count("dim");
  model.length_max = fields.count("length_max");
  model.prompts = fields.texts("prompts");
  model.default_prompt = fields.text("default_prompt");
  model.pooling = fields.text("pooling");
  model.normalize = fields.boolean("normalize");
  const auto precision = parse_precision(fields.text("precision"));
  model.precision_reason = fields.text("precision_reason");
  model.equality_class = fields.text("equality_class");
  if (fields.fault()) return unlike(*fields.fault());
  if (!precision) return unlike("precision");
  model.precision = *precision;
  return Done{};
}

Result<ListedModel> listed_model(const Json& json) {
  Fields fields(json);
  ListedModel model;
  model.name = fields.text("id");
  if (fields.has("path")) model.path = fields.text("path");  // told to administrators alone
  model.embeds = fields.text("task") == "embed";
  model.state = fields.text("state");
  if (fields.has("reason")) model.reason = fields.text("reason");
  if (fields.fault()) return unlike(*fields.fault());
  if (model.embeds) MUSTER_TRY(read_embedding(fields, model));
  return model;
}

// The list `data` of an answer.
Result<Json> data_of(const std::string& body) {
  auto json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("data") || !json["data"].is_array()) {
    return unlike("data");
  }
  return std::move(json["data"]);
}

// `data` with an entry for each text, in their order.
Result<Json> data_of(const std::string& body, std::size_t text_count) {
  auto data = MUSTER_TRY(data_of(body));
  if (data.size() != text_count) return unlike("data");
  for (std::size_t i = 0; i < text_count; ++i) {
    Fields fields(data[i]);
    if (fields.count("index") != i || fields.fault()) return unlike("index");
  }
  return data;
}

std::string body_of(std::string_view model, std::string_view prompt,
                    std::span<const std::string_view> texts, std::string_view more) {
  std::string body = R"({"model":)";
  append_json_string(model, body);
  if (!prompt.empty()) {
    body += R"(,"prompt_name":)";
    append_json_string(prompt, body);
  }
  // Said, because a server's default may be to refuse what is too long.
  body += R"(,"truncate":true)";
  body += more;
  body += R"(,"input":[)";
  for (const auto& text : texts) {
    if (body.back() != '[') body += ',';
    append_json_string(text, body);
  }
  return body + "]}";
}

}  // namespace

bool compute_alike(const ListedModel& one, const ListedModel& other) {
  return one.equality_class == other.equality_class && one.length_max == other.length_max &&
         one.pooling == other.pooling && one.normalize == other.normalize && one.dim == other.dim;
}

// Every byte is escaped, not only the reserved ones: a name may hold slashes, and a longer target
// costs nothing.
std::string model_target(std::string_view name) {
  std::string target = "/v1/models/";
  for (const char c : name) target += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return target;
}

Result<ListedModel> parse_listed_model(const std::string& body) {
  return listed_model(Json::parse(body, nullptr, /*allow_exceptions=*/false));
}

Result<std::vector<ListedModel>> parse_listed_models(const std::string& body) {
  std::vector<ListedModel> models;
  const auto data = MUSTER_TRY(data_of(body));
  for (const auto& item : data) models.push_back(MUSTER_TRY(listed_model(item)));
  return models;
}

std::string embeddings_body(std::string_view model, std::string_view prompt,
                            std::span<const std::string_view> texts) {
  // Base64 takes about half of what the numbers take in decimal, and keeps their bits. The bulk
  // lane lets a server answer interactive clients first.
  return body_of(model, prompt, texts, R"(,"encoding_format":"base64","lane":"bulk")");
}

std::string tokenize_body(std::string_view model, std::string_view prompt,
                          std::span<const std::string_view> texts) {
  return body_of(model, prompt, texts, "");
}

Result<std::vector<std::string>> parse_rows(const std::string& body, std::size_t text_count,
                                            std::uint32_t dim) {
  const auto data = MUSTER_TRY(data_of(body, text_count));
  std::vector<std::string> rows;
  rows.reserve(text_count);
  for (const auto& item : data) {
    const auto embedding = item.find("embedding");
    if (embedding == item.end() || !embedding->is_string()) return unlike("embedding");
    auto row = decode_base64(embedding->get_ref<const std::string&>());
    if (!row || row->size() != dim * sizeof(float)) return unlike("embedding");
    rows.push_back(*std::move(row));
  }
  return rows;
}

Result<std::vector<Tokenizer::Encoded>> parse_token_counts(const std::string& body,
                                                           std::size_t text_count) {
  const auto data = MUSTER_TRY(data_of(body, text_count));
  std::vector<Tokenizer::Encoded> counts;
  counts.reserve(text_count);
  for (const auto& item : data) {
    Fields fields(item);
    Tokenizer::Encoded encoded;
    encoded.token_count = fields.count("count");
    encoded.is_truncated = fields.boolean("truncated");
    if (fields.fault()) return unlike(*fields.fault());
    counts.push_back(encoded);
  }
  return counts;
}

}  // namespace muster
