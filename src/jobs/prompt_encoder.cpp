// From a prompt to ids, by the model's chat template or without it. Of a prompt that is too long
// only so much is read as shows that it is: a corpus may hold anything.

#include "jobs/prompt_encoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "chat/chat_message.h"

namespace muster {
namespace {

bool begins_with_system(const ChatValue::List& messages) {
  if (messages.empty()) return false;
  const auto* role = messages.front().find("role");
  return role != nullptr && role->as_text() != nullptr && *role->as_text() == "system";
}

Error nothing_to_continue() {
  return {ErrorKind::InvalidArgument, "the prompt is empty: there is nothing to continue"};
}

}  // namespace

Result<PromptEncoder> PromptEncoder::make(const DecoderText& text, PromptForm form) {
  if (form.is_raw) return PromptEncoder(text, std::move(form), std::nullopt);
  auto chat = text.find_template(std::nullopt, /*has_tools=*/false);
  if (!chat && chat.error().kind == ErrorKind::NotFound) {
    return Error{ErrorKind::NotFound, fmt::format("{}; with --raw the prompt is continued as it is",
                                                  chat.error().message)};
  }
  auto chat_template = MUSTER_TRY(std::move(chat));
  return PromptEncoder(text, std::move(form), std::move(chat_template));
}

PromptEncoder::PromptEncoder(const DecoderText& text, PromptForm form,
                             std::optional<ChatTemplate> chat_template)
    : text_(&text),
      form_(std::move(form)),
      template_(std::move(chat_template)),
      scratch_(text.tokenizer->make_scratch()) {}

Result<std::vector<TokenId>> PromptEncoder::encode(std::string_view prompt,
                                                   std::uint32_t length_most) {
  if (prompt.empty()) return nothing_to_continue();
  if (!template_) {
    const auto& tokenizer = *text_->tokenizer;
    std::vector<TokenId> ids;
    tokenizer.encode(prompt, std::max(length_most, tokenizer.special_token_count() + 1), *scratch_,
                     ids);
    // A tokenizer may leave out all of a text; a worker that was given no token would end.
    if (ids.empty()) return nothing_to_continue();
    return ids;
  }
  std::vector<ChatMessage> messages;
  if (form_.system) messages.push_back({"system", *form_.system});
  messages.push_back({"user", std::string(prompt)});
  return encode_turns(chat_value_of(messages), length_most);
}

Result<std::vector<TokenId>> PromptEncoder::encode_messages(std::string_view json,
                                                            std::uint32_t length_most) {
  if (!template_) {
    return Error{ErrorKind::InvalidArgument,
                 "messages need the chat template, which --raw leaves out"};
  }
  auto messages = MUSTER_TRY(parse_chat_messages(json));
  if (form_.system && !begins_with_system(*messages.as_list())) {
    auto list = *messages.as_list();
    const std::vector<ChatMessage> system{ChatMessage{"system", *form_.system}};
    list.insert(list.begin(), chat_value_of(system).as_list()->front());
    messages = ChatValue(std::move(list));
  }
  return encode_turns(std::move(messages), length_most);
}

// Special tokens are found in it and none are added, since templates write their own.
Result<std::vector<TokenId>> PromptEncoder::encode_turns(ChatValue messages,
                                                         std::uint32_t length_most) {
  const auto input =
      chat_input_of(std::move(messages), *text_, form_.now_unix, form_.template_variables);
  const auto rendered = MUSTER_TRY(render_conversation(*template_, input));
  std::vector<TokenId> ids;
  text_->tokenizer->encode_content(rendered, length_most, *scratch_, ids);
  if (!ids.empty()) return ids;
  return Error{ErrorKind::InvalidArgument, "the chat template makes nothing of this prompt"};
}

Error prompt_too_long(std::uint32_t length_max) {
  return {ErrorKind::InvalidArgument,
          fmt::format("the context is {} tokens, prompt and reply together, and the prompt has as "
                      "many or more",
                      with_thousands(length_max))};
}

bool shows_date(const DecoderText& text) {
  return std::any_of(text.templates.begin(), text.templates.end(), [](const auto& each) {
    return each.text.find("strftime_now") != std::string::npos;
  });
}

}  // namespace muster
