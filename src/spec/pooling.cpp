#include "spec/pooling.h"

namespace muster {

std::string_view pooling_name(Pooling pooling) {
  switch (pooling) {
    case Pooling::Cls:
      return "cls";
    case Pooling::Mean:
      return "mean";
    case Pooling::Max:
      return "max";
    case Pooling::Last:
      return "last";
  }
  return "?";
}

std::optional<Pooling> parse_pooling(std::string_view name) {
  for (const auto pooling : {Pooling::Cls, Pooling::Mean, Pooling::Max, Pooling::Last}) {
    if (name == pooling_name(pooling)) return pooling;
  }
  return std::nullopt;
}

}  // namespace muster
