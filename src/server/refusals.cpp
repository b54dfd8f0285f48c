#include "server/refusals.h"

#include <string>
#include <utility>

#include "base/text.h"
#include "server/api_error.h"

namespace muster {

void dress_refusal(HttpResponse& response, ErrorForm form) {
  ApiError error = api_error(response.status, std::string(trim(response.body)));
  if (response.status == 503) error.retry_after = kComeAgain;
  HttpResponse dressed = error_response(error, form);
  for (auto& header : response.headers) {
    if (header.first != "Retry-After") dressed.headers.push_back(std::move(header));
  }
  response = std::move(dressed);
}

HttpResponse missing_route_response(const HttpRequest& request, const RouteMiss& miss) {
  if (!miss.allow.empty()) {
    constexpr std::size_t kMethodShownMost = 20;
    HttpResponse response = error_response(
        api_error(405, "This route does not take " + request.method.substr(0, kMethodShownMost) +
                           " but " + miss.allow),
        error_form_of(request.path));
    response.headers.emplace_back("Allow", miss.allow);
    return response;
  }
  constexpr std::size_t kShownMost = 200;  // bytes of a path that a client made up
  std::string message = "There is no route " + request.path.substr(0, kShownMost);
  if (!miss.instead.empty()) message.append("; ").append(miss.instead);
  if (miss.nearest) message += "; did you mean " + *miss.nearest + "?";
  return error_response(api_error(404, message), error_form_of(request.path));
}

}  // namespace muster
