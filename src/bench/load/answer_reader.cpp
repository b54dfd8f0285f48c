// simdjson's DOM, not its on-demand parser: it checks the whole text, and a benchmark that counts
// half an answer as one would be wrong.
#include "bench/load/answer_reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bench/load/event_stream.h"
#include "bench/load/refusal_text.h"

namespace muster {
namespace {

using simdjson::dom::element;

constexpr std::size_t kErrorShown = 500;  // bytes of what a stream says of an error

std::optional<std::int64_t> usage_of(const element& json, const char* name) {
  std::int64_t count = 0;
  if (json["usage"][name].get(count) != simdjson::SUCCESS) return std::nullopt;
  if (count < 0 || count > kAnswerTokensMost) return std::nullopt;
  return count;
}

// cap: what is read whatever was asked for, which may need more.
std::string too_long(std::string_view what, std::size_t bytes_most, std::size_t cap) {
  if (bytes_most >= cap) {
    return fmt::format("the {} is longer than the {} MiB that are read", what, bytes_most >> 20);
  }
  return fmt::format("the {} is longer than the {} bytes that what was asked for can need", what,
                     bytes_most);
}

// A problem, and what the server itself says of it, if anything.
std::string with_reason(std::string problem, std::string_view reason) {
  return reason.empty() ? problem : fmt::format("{}: {}", problem, reason);
}

// The server's sentence. An error without one is shown as it is; it may be as long as an event, and
// the first sentences of failures go into results.
std::string shown_error(const std::string& event, const element& error) {
  if (auto said = refusal_text(event); !said.empty()) return said;
  auto text = simdjson::minify(error);
  if (text.size() <= kErrorShown) return text;
  text.resize(kErrorShown);
  return text + "…";
}

class AnyReader final : public AnswerReader {
 public:
  bool on_body(std::string_view /*bytes*/, double /*at*/) override { return true; }
  AnswerFacts finish() override { return {}; }
  void drop() override {}
};

class ListReader final : public AnswerReader {
 public:
  ListReader(AnswerList list, std::size_t count, std::size_t bytes_most)
      : list_(list), count_(count), bytes_most_(bytes_most) {}

  bool on_body(std::string_view bytes, double /*at*/) override {
    is_too_long_ = is_too_long_ || bytes.size() > bytes_most_ - body_.size();
    if (!is_too_long_) body_ += bytes;
    return !is_too_long_;
  }

  AnswerFacts finish() override {
    auto facts = read();
    drop();
    return facts;
  }

  void drop() override {
    body_.clear();
    is_too_long_ = false;
  }

 private:
  AnswerFacts read() {
    AnswerFacts facts;
    element json;
    simdjson::dom::array items;
    if (is_too_long_) {
      facts.problem = too_long("answer", bytes_most_, kListBytesMost);
    } else if (parser_.parse(body_).get(json) != simdjson::SUCCESS) {
      facts.problem = "the answer is no JSON";
    } else if (json[name()].get(items) != simdjson::SUCCESS) {
      facts.problem =
          with_reason(fmt::format("the answer has no list \"{}\"", name()), refusal_text(body_));
    } else if (items.size() != count_) {
      facts.problem =
          fmt::format("the answer has {} items in \"{}\", not {}", items.size(), name(), count_);
    } else if (auto problem = item_problem(items)) {
      facts.problem = std::move(problem);
    } else {
      facts.input_tokens = usage_of(json, "prompt_tokens");
      if (!facts.input_tokens) facts.input_tokens = usage_of(json, "total_tokens");
    }
    return facts;
  }

  const char* name() const { return list_ == AnswerList::Vectors ? "data" : "results"; }

  // An answer in which a text has no vector, or that of another, is none, however fast it came.
  std::optional<std::string> item_problem(const simdjson::dom::array& items) {
    is_seen_.assign(count_, false);
    std::size_t at = 0;
    for (const element item : items) {
      std::uint64_t index = at;
      const auto has_index = item["index"].get(index);
      const bool may_lack = has_index == simdjson::NO_SUCH_FIELD && count_ == 1;
      if ((has_index != simdjson::SUCCESS && !may_lack) || index >= count_ || is_seen_[index]) {
        return fmt::format("the answer's item {} in \"{}\" has no index of its own below {}", at,
                           name(), count_);
      }
      is_seen_[index] = true;
      if (list_ == AnswerList::Scores ? !has_score(item) : !has_vector(item)) {
        return fmt::format("the answer's item {} in \"{}\" has no {}", at, name(),
                           list_ == AnswerList::Scores ? "relevance_score" : "embedding");
      }
      ++at;
    }
    return std::nullopt;
  }

  static bool has_score(const element& item) {
    double score = 0;
    return item["relevance_score"].get(score) == simdjson::SUCCESS;
  }

  static bool has_vector(const element& item) {
    element vector;
    if (item["embedding"].get(vector) != simdjson::SUCCESS) return false;
    std::string_view base64;
    if (vector.get(base64) == simdjson::SUCCESS) return !base64.empty();
    simdjson::dom::array values;
    if (vector.get(values) != simdjson::SUCCESS || values.size() == 0) return false;
    for (const element value : values) {
      if (value.is_null()) return false;
    }
    return true;
  }

  const AnswerList list_;
  const std::size_t count_;
  const std::size_t bytes_most_;
  simdjson::dom::parser parser_;
  std::string body_;
  bool is_too_long_ = false;
  std::vector<bool> is_seen_;  // by index
};

class StreamReader final : public AnswerReader {
 public:
  StreamReader(bool keeps_text, std::size_t bytes_most)
      : keeps_text_(keeps_text), bytes_most_(bytes_most) {}

  bool on_body(std::string_view bytes, double at) override {
    byte_count_ += bytes.size();
    if (!facts_.problem && byte_count_ > bytes_most_) {
      facts_.problem = too_long("stream", bytes_most_, kReplyBytesMost);
    }
    if (!facts_.problem) read(bytes, at);  // the first one counts, and nothing behind it is kept
    return byte_count_ <= bytes_most_;
  }

  AnswerFacts finish() override {
    if (!facts_.problem && !is_done_) {
      const auto said = has_event_ ? std::string() : refusal_text(head_);
      facts_.problem = said.empty() ? "the stream ended before its [DONE]"
                                    : with_reason("the answer is no stream", said);
    }
    if (!facts_.problem && facts_.token_times.empty()) facts_.problem = "the stream has no text";
    auto facts = std::exchange(facts_, {});
    drop();
    return facts;
  }

  void drop() override {
    facts_ = {};
    events_ = {};
    head_.clear();
    byte_count_ = 0;
    has_event_ = false;
    is_done_ = false;
  }

 private:
  void read(std::string_view bytes, double at) {
    // A server that fails may answer with an object instead of a stream, whatever the status says.
    if (!has_event_) head_ += bytes.substr(0, kRefusalBytesMost + 1 - head_.size());
    events_.put(bytes);
    while (!facts_.problem) {
      const auto event = events_.next();
      if (!event) break;
      take(*event, at);
    }
    if (!facts_.problem && events_.is_too_long())
      facts_.problem = "the stream has an event without an end";
  }

  void take(const std::string& event, double at) {
    has_event_ = true;
    if (event == "[DONE]") {
      is_done_ = true;
      return;
    }
    element json;
    if (parser_.parse(event).get(json) != simdjson::SUCCESS) {
      facts_.problem = "the stream has an event that is no JSON";
      return;
    }
    if (element error; json["error"].get(error) == simdjson::SUCCESS && !error.is_null()) {
      facts_.problem = "the stream reports an error: " + shown_error(event, error);
      return;
    }
    if (const auto count = usage_of(json, "prompt_tokens")) facts_.input_tokens = count;
    if (const auto count = usage_of(json, "completion_tokens")) facts_.output_tokens = count;
    const auto text = text_of(json);
    if (text.empty()) return;
    facts_.token_times.push_back(at);
    if (keeps_text_) facts_.text += text;
  }

  static std::string_view text_of(const element& json) {
    simdjson::dom::array choices;
    if (json["choices"].get(choices) != simdjson::SUCCESS || choices.size() == 0) return {};
    const element choice = choices.at(0).value_unsafe();
    std::string_view text;
    // vLLM and others stream what a model thinks under a name of its own; it is generated all the
    // same.
    constexpr std::array kNames{"content", "reasoning_content", "reasoning"};
    for (const char* name : kNames) {
      if (choice["delta"][name].get(text) == simdjson::SUCCESS && !text.empty()) return text;
    }
    if (choice["text"].get(text) == simdjson::SUCCESS) return text;
    return {};
  }

  const bool keeps_text_;
  const std::size_t bytes_most_;
  EventStream events_;
  std::string head_;  // of a body without an event, up to a byte more than can be read
  std::size_t byte_count_ = 0;
  simdjson::dom::parser parser_;
  AnswerFacts facts_;
  bool has_event_ = false;
  bool is_done_ = false;
};

}  // namespace

std::unique_ptr<AnswerReader> any_answer_reader() { return std::make_unique<AnyReader>(); }

std::size_t list_bytes_most(AnswerList list, std::size_t count, std::size_t request_bytes) {
  constexpr std::size_t kItemBytes = 256 << 10;
  constexpr std::size_t kRestBytes = 1 << 20;
  constexpr std::size_t kEscaped = 4;
  constexpr std::size_t kTokenVector = 8 << 10;  // a byte of its text
  const auto each = list == AnswerList::Vectors ? kTokenVector : kEscaped;
  return std::min(kListBytesMost, kRestBytes + count * kItemBytes + each * request_bytes);
}

std::size_t reply_bytes_most(std::uint64_t tokens) {
  constexpr std::size_t kTokenBytes = 16 << 10;
  constexpr std::size_t kRestBytes = 16 << 20;
  return tokens < kReplyBytesMost / kTokenBytes
             ? std::min(kReplyBytesMost, kRestBytes + tokens * kTokenBytes)
             : kReplyBytesMost;
}

std::unique_ptr<AnswerReader> list_answer_reader(AnswerList list, std::size_t count,
                                                 std::size_t bytes_most) {
  return std::make_unique<ListReader>(list, count, bytes_most);
}

std::unique_ptr<AnswerReader> stream_answer_reader(bool keeps_text, std::size_t bytes_most) {
  return std::make_unique<StreamReader>(keeps_text, bytes_most);
}

}  // namespace muster
