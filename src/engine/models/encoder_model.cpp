#include "engine/models/encoder_model.h"

#include "engine/ops/pooling.h"

namespace muster::engine {

void EncoderModel::make_rows(const TextBatch& batch, const RowForm& form, std::span<float> rows,
                             LaneSeat& seat) const {
  const auto hidden = last_hidden_state(batch, seat);
  const auto hidden_size = static_cast<std::size_t>(hidden.size(1));
  const auto width = rows.size() / batch.lengths.size();
  const float* state = static_cast<const float*>(hidden.const_data_ptr());
  for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
    const std::size_t size = batch.lengths[i] * hidden_size;
    const auto row = rows.subspan(i * width, width);
    if (form.head != nullptr) {
      form.head->score({state, hidden_size}, row);
    } else {
      pool_tokens(form.pooling, {state, size}, row);
      if (form.normalize) normalize_row(row);
    }
    state += size;
  }
}

}  // namespace muster::engine
