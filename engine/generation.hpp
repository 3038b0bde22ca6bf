#pragma once

#include <memory>
#include <optional>

#include <plait/actors/tasks/task.hpp>
#include <plait/engine/answer.hpp>

namespace plait {

/// The answer to one request, as it comes. Move-only; belongs to one reader at a time. Destroying it cancels the
/// request.
class generation {
public:
    generation() = default;
    explicit generation(std::shared_ptr<answer_channel> from) noexcept
        : channel_(std::move(from))
    {
    }
    generation(generation&&) noexcept = default;
    generation& operator=(generation&& other) noexcept;
    ~generation() { cancel(); }

    /// The next piece; nothing after the last one. A reader that stops taking pieces stops its own sequence after
    /// engine_options::unread_pieces of them, and nobody else's. Cancelling the wait leaves the request running.
    task<std::optional<piece>> next();

    /// Stops the request. What was sent before can still be read; then next() ends. May be called from any thread.
    void cancel() noexcept;

    /// What the request cost and how its choices ended; complete once next() has returned nothing.
    summary const& result() const noexcept { return channel_->outcome; }

    explicit operator bool() const noexcept { return channel_ != nullptr; }

    /// The runtime of the engine that answers.
    runtime& home() const noexcept { return channel_->bell->home; }

private:
    std::shared_ptr<answer_channel> channel_;
};

} // namespace plait
