// POST /v1/search: the queries become vectors as those of any call do, then a thread beside the
// loop compares them with the rows of an index and reads the texts of the hits.

#include <utility>

#include "server/compute_calls.h"
#include "server/handlers.h"
#include "server/read_call.h"
#include "server/search_api.h"

namespace muster {
namespace {

// One request between its parts.
struct Searching {
  const ServedCorpus* corpus = nullptr;
  SearchCall call = {};
  SearchAnswer::Head head = {};
};

constexpr std::size_t kBytesOfAStep = 1 << 18;  // a millisecond of reading and writing

// On the thread, once there is room for it.
void write_answer(const ExchangePtr& exchange, const Searching& searching, QueryHits hits) {
  if (exchange->is_answered()) return;  // the client has gone
  const auto answer =
      std::make_shared<SearchAnswer>(*searching.corpus, searching.head, std::move(hits));
  const auto room = hold_bytes(*exchange, answer->size_most());
  if (!room) return exchange->refuse(room.error());
  StepThread& thread = exchange->state().searches->thread();
  const auto id = thread.run([answer] { return answer->write(kBytesOfAStep); },
                             [exchange, answer] {
                               auto written = answer->take();
                               if (!written) return exchange->refuse(written.error());
                               exchange->answer(*std::move(written));
                             });
  exchange->on_client_gone([&thread, id] { thread.cancel(id); });
}

void search_corpus(const ExchangePtr& exchange, Searching searching, const EmbedAnswer& embedded) {
  searching.head.model = embedded.model;
  searching.head.token_count = embedded.token_count;
  for (std::size_t at = 0; at < embedded.rows.size(); at += embedded.dim) {
    const auto row = embedded.rows.begin() + static_cast<std::ptrdiff_t>(at);
    searching.call.queries.emplace_back(row, row + embedded.dim);
  }
  CorpusSearches& searches = *exchange->state().searches;
  SearchCall call = std::move(searching.call);
  const auto id = searches.search(std::move(call), [exchange, searching = std::move(searching)](
                                                       std::variant<QueryHits, CallError> outcome) {
    if (const auto* error = std::get_if<CallError>(&outcome)) {
      return exchange->refuse(api_error(*error));
    }
    write_answer(exchange, searching, std::move(*std::get_if<QueryHits>(&outcome)));
  });
  exchange->on_client_gone([&searches, id] { searches.cancel(id); });
}

// In the next turn of the loop: rows of the cache are here before the call has its number, by which
// it is cancelled when the client goes.
void search_soon(const ExchangePtr& exchange, const Searching& searching, EmbedAnswer embedded) {
  exchange->state().tasks->add([exchange, searching, embedded = std::move(embedded)] {
    if (!exchange->is_answered()) search_corpus(exchange, searching, embedded);
    return false;
  });
}

// The index that is meant, and the served model that its vectors are of.
ApiResult<const ServedCorpus*> find_corpus(const ServerState& state, SearchRequest& request) {
  if (!state.searches) {
    return api_error(404, "This server has no index to search; --search OUT gives it one");
  }
  const auto found = state.searches->find(request.index);
  if (!found) {
    ApiError error = api_error(found.error());
    error.param = "index";
    if (error.status == 404) error.code = "index_not_found";
    return error;
  }
  const auto models = state.service.models();
  const auto* model = model_of(*(*found)->corpus, models);
  if (model == nullptr) {
    ApiError error = api_error(404, "The model that the index " + (*found)->name +
                                        " was made with is not loaded any more");
    error.code = "model_not_found";
    return error;
  }
  if (request.names_model && !request.options.model.empty() &&
      request.options.model != model->name) {
    return wrong_field(
        "model", "invalid_value",
        "Invalid 'model': the index " + (*found)->name + " is searched with " + model->name + ".");
  }
  request.options.model = model->name;
  return *found;
}

void search_for(const ExchangePtr& exchange, SearchRequest request) {
  ServerState& state = exchange->state();
  auto found = find_corpus(state, request);
  if (!found) return exchange->refuse(found.error());
  const ServedCorpus* const corpus = *found;
  Searching searching{.corpus = corpus};
  searching.call.corpus = corpus;
  searching.call.rank = request.rank;
  searching.call.queue_budget = state.options.admission.queue_budget;
  if (!request.filter.empty()) {
    auto filter = corpus->corpus->parse_filter(request.filter);
    if (!filter) {
      return exchange->refuse(wrong_field("filter", "invalid_value",
                                          "Invalid 'filter': " + filter.error().message + "."));
    }
    searching.call.filter = *std::move(filter);
  }
  // The best so far of each query wait in a heap.
  const auto hit_count =
      request.rank.mmr_lambda ? request.rank.mmr_candidate_count : request.rank.count;
  const auto room = hold_bytes(*exchange, hit_count * request.queries.size() * sizeof(SearchHit));
  if (!room) return exchange->refuse(room.error());
  if (const auto ready = complete(*exchange, request.options); !ready) {
    return exchange->refuse(ready.error());
  }
  searching.call.deadline =
      state.clock.now() + request.options.deadline.value_or(state.options.deadline);
  searching.head = {.index = corpus->name, .model = {}, .queries = request.queries};
  EmbedCall call{.options = std::move(request.options),
                 .texts = std::move(request.queries),
                 .prompt_name = std::move(request.prompt_name),
                 .prompts_preferred = {"query"}};
  compute_from_rows(exchange, std::move(call), {.input = "query"},
                    [exchange, searching = std::move(searching)](EmbedAnswer embedded) {
                      search_soon(exchange, searching, std::move(embedded));
                    });
}

}  // namespace

void answer_search(const ExchangePtr& exchange) {
  exchange->state().service.expect_call();
  read_call(exchange, with_list_limits(*exchange, parse_search), search_for);
}

}  // namespace muster
