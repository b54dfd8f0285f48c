#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "net/http_message.h"
#include "server/openai_embeddings.h"

namespace muster {

/// The answer to a call for vectors, written piece by piece: an answer of 2,048 texts is 30 ms of
/// work, which a loop that serves others must not do in one go.
///
/// With fewer dimensions than the model has, rows are cut and scaled to length 1 again (in
/// float64). A value that is not finite makes the answer a 500: no format may carry it.
///
/// Cost: base64 about 1 ns a value, numbers 35 ns. Threads: pure.
class EmbeddingsAnswer {
 public:
  /// dimensions: at most the answer's.
  EmbeddingsAnswer(EmbedAnswer answer, EmbeddingFormat format,
                   std::optional<std::uint32_t> dimensions);

  /// Writes about `value_count` values more, whole rows and at least one; true: that was all.
  bool write(std::size_t value_count);

  std::size_t value_count() const { return rows_.size(); }

  /// After `write` has said true; once.
  HttpResponse take() { return std::move(response_); }

 private:
  void begin();
  void append_row(std::size_t index);
  void end();

  std::string model_;
  std::vector<float> rows_;  // [texts, dim_]
  std::size_t dim_;
  EmbeddingFormat format_;
  std::uint64_t token_count_;
  std::size_t next_row_ = 0;
  HttpResponse response_;
};

}  // namespace muster
