// Turns answers into sentences that say what to do. The hub answers 401 alike for a model that does
// not exist and for one that may not be seen; its header X-Error-Code tells some cases apart, and
// the sentence names both possibilities where it does not. What a server says of itself is cut to a
// length before it is shown. A token's place is named, never the token.

#include "hub/hub_refusal.h"

#include <fmt/format.h>

#include "modelfile/hub_cache.h"

namespace muster {
namespace {

// What a hub says of a token that nobody has, in difference to one that may not read the model.
constexpr std::string_view kBadToken = "Invalid credentials in Authorization header";
constexpr std::size_t kHubWordsShown = 200;  // of what a hub says about itself

std::string header_of(const TransferHead& head, std::string_view name) {
  return std::string(find_header(head.headers, name).value_or("").substr(0, kHubWordsShown));
}

// What is asked for, as a message names it.
std::string subject_of(const HubQuestion& question) {
  return question.file.empty() ? std::string(question.model)
                               : fmt::format("{} of {}", question.file, question.model);
}

Error gated(const HubAccess& access, const HubQuestion& question) {
  const auto terms = fmt::format("{}/{}", access.endpoint, question.model);
  return {ErrorKind::InvalidArgument,
          access.token.empty()
              ? fmt::format("{} is gated: accept its terms at {} and set HF_TOKEN to a token of "
                            "that account",
                            question.model, terms)
              : fmt::format("{} is gated, and the account of the token of {} has no access: accept "
                            "its terms at {}",
                            question.model, access.token_place, terms)};
}

Error no_such_model(const HubAccess& access, const HubQuestion& question) {
  auto hint = nearest_hub_id_hint(question.model, access.cache);
  if (hint.empty() && question.model.find('/') == std::string_view::npos) {
    hint = fmt::format("; did you mean sentence-transformers/{}?", question.model);
  }
  const auto rights =
      access.token.empty()
          ? std::string("a private one needs HF_TOKEN")
          : fmt::format("a private one needs a token that may read it, which that of {} may not",
                        access.token_place);
  return {ErrorKind::NotFound,
          fmt::format("no model {} at {} ({}){}", question.model, access.endpoint, rights, hint)};
}

Error refused_status(const HubAccess& access, const HubQuestion& question,
                     const TransferHead& head) {
  const auto code = header_of(head, "X-Error-Code");
  const auto words = header_of(head, "X-Error-Message");
  if (code == "GatedRepo") return gated(access, question);
  if (code == "RevisionNotFound") {
    return {ErrorKind::NotFound,
            fmt::format("{} has no revision {}", question.model, question.revision)};
  }
  if (head.status == 401 && words == kBadToken && !access.token.empty()) {
    return {ErrorKind::InvalidArgument,
            fmt::format("{} refuses the token of {}: make a new one at {}/settings/tokens",
                        access.endpoint, access.token_place, access.endpoint)};
  }
  if (head.status == 403) {
    return {ErrorKind::InvalidArgument,
            fmt::format("{} refuses {}{}{}", access.endpoint, subject_of(question),
                        words.empty() ? "" : ": ", words)};
  }
  if ((head.status == 401 || head.status == 404) && question.file.empty()) {
    return no_such_model(access, question);
  }
  if (head.status == 404) {
    return {ErrorKind::NotFound, fmt::format("{} lists {} of {} and does not have it",
                                             access.endpoint, question.file, question.model)};
  }
  return {ErrorKind::Unavailable,
          fmt::format("{} answers {} {} to the question for {}", access.endpoint, head.status,
                      http_status_text(head.status), subject_of(question))};
}

}  // namespace

Error hub_refusal(const HubAccess& access, const HubQuestion& question, const TransferEnd& end) {
  switch (end.fault) {
    case TransferFault::None:
      return refused_status(access, question, end.head);
    case TransferFault::Unreachable:
      return {ErrorKind::Unavailable,
              fmt::format("{} cannot be reached: {}; https_proxy names a proxy, HF_ENDPOINT a "
                          "mirror",
                          access.endpoint, end.fault_text)};
    case TransferFault::Untrusted:
      return {ErrorKind::Unavailable,
              fmt::format("{} has a certificate that is not trusted: {}; SSL_CERT_FILE names the "
                          "authorities of a proxy or mirror",
                          access.endpoint, end.fault_text)};
    case TransferFault::Refused:
      return {ErrorKind::Unavailable,
              fmt::format("{} redirects {} where it is not followed: {}", access.endpoint,
                          subject_of(question), end.fault_text)};
    case TransferFault::Broken:
      break;
  }
  return {ErrorKind::Unavailable,
          fmt::format("the connection for {} broke: {}", subject_of(question), end.fault_text)};
}

}  // namespace muster
