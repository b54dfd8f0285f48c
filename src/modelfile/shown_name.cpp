#include "modelfile/shown_name.h"

#include <nlohmann/json.hpp>

namespace muster {

std::string shown_name(std::string_view name) {
  return nlohmann::json(std::string(name.substr(0, 80)))
      .dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster
