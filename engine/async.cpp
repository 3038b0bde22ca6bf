#include <plait/actors/error.hpp>
#include <plait/engine/async.hpp>

namespace plait::detail {

task<generation> submit_to(engine running, request what)
{
    auto answer = co_await running.submit(std::move(what));
    co_return answer;
}

task<std::vector<float>> score_of(engine running, request what)
{
    auto scores = co_await running.score(std::move(what));
    co_return scores;
}

task<std::vector<float>> embedding_of(engine running, request what, pooling how, bool normalised)
{
    auto state = co_await running.embed(std::move(what), how, normalised);
    co_return state;
}

task<> close_of(engine running, bool drain)
{
    co_await running.close(drain);
}

task<std::optional<piece>> next_piece(generation& from)
{
    if (!from) throw error(errc::invalid_argument, "async_next: an empty generation");
    return from.next();
}

} // namespace plait::detail
