#include <cstddef>
#include <cstdint>
#include <utility>

#include "dataset/stream_fuzz.h"

// Lines of JSON from outside; a short limit, so that lines over it are met too.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  muster::fuzz_stream(data, size, [](std::unique_ptr<muster::ByteSource> source) {
    return muster::make_jsonl_stream(std::move(source), {.input = "fuzz",
                                                         .field = "text",
                                                         .id_field = "id",
                                                         .keep = {"n", "n.x", "text"},
                                                         .record_size_max = 256});
  });
  return 0;
}
