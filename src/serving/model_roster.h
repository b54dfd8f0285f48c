#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace muster {

/// The models that a server serves or is loading, whatever they do: one set of names, one limit.
///
/// Threads: owned by one loop.
class ModelRoster {
 public:
  /// A model's place in the roster, held from the moment that somebody asks for it until it is to
  /// leave: one that still ends its calls counts no more, and its name is free.
  ///
  /// Owner: the model. The roster outlives it.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept
        : roster_(std::exchange(other.roster_, nullptr)), id_(other.id_) {}
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { leave(); }

    /// Gives the place up. Nothing for an empty ticket.
    void leave();

    /// The model is called so from now on.
    ///
    /// Errors: InvalidArgument where another one is.
    Status take_name(const std::string& name);

   private:
    friend class ModelRoster;
    Ticket(ModelRoster* roster, std::uint64_t id) : roster_(roster), id_(id) {}

    ModelRoster* roster_ = nullptr;  // nullptr: no place
    std::uint64_t id_ = 0;
  };

  /// most: models at a time.
  explicit ModelRoster(std::uint32_t most) : most_(most) {}
  ModelRoster(const ModelRoster&) = delete;
  ModelRoster& operator=(const ModelRoster&) = delete;

  /// Errors: ResourceExhausted where there are as many as there may be.
  Result<Ticket> enter();

  bool has_name(std::string_view name) const;

  /// Models that hold a place: those that are served, and those that are being opened.
  std::size_t count() const { return names_.size(); }

 private:
  const std::uint32_t most_;
  std::map<std::uint64_t, std::string> names_;  // by ticket; empty: not known yet
  std::uint64_t next_id_ = 1;
};

/// What whoever waits for a load is told where the server ends before.
inline Error server_ends_error() {
  return {ErrorKind::Unavailable, "the server ended before the answer"};
}

}  // namespace muster
