#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <plait/actors/asio.hpp>
#include <plait/engine/engine.hpp>
#include <plait/engine/generation.hpp>

/// The engine for Asio programs: the functions of engine.hpp as asynchronous operations with any completion token.
///
/// A handler is called through its associated executor, or without one on a thread of the runtime; never inside the
/// initiating call. Its allocator gives the operation's memory and its cancellation slot stops the wait, which then
/// completes with errc::cancelled. Errors are those of the functions in engine.hpp, as codes. The runtime must live
/// until the operations have completed; it stops and joins what is left of them when it goes.
namespace plait {

namespace detail {

/// Handles as parameters: a started operation keeps what it works on.
task<generation> submit_to(engine running, request what);
task<std::vector<float>> score_of(engine running, request what);
task<std::vector<float>> embedding_of(engine running, request what, pooling how, bool normalised);
task<> close_of(engine running, bool drain);
task<std::optional<piece>> next_piece(generation& from);

} // namespace detail

/// Opens a model; completes as void(std::error_code, engine).
template<class Token>
auto async_open(runtime& home, engine_options options, Token&& token)
{
    return async_start(home, open(home, std::move(options)), std::forward<Token>(token));
}

/// Sends a request; completes as void(std::error_code, generation). A request whose submission is stopped is cancelled.
template<class Token>
auto async_submit(engine const& running, request what, Token&& token)
{
    return async_start(running.home(), detail::submit_to(running, std::move(what)), std::forward<Token>(token));
}

/// Waits for the next piece of an answer; completes as void(std::error_code, std::optional<piece>), with nothing after
/// the last one. Stopping the wait leaves the request running and loses no piece. The generation may go meanwhile: then
/// the request is cancelled, and the wait ends. Throws error(errc::invalid_argument) when `from` is empty.
template<class Token>
auto async_next(generation& from, Token&& token)
{
    auto next = detail::next_piece(from);
    return async_start(from.home(), std::move(next), std::forward<Token>(token));
}

/// Scores a prompt, as engine::score; completes as void(std::error_code, std::vector<float>).
template<class Token>
auto async_score(engine const& running, request what, Token&& token)
{
    return async_start(running.home(), detail::score_of(running, std::move(what)), std::forward<Token>(token));
}

/// Embeds a prompt, as engine::embed; completes as void(std::error_code, std::vector<float>).
template<class Token>
auto async_embed(engine const& running, request what, pooling how, bool normalised, Token&& token)
{
    return async_start(running.home(), detail::embedding_of(running, std::move(what), how, normalised),
                       std::forward<Token>(token));
}

/// Closes the engine, as engine::close; completes as void(std::error_code).
template<class Token>
auto async_close(engine const& running, bool drain, Token&& token)
{
    return async_start(running.home(), detail::close_of(running, drain), std::forward<Token>(token));
}

} // namespace plait
