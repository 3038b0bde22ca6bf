#include <algorithm>
#include <cmath>

#include <plait/engine/answer.hpp>
#include <plait/model/text/tokenizer.hpp>

namespace plait {

answer::answer(tokenizer const& text, settings how, std::shared_ptr<answer_channel> out, time_point submitted)
    : tokenizer_(text)
    , settings_(std::move(how))
    , out_(std::move(out))
    , submitted_(submitted)
    , open_(settings_.choices)
{
    auto const& parts = settings_.division;
    for (std::int32_t i = 0; i < settings_.choices; ++i) {
        auto& c = choices_.emplace_back(text_stream(text, {settings_.stop, true, parts.markers}));
        if (parts.style != answer_style{}) c.parser.emplace(parts.style, parts.inside_thoughts, parts.earlier_calls);
    }
    out_->outcome.prompt_tokens = settings_.prompt_tokens;
    out_->outcome.choices.resize(choices_.size());
}

void answer::admitted()
{
    if (settings_.record != nullptr) settings_.record->begin("request", settings_.number);
}

void answer::started(time_point now) noexcept
{
    if (std::exchange(started_, true)) return;
    out_->outcome.queued = now - submitted_;
}

bool answer::take(std::int32_t choice, token_info token, time_point now)
{
    auto& c = choices_[static_cast<std::size_t>(choice)];
    auto& summary = out_->outcome.choices[static_cast<std::size_t>(choice)];
    if (c.ended) return true;
    if (out_->outcome.generated_tokens == 0) out_->outcome.time_to_first_token = now - submitted_;
    ++out_->outcome.generated_tokens;
    ++summary.tokens;

    auto ends = (!settings_.ignore_end && tokenizer_.ends_generation(token.id)) ||
                std::ranges::find(settings_.stop_tokens, token.id) != settings_.stop_tokens.end();
    if (ends) {
        end(choice, finish_reason::stop, now);
        return true;
    }
    auto id = token.id;
    c.held.push_back(std::move(token));
    show(choice, c.text.push(id), finish_reason::none);
    if (c.text.stopped())
        end(choice, finish_reason::stop, now);
    else if (settings_.prompt_tokens + summary.tokens >= settings_.limit)
        end(choice, finish_reason::length, now);
    return c.ended;
}

bool answer::take_read(std::int64_t position, std::span<float const> values)
{
    if (over()) return true;
    auto& out = out_->values;
    if (settings_.read == reading::scores) {
        out.resize(static_cast<std::size_t>(settings_.prompt_tokens - 1));
        std::ranges::copy(values, out.begin() + position);
        return std::ranges::none_of(values, [](float value) { return std::isnan(value); });
    }
    if (settings_.read != reading::mean) {
        if (!values.empty()) out.assign(values.begin(), values.end());
        return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
    }
    // In order of position and in double precision, so that the mean does not depend on how the prompt was divided.
    auto const width = static_cast<std::size_t>(settings_.width);
    sum_.resize(width);
    for (; !values.empty(); values = values.subspan(width), ++position) {
        if (position != summed_) continue; // it comes again
        for (std::size_t i = 0; i < width; ++i)
            sum_[i] += static_cast<double>(values[i]);
        ++summed_;
    }
    return std::ranges::all_of(sum_, [](double value) { return std::isfinite(value); });
}

void answer::end_read(time_point now)
{
    if (over()) return;
    if (settings_.read == reading::mean) {
        out_->values.reserve(sum_.size());
        for (auto const value : sum_)
            out_->values.push_back(static_cast<float>(value / static_cast<double>(settings_.prompt_tokens)));
    }
    end_all(finish_reason::stop, now);
}

void answer::show(std::int32_t choice, text_stream::update update, finish_reason finish)
{
    auto& c = choices_[static_cast<std::size_t>(choice)];
    piece p;
    p.choice = choice;
    p.finish = finish;
    if (c.parser) {
        p += c.parser->push(update.text);
        bool const shown = finish != finish_reason::cancelled && finish != finish_reason::failed;
        bool const by_model = finish == finish_reason::stop && !c.text.stopped();
        if (finish != finish_reason::none && shown) p += c.parser->finish(by_model);
    } else {
        p.text = std::move(update.text);
    }
    for (; update.tokens > 0 && !c.held.empty(); --update.tokens) {
        p.tokens.push_back(std::move(c.held.front()));
        c.held.pop_front();
    }
    bool const nothing = p.text.empty() && p.reasoning.empty() && p.calls.empty() && p.tokens.empty();
    if (nothing && finish == finish_reason::none) return;
    out_->pieces.try_send(std::move(p));
}

void answer::end(std::int32_t choice, finish_reason why, time_point now)
{
    auto& c = choices_[static_cast<std::size_t>(choice)];
    if (std::exchange(c.ended, true)) return;
    settings_.place.give_back(1);
    text_stream::update rest;
    if (why != finish_reason::cancelled && why != finish_reason::failed) rest = c.text.flush();
    auto& summary = out_->outcome.choices[static_cast<std::size_t>(choice)];
    if (auto stop = c.text.stopped()) {
        summary.stopped_by = settings_.stop[*stop];
        why = finish_reason::stop;
    }
    summary.finish = why;
    show(choice, std::move(rest), why);
    if (--open_ > 0) return;
    if (settings_.record != nullptr) settings_.record->end("request", settings_.number);
    out_->outcome.total = now - submitted_;
    out_->pieces.close();
    if (timer != nullptr) timer->request_stop();
}

void answer::end_all(finish_reason why, time_point now, std::error_code failure)
{
    if (failure && !over()) out_->outcome.failure = failure;
    for (std::int32_t i = 0; i < settings_.choices; ++i)
        end(i, why, now);
}

bool answer::reader_behind() noexcept
{
    if (out_->parked.load(std::memory_order_seq_cst)) return true;
    if (out_->pieces.size() < settings_.unread_limit) return false;
    // The reader looks at `parked` after it has taken a piece: it sees it and rings, or took the piece before it was
    // set.
    out_->parked.store(true, std::memory_order_seq_cst);
    return out_->pieces.size() > out_->resume_at || !out_->parked.exchange(false);
}

} // namespace plait
