// The bodies of Ollama's API, and its answers.

#include "server/ollama_api.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <utility>

#include "server/json_body.h"

namespace muster {
namespace {

using simdjson::ondemand::json_type;

// What is taken and changes nothing; a value of another type is refused all the same.
BodyField unused_object(std::string_view name) {
  return {name, [name](JsonValue& value) -> ApiStatus {
            json_type type{};
            if (const auto fault = value.type().get(type)) return broken_json(fault);
            if (type != json_type::object) return wrong_type(value, name, "an object");
            return Done{};
          }};
}

BodyField keep_alive_field() {
  return {"keep_alive", [](JsonValue& value) -> ApiStatus {
            json_type type{};
            if (const auto fault = value.type().get(type)) return broken_json(fault);
            if (type == json_type::string) {
              MUSTER_TRY(read_text(value, "keep_alive", kNameBytesMost));
              return Done{};
            }
            double seconds = 0;
            if (value.get_double().get(seconds) == simdjson::SUCCESS) return Done{};
            return wrong_type(value, "keep_alive", "a number of seconds or a duration as a string");
          }};
}

// A text, or a list of texts; the empty text alone and the empty list are nothing to embed.
ApiStatus read_ollama_input(JsonValue& value, std::string_view name, const TextListLimits& limits,
                            std::vector<std::string>& texts) {
  json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  const auto read = read_texts(value, name, limits, false, texts);
  if (!read && read.error().code != "empty_array") return read.error();
  if (type == json_type::string && texts.front().empty()) texts.clear();
  return Done{};
}

ApiResult<OllamaEmbedRequest> parse(std::string body, std::vector<BodyField> fields,
                                    OllamaEmbedRequest& request, Duration deadline_most) {
  CallOptions& options = request.call.options;
  fields.push_back(unused_object("options"));
  fields.push_back(keep_alive_field());
  bool names_model = false;
  add_call_fields(fields, options, names_model, deadline_most);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (!names_model) return missing_field("model");
  request.model_name = options.model;
  options.model = without_latest(std::move(options.model));
  return std::move(request);
}

}  // namespace

ApiResult<OllamaEmbedRequest> parse_ollama_embed(std::string body, const TextListLimits& limits,
                                                 Duration deadline_most) {
  OllamaEmbedRequest request;
  EmbedCall& call = request.call;
  std::vector<BodyField> fields;
  fields.push_back({"input", [&](JsonValue& value) {
                      return read_ollama_input(value, "input", limits, call.texts);
                    }});
  fields.push_back({"dimensions", [&](JsonValue& value) -> ApiStatus {
                      const auto number =
                          MUSTER_TRY(read_integer(value, "dimensions", 0, UINT32_MAX));
                      if (number > 0) call.dimensions = static_cast<std::uint32_t>(number);
                      return Done{};
                    }});
  return parse(std::move(body), std::move(fields), request, deadline_most);
}

ApiResult<OllamaEmbedRequest> parse_ollama_embeddings(std::string body,
                                                      const TextListLimits& limits,
                                                      Duration deadline_most) {
  OllamaEmbedRequest request;
  std::vector<BodyField> fields;
  fields.push_back({"prompt", [&](JsonValue& value) -> ApiStatus {
                      auto text = MUSTER_TRY(read_text(value, "prompt", limits.text_bytes_most));
                      if (!text.empty()) request.call.texts.push_back(std::move(text));
                      return Done{};
                    }});
  return parse(std::move(body), std::move(fields), request, deadline_most);
}

RowSection ollama_section(const std::string& model_name, std::uint64_t token_count,
                          Duration total) {
  RowSection section;
  section.before = R"({"model":)";
  append_quoted(model_name, section.before);
  section.before += R"(,"embeddings":[)";
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(total).count();
  section.after = fmt::format(R"(],"total_duration":{},"load_duration":0,"prompt_eval_count":{}}})",
                              nanoseconds, token_count);
  return section;
}

RowSection ollama_old_section() { return {.before = R"({"embedding":)", .after = "}"}; }

ApiResult<std::string> parse_ollama_show(std::string body) {
  std::string model;
  std::string old_name;
  std::string ignored;
  bool is_verbose = false;
  const std::vector<BodyField> fields{
      name_field("model", model),        name_field("name", old_name),
      name_field("system", ignored),     name_field("template", ignored),
      flag_field("verbose", is_verbose), unused_object("options")};
  MUSTER_TRY(read_body(std::move(body), fields));
  if (model.empty()) model = std::move(old_name);
  if (model.empty()) return missing_field("model");
  return without_latest(std::move(model));
}

std::string without_latest(std::string name) {
  constexpr std::string_view kTag = ":latest";
  if (name.ends_with(kTag)) name.resize(name.size() - kTag.size());
  return name;
}

std::string ollama_time(double unix_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

}  // namespace muster
