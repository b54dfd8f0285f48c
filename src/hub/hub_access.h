#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

namespace muster {

/// Where a hub is and who asks it.
struct HubAccess {
  std::string endpoint;         // "https://huggingface.co", without a slash at its end
  std::string token;            // empty: none
  std::string token_place;      // "HF_TOKEN", or the file that it was read from
  std::string certificates;     // a file of certificate authorities; empty: libcurl's own
  std::filesystem::path cache;  // where models lie: "…/hub"
};

/// What a command line says in place of the environment.
struct HubChoice {
  std::optional<std::string> endpoint;
  std::optional<std::string> cache;
};

/// As huggingface_hub resolves them: HF_ENDPOINT; HF_TOKEN, HUGGING_FACE_HUB_TOKEN or the file
/// HF_TOKEN_PATH, `token` in `hub_home` (none of them with HF_HUB_DISABLE_IMPLICIT_TOKEN); the
/// cache of `hub_cache`. Certificates: SSL_CERT_FILE, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE.
///
/// Errors: InvalidArgument: HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) is set, an endpoint that is no
/// URL, a token that cannot stand in a header.
/// Source: huggingface_hub 2.x, constants.py and utils/_auth.py.
Result<HubAccess> find_hub_access(const HubChoice& choice);

}  // namespace muster
