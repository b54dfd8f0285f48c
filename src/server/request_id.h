#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// The id of a request, for logs and answers: what the client gave as X-Request-Id when it is 1 to
/// 128 of A-Z a-z 0-9 . _ -, else 128 random bits as 32 hexadecimal digits.
std::string request_id_for(std::optional<std::string_view> given);

}  // namespace muster
