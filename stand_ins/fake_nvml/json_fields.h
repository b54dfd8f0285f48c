#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::fake_nvml {

using Json = nlohmann::json;

/// A JSON value that knows where it stands, so that a complaint names it: "gpus[0].load".
class Field {
 public:
  Field(const Json& json, std::string place) : json_(&json), place_(std::move(place)) {}

  const Json& json() const { return *json_; }
  const std::string& place() const { return place_; }

  /// "gpus[0].load must be a number from 0 to 1", as InvalidArgument.
  Error must_be(std::string_view wanted) const;

  /// Refuses what is no object, and keys that nothing reads.
  Status check_keys(std::span<const std::string_view> keys) const;

  std::optional<Field> child(std::string_view key) const;
  /// Errors: InvalidArgument when it is no list.
  Result<std::vector<Field>> items() const;
  /// Key and value of every member. Errors: InvalidArgument when it is no object.
  Result<std::vector<std::pair<std::string, Field>>> members() const;

  Result<double> number(double min = -1e18, double max = 1e18) const;
  Result<std::uint64_t> integer(
      std::uint64_t max = std::numeric_limits<std::uint64_t>::max()) const;
  Result<bool> boolean() const;
  Result<std::string> text() const;

  // The member `key` into `out`, which keeps its value where there is none.
  Status read(std::string_view key, double& out, double min = 0, double max = 1e18) const;
  Status read(std::string_view key, std::uint64_t& out) const;
  Status read(std::string_view key, std::uint32_t& out) const;
  Status read(std::string_view key, std::string& out) const;
  Status read(std::string_view key, bool& out) const;

 private:
  const Json* json_;
  std::string place_;
};

}  // namespace muster::fake_nvml
