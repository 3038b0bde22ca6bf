#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/sync/channel.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/engine/load_balance.hpp>
#include <plait/engine/request.hpp>
#include <plait/engine/scheduler.hpp>
#include <plait/model/text/text_stream.hpp>
#include <plait/streams/trace.hpp>

namespace plait {

/// Wakes an engine from any thread. Readers and handles hold it, so it outlives the engine.
struct engine_bell {
    explicit engine_bell(runtime& on) noexcept
        : home(on)
    {
    }

    runtime& home; ///< where the engine runs
    event rung;
    std::atomic<bool> abandoned = false; ///< the last handle is gone: the engine closes itself

    void ring() noexcept { rung.set(); }
};
using doorbell = std::shared_ptr<engine_bell>;

/// What the engine and the reader of one request share. The engine fills in `outcome` before it closes `pieces`, the
/// reader looks at it afterwards.
struct answer_channel {
    /// `unread`: the pieces that a reader may leave before its sequences wait; `extra`: those that steps in flight can
    /// add.
    answer_channel(std::size_t unread, std::size_t extra, doorbell to_ring)
        : pieces(unread + extra)
        , bell(std::move(to_ring))
        , resume_at(unread / 2)
    {
    }

    channel<piece> pieces;
    doorbell bell;
    std::size_t const resume_at;         ///< a parked answer goes on when so few are unread
    std::atomic<bool> cancelled = false; ///< by the reader
    std::atomic<bool> parked = false;    ///< by the engine: the reader is behind, and rings when it has caught up
    summary outcome;
    std::vector<float> values; ///< what a prompt was read for; filled in as `outcome` is
};

/// How the parts of an answer are told apart.
struct answer_plan {
    answer_style style;                ///< that of plain text: they are not
    std::vector<std::int32_t> markers; ///< control tokens that are part of the text
    bool inside_thoughts = false;      ///< the prompt has begun them
    std::size_t earlier_calls = 0;     ///< in the conversation so far
};

/// One request's answer in the making: turns the tokens of its choices into pieces, finds where they end, and closes
/// the channel when the last one has. Belongs to the engine actor.
class answer {
public:
    struct settings {
        std::int32_t choices = 1;
        std::vector<std::string> stop;
        std::vector<std::int32_t> stop_tokens;
        bool ignore_end = false;
        answer_plan division;
        std::int64_t prompt_tokens = 0;
        std::int64_t limit = 0; ///< tokens of prompt and answer
        std::size_t unread_limit = 64;
        reading read = reading::none; ///< what the prompt is computed for
        std::int64_t width = 0;       ///< of a hidden state, where it is read
        trace_part* record = nullptr; ///< where its time is recorded, as that of request `number`
        std::int64_t number = 0;
        load_balance::place place; ///< what it counts for among replicas: each choice until it ends
    };

    answer(tokenizer const& text, settings how, std::shared_ptr<answer_channel> out, time_point submitted);

    /// The next token of a choice. Returns true when it ended the choice.
    bool take(std::int32_t choice, token_info token, time_point now);

    /// What rows of the prompt have given: log-probabilities of the tokens behind those from `position` on, or the
    /// hidden states of these. Returns false where one is no number. Of a prompt that is computed anew they come again.
    bool take_read(std::int64_t position, std::span<float const> values);
    /// All of the prompt is read.
    void end_read(time_point now);

    /// Ends one choice, or every one that has not ended; what was held back of its text is shown, except after a
    /// cancellation.
    void end(std::int32_t choice, finish_reason why, time_point now);
    void end_all(finish_reason why, time_point now, std::error_code failure = {});

    /// It waits for its turn: refused, it would never have begun.
    void admitted();
    void started(time_point now) noexcept;
    void preempted() noexcept { ++out_->outcome.preemptions; }

    bool over() const noexcept { return open_ == 0; }
    bool ended(std::int32_t choice) const noexcept { return choices_[static_cast<std::size_t>(choice)].ended; }
    bool cancelled() const noexcept { return out_->cancelled.load(std::memory_order_acquire); }

    /// Whether the reader has so many pieces to read that the choices should wait for it.
    bool reader_behind() noexcept;

    scope* timer = nullptr; ///< where the deadline's timer runs, while it does

private:
    struct one {
        explicit one(text_stream stream)
            : text(std::move(stream))
        {
        }
        text_stream text;
        std::optional<answer_parser> parser; ///< where the answer has parts
        std::deque<token_info> held;         ///< tokens whose text is not out yet
        bool ended = false;
    };

    void show(std::int32_t choice, text_stream::update update, finish_reason finish);

    tokenizer const& tokenizer_;
    settings settings_;
    std::shared_ptr<answer_channel> out_;
    time_point submitted_;
    std::vector<one> choices_;
    std::int32_t open_;
    bool started_ = false;
    std::vector<double> sum_; ///< of the hidden states of the first `summed_` tokens
    std::int64_t summed_ = 0;
};

} // namespace plait
