#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_message.h"
#include "server/embedding_format.h"
#include "serving/inference_service.h"

namespace muster {

/// What a client asks for instead of the rows as the model gives them.
struct RowFit {
  std::optional<std::uint32_t> dimensions = {};  // cut to so many values, and of length 1 again
  bool is_normalized = false;                    // of length 1, whatever the model gives
};

/// Does so, in float64. A row of zeros stays one, and rows that the model itself has scaled are not
/// touched unless they are cut.
///
/// dimensions: at most the answer's.
void fit_rows(EmbedAnswer& answer, const RowFit& fit);

/// All rows once, in one format, with the text of the body around them.
struct RowSection {
  EmbeddingFormat format = EmbeddingFormat::Float;
  bool is_items = false;    // OpenAI's object around each row
  std::string before = {};  // up to the first row
  std::string after = {};   // behind the last one
};

/// An answer of rows, written piece by piece: an answer of 2,048 texts is 30 ms of work, which a
/// loop that serves others must not do in one go.
///
/// Cost: base64 about 1 ns a value, numbers 35 ns. Threads: pure.
class RowsAnswer {
 public:
  /// rows: [texts, dim], all of them finite. With the one section of format Raw the answer is the
  /// rows' bytes.
  RowsAnswer(std::vector<float> rows, std::size_t dim, std::vector<RowSection> sections);

  /// Writes about `value_count` values more, whole rows and at least one; true: that was all.
  bool write(std::size_t value_count);

  std::size_t value_count() const { return rows_.size() * sections_.size(); }

  /// After `write` has said true; once.
  HttpResponse take() { return std::move(response_); }

 private:
  void begin();
  void append_row(const RowSection& section, std::size_t index);

  std::vector<float> rows_;  // [texts, dim_]
  std::size_t dim_;
  std::vector<RowSection> sections_;
  std::size_t next_section_ = 0;
  std::size_t next_row_ = 0;
  HttpResponse response_;
};

/// Appends `text` as JSON, with its quotes; bytes that are no UTF-8 become U+FFFD.
void append_quoted(std::string_view text, std::string& body);

}  // namespace muster
