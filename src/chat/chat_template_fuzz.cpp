// Any bytes as a template: an Error, or one that renders or refuses within its limits.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "chat/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace muster;
  const auto made =
      ChatTemplate::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!made) {
    MUSTER_CHECK(!made.error().message.empty());
    return 0;
  }
  static const auto messages = *ChatValue::parse(
      R"([{"role": "system", "content": "s"}, {"role": "user", "content": "é中 x"},
          {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f",
           "arguments": {"a": [1, 2.5, true]}}}]}, {"role": "user", "content": [{"type": "text"}]}])");
  ChatInput input;
  input.messages = messages;
  input.tools = messages;
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  // Small, so that one input takes milliseconds.
  ChatLimits limits;
  limits.steps_max = 20'000;
  limits.bytes_max = 1 << 20;
  limits.output_bytes_max = 1 << 16;
  const auto text = made->render(input, limits);
  if (text) {
    MUSTER_CHECK(text->size() <= limits.output_bytes_max && !invalid_utf8_at(*text));
  } else {
    MUSTER_CHECK(!text.error().message.empty());
  }
  return 0;
}
