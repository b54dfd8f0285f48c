// Reads the environment by the rules of huggingface_hub, so that a machine set up for it needs
// nothing new: the same variables in the same order. It remembers where the token came from, as a
// refusal must name the place to mend. A token is checked before it goes into a header, because a
// line end in it would start another header.

#include "hub/hub_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <initializer_list>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/environment.h"
#include "base/file.h"
#include "base/text.h"
#include "modelfile/hub_cache.h"
#include "net/http_client.h"

namespace muster {
namespace {

constexpr std::string_view kPublicHub = "https://huggingface.co";
constexpr std::uint64_t kTokenFileBytesMax = 4096;  // a token has some forty characters

// The first of the variables that is set and not empty, with its name.
std::pair<std::string, std::string> first_set(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (auto value = environment_variable(name); value && !value->empty()) return {*value, name};
  }
  return {};
}

// Source: huggingface_hub 2.x, constants.py, `_is_true`.
bool is_true(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  constexpr std::array<std::string_view, 4> kTrue{"1", "ON", "YES", "TRUE"};
  return std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end();
}

Status check_online() {
  const auto [value, name] = first_set({"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"});
  if (!is_true(value)) return Done{};
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{}={} forbids to ask a hub: unset it to fetch a model", name, value)};
}

Result<std::string> endpoint_of(const HubChoice& choice) {
  auto [endpoint, name] = first_set({"HF_ENDPOINT"});
  if (choice.endpoint) std::tie(endpoint, name) = std::pair(*choice.endpoint, "--hub-endpoint");
  if (endpoint.empty()) return std::string(kPublicHub);
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const auto url = parse_http_url(endpoint);
  if (!url || !url->unix_path.empty()) {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("{}: \"{}\" is no hub's URL; an example is {}", name, endpoint, kPublicHub)};
  }
  return endpoint;
}

// A token goes into a header: a line end in it would make another one.
Status take_token(std::string_view text, std::string place, HubAccess& access) {
  const auto token = trim(text);
  if (token.empty()) return Done{};
  if (!std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7F; })) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("the token of {} holds a character that no token has", place)};
  }
  access.token = token;
  access.token_place = std::move(place);
  return Done{};
}

Status read_token(HubAccess& access) {
  if (is_true(first_set({"HF_HUB_DISABLE_IMPLICIT_TOKEN"}).first)) return Done{};
  if (const auto [value, name] = first_set({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"});
      !trim(value).empty()) {
    return take_token(value, name, access);
  }
  const auto given = first_set({"HF_TOKEN_PATH"}).first;
  const auto path = given.empty() ? hub_home() / "token" : expand_path(given);
  const auto text = read_file(path, kTokenFileBytesMax);
  if (text) return take_token(*text, path.string(), access);
  if (text.error().kind == ErrorKind::NotFound) return Done{};
  return text.error();
}

}  // namespace

Result<HubAccess> find_hub_access(const HubChoice& choice) {
  MUSTER_TRY(check_online());
  HubAccess access;
  access.endpoint = MUSTER_TRY(endpoint_of(choice));
  MUSTER_TRY(read_token(access));
  access.certificates = first_set({"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}).first;
  access.cache = choice.cache ? expand_path(*choice.cache) : hub_cache();
  std::error_code ignored;
  // The links of a snapshot are relative, but what is printed is used from other folders too.
  if (const auto whole = std::filesystem::absolute(access.cache, ignored); !ignored) {
    access.cache = whole.lexically_normal();
  }
  return access;
}

}  // namespace muster
