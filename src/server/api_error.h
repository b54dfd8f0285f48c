#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "net/http_message.h"
#include "server/error_form.h"
#include "serving/inference_service.h"

namespace muster {

/// Why a request was not done, as its client reads it:
/// `{"error": {"message", "type", "param", "code"}}`.
///
/// Source: OpenAI, API reference, "Error codes"; the words of `type` and `code` are theirs.
struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::optional<std::string> param = {};     // the field that is wrong
  std::optional<std::string> code = {};      // "model_not_found"
  std::optional<Duration> retry_after = {};  // for the header Retry-After
};

/// Either a T or the ApiError that says why not; reads as Result does, MUSTER_TRY included.
template <typename T>
class [[nodiscard]] ApiResult {
 public:
  // Implicit on purpose, as Result's.
  ApiResult(const T& value) : state_(value) {}             // NOLINT(google-explicit-constructor)
  ApiResult(T&& value) : state_(std::move(value)) {}       // NOLINT(google-explicit-constructor)
  ApiResult(ApiError error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& operator*() & { return *checked(); }
  T&& operator*() && { return std::move(*checked()); }
  T* operator->() { return checked(); }
  const ApiError& error() const {
    MUSTER_CHECK(!has_value());
    return *std::get_if<ApiError>(&state_);
  }

 private:
  T* checked() {
    MUSTER_CHECK(has_value());
    return std::get_if<T>(&state_);
  }
  std::variant<T, ApiError> state_;
};
using ApiStatus = ApiResult<Done>;

/// 400 about one field of the body; `code` may be empty.
ApiError wrong_field(std::string_view param, std::string_view code, std::string message);

/// The status of docs/errors.md, with the type and code that OpenAI's clients know.
ApiError api_error(const Error& error);
ApiError api_error(const CallError& error);

/// For a status without a kind: 401, 403, 404, 405, 413, 415, 431, …
ApiError api_error(int status, std::string message);

/// With `Retry-After` in whole seconds, rounded up, where there is one. In TEI's form a fault of a
/// body is 422, an empty list 400 and a fault of the server 424, as there.
///
/// Source: text-embeddings-inference, router/src/lib.rs (ErrorResponse) and http/server.rs (From
/// for StatusCode); ollama, server/routes.go; cohere-python, core/api_error.py.
HttpResponse error_response(const ApiError& error, ErrorForm form = ErrorForm::OpenAi);

}  // namespace muster
