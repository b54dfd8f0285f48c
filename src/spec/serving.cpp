#include "spec/serving.h"

namespace muster {

std::string_view request_type_name(RequestType type) {
  switch (type) {
    case RequestType::Query:
      return "query";
    case RequestType::Document:
      return "document";
    case RequestType::Rerank:
      return "rerank";
  }
  return "?";
}

}  // namespace muster
