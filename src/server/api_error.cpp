// One error in four wordings: OpenAI's by default, and those of TEI, Ollama and Cohere where the
// route asks for them. The status is chosen once, by the kind of the error; TEI alone then maps it
// again, because its clients expect 422 and 424 where OpenAI's expect 400 and 500. A call that is
// refused with 429 or 503 always says when to come back, and the time is rounded up, so nobody
// returns too early.

#include "server/api_error.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/json_values.h"

namespace muster {
namespace {

// The type and code of a status. A status without a row keeps the defaults of ApiError.
struct StatusWords {
  int status;
  std::string_view type;
  std::string_view code;  // empty: null
};

// Source: OpenAI, API reference, "Error codes", and the classes that openai-python makes of them.
constexpr StatusWords kWords[] = {
    {401, "invalid_request_error", "invalid_api_key"},
    {403, "invalid_request_error", "insufficient_permissions"},
    {409, "invalid_request_error", "conflict"},
    {429, "rate_limit_exceeded", "rate_limit_exceeded"},
    {500, "server_error", "internal_error"},
    {501, "server_error", "not_implemented"},
    {503, "server_error", "unavailable"},
    {504, "server_error", "deadline_exceeded"},
};

int http_status(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidArgument:
      return 400;
    case ErrorKind::NotFound:
      return 404;
    case ErrorKind::Unsupported:
    case ErrorKind::Corrupt:
      return 422;
    case ErrorKind::ResourceExhausted:
      return 429;
    case ErrorKind::DeadlineExceeded:
      return 504;
    case ErrorKind::Unavailable:
      return 503;
    case ErrorKind::Cancelled:  // by somebody else: who left is told nothing (exchange.cpp)
      return 409;
    case ErrorKind::Internal:
      return 500;
  }
  return 500;
}

using Json = nlohmann::ordered_json;

// The status that TEI gives, and its word for what is wrong. What TEI has no word for, a route or a
// key, keeps its status.
StatusWords tei_words(const ApiError& error) {
  switch (error.status) {
    case 400:
      if (error.code == "empty_array") return {400, "Empty", ""};
      return {422, "Validation", ""};
    case 429:
      return {429, "Overloaded", ""};
    case 422:  // the model cannot do it
    case 500:
      return {424, "Backend", ""};
    case 503:
      return {503, "Unhealthy", ""};
    case 504:
      return {504, "Backend", ""};
    default:
      return {error.status, "Validation", ""};
  }
}

Json error_body(const ApiError& error, ErrorForm form) {
  switch (form) {
    case ErrorForm::Tei:
      return {{"error", error.message}, {"error_type", tei_words(error).type}};
    case ErrorForm::Ollama:
      return {{"error", error.message}};
    case ErrorForm::Cohere:
      return {{"message", error.message}};
    case ErrorForm::OpenAi:
      break;
  }
  return {{"error",
           {{"message", error.message},
            {"type", error.type},
            {"param", or_null(error.param)},
            {"code", or_null(error.code)}}}};
}

}  // namespace

ApiError wrong_field(std::string_view param, std::string_view code, std::string message) {
  ApiError error{.status = 400, .message = std::move(message)};
  error.param = std::string(param);
  if (!code.empty()) error.code = std::string(code);
  return error;
}

ApiError api_error(int status, std::string message) {
  ApiError error{.status = status, .message = std::move(message)};
  for (const StatusWords& words : kWords) {
    if (words.status != status) continue;
    error.type = words.type;
    error.code = std::string(words.code);
  }
  return error;
}

ApiError api_error(const Error& error) { return api_error(http_status(error.kind), error.message); }

ApiError api_error(const CallError& error) {
  ApiError answer = api_error(error.error);
  if (error.error.kind == ErrorKind::NotFound) {
    answer.param = "model";
    answer.code = "model_not_found";
  }
  answer.retry_after = error.retry_after;
  if (answer.status == 429 && !answer.retry_after) answer.retry_after = std::chrono::seconds(1);
  if (answer.status == 503 && !answer.retry_after) answer.retry_after = std::chrono::seconds(1);
  return answer;
}

HttpResponse error_response(const ApiError& error, ErrorForm form) {
  const Json body = error_body(error, form);
  const int status = form == ErrorForm::Tei ? tei_words(error).status : error.status;
  HttpResponse response{.status = status, .content_type = "application/json", .body = {}};
  // What a client sent comes back in some messages; bytes that are no UTF-8 become U+FFFD.
  response.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  // Source: RFC 9110 section 11.6.1; RFC 6750 section 3.
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  // The deadline is over: what is asked again would be computed again, and be as late.
  // Source: openai-python, _base_client.py, _should_retry.
  if (error.status == 504) response.headers.emplace_back("x-should-retry", "false");
  if (error.retry_after) {
    const auto whole = std::chrono::ceil<std::chrono::seconds>(*error.retry_after).count();
    response.headers.emplace_back("Retry-After", std::to_string(std::max<std::int64_t>(whole, 1)));
  }
  return response;
}

}  // namespace muster
