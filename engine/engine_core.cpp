#include <algorithm>
#include <limits>
#include <span>
#include <string>

#include <plait/actors/error.hpp>
#include <plait/actors/tasks/timeout.hpp>
#include <plait/engine/engine_core.hpp>
#include <plait/engine/policies/ordered.hpp>
#include <plait/engine/prompt.hpp>

namespace plait {

namespace {

duration twice(duration d)
{
    return d > duration::max() / 2 ? duration::max() : 2 * d;
}

/// Tokens of a step that are none which a sequence has just drawn. The choices of a request are drawn from one row.
std::int64_t prompt_tokens_of(step_batch const& batch)
{
    auto out = static_cast<std::int64_t>(batch.tokens.size());
    for (auto const& pass : batch.passes) {
        auto const rows = std::span(batch.logit_rows).subspan(pass.draws.first, pass.draws.count);
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (i == 0 || rows[i] != rows[i - 1]) --out;
    }
    return out;
}

} // namespace

/// A step between its issue and the hand-out of its tokens.
struct engine_core::flight {
    issued_step step;
    step_result result;
    std::exception_ptr failure;
    event done;
    std::optional<time_point> given_up; ///< when it counts as hanging; since it became the oldest
    std::int64_t prompt_tokens = 0;
    std::int64_t number = 0; ///< in the record
};

engine_core::engine_core(parts from)
    : home_(*from.home)
    , ranks_(std::move(from.ranks))
    , info_(std::move(from.info))
    , options_(std::move(from.options))
    , loads_(std::move(from.loads))
    , replica_(from.replica)
    , bell_(std::move(from.bell))
    , depth_(static_cast<std::size_t>(options_.spread.pipeline) + 1)
    , scheduler_(std::move(from.schedule),
                 options_.schedule ? options_.schedule : std::make_shared<first_come_first_served>())
    , record_(from.record)
{
}

std::shared_ptr<answer_channel> engine_core::submit(request what, reading read, load_balance::place place)
{
    if (failed_) throw error(errc::engine_failed, "submit");
    if (closing_) throw error(errc::closed, "submit: the engine is closing");
    auto submitted = now();
    auto tokens = prompt_tokens(what, *info_, home_.clock().date());
    auto checked =
        check_request(what, static_cast<std::int64_t>(tokens.size()), *info_, submitted, home_.random_seed(), read);
    if (scheduler_.waiting() >= options_.queue)
        throw error(errc::overloaded, std::to_string(options_.queue) + " requests are waiting");

    auto unread = static_cast<std::size_t>(options_.unread_pieces);
    // Beyond the limit come what the steps in flight add, and each choice's last piece.
    auto extra = static_cast<std::size_t>(checked->choices) * (depth_ + 3);
    auto out = std::make_shared<answer_channel>(unread, extra, bell_);
    answer::settings how;
    how.choices = checked->choices;
    how.read = read;
    if (read == reading::none) how.division = plan_answer(what, tokens, *info_);
    how.width = info_->spec.width;
    how.stop = std::move(what.stop);
    how.stop_tokens = std::move(what.stop_tokens);
    how.ignore_end = what.ignore_end;
    how.prompt_tokens = checked->prompt;
    how.limit = checked->limit;
    how.unread_limit = unread;
    how.place = std::move(place);
    if (record_ != nullptr) {
        how.record = record_;
        how.number = ++recorded_requests_;
    }
    auto answering = std::make_shared<answer>(*info_->text, std::move(how), out, submitted);
    auto deadline = checked->deadline;
    scheduler_.add(std::move(checked), std::move(tokens), answering);
    answering->admitted();
    if (deadline && scope_ != nullptr) scope_->start(expire(answering, *deadline));
    work_.set();
    return out;
}

task<> engine_core::serve()
{
    auto body = [this](scope& running) -> task<> {
        scope_ = &running;
        running.start(watch());
        co_await steps(running);
        scope_ = nullptr;
        running.request_stop();
    };
    auto outcome = co_await as_result(with_scope(body));
    scope_ = nullptr;
    if (outcome.failure()) fail_all(outcome.failure());
    co_await ranks_->stop();
    closed_.set();
}

/// Issues steps and hands out their tokens until the engine is closed and nothing is left.
task<> engine_core::steps(scope& running)
{
    for (;;) {
        work_.reset();
        sweep();
        while (in_flight_.size() < depth_ && issue(running)) {
        }
        if (in_flight_.empty()) {
            if (closing_ && scheduler_.sequences().empty()) co_return;
            co_await work_.wait();
            continue;
        }
        auto oldest = in_flight_.front();
        // Where one more step may be in flight, what comes meanwhile need not wait for the oldest.
        auto& what = in_flight_.size() < depth_ ? work_ : oldest->done;
        if (!oldest->done.is_set()) co_await progress_of(*oldest, what);
        if (!oldest->done.is_set()) continue;
        in_flight_.pop_front();
        co_await retire(*oldest);
    }
}

/// Notices what readers do, also while a long step runs: a cancelled request ends at once, its memory when the device
/// is done with it.
task<> engine_core::watch()
{
    for (;;) {
        co_await bell_->rung.wait();
        bell_->rung.reset();
        if (bell_->abandoned.load(std::memory_order_acquire)) closing_ = true;
        sweep();
        work_.set();
    }
}

task<> engine_core::expire(std::shared_ptr<answer> late, time_point at)
{
    auto body = [this, late, at](scope& timer) -> task<> {
        late->timer = &timer;
        if (!late->over()) co_await home_.clock().sleep_until(at);
    };
    auto outcome = co_await as_result(with_scope(body));
    late->timer = nullptr;
    if (outcome.failure() || late->over()) co_return;
    end_answer(*late, finish_reason::deadline);
    work_.set();
}

/// Waits for `what` while the oldest step is under way. Ranks that wait for each other notice by themselves that one
/// hangs; here it is noticed where nobody waits for it.
task<> engine_core::progress_of(flight& oldest, event& what)
{
    if (!oldest.given_up) oldest.given_up = detail::later(now(), twice(options_.hang_limit));
    auto came = co_await as_result(timeout(home_.clock(), *oldest.given_up, wait_for(what)));
    if (!came.failure() || oldest.done.is_set()) co_return;
    if (came.error() != errc::deadline_exceeded) std::rethrow_exception(came.failure());
    co_await ranks_->abandon(
        std::make_exception_ptr(error(errc::device_lost, "a step that has not ended in twice the hang limit")));
    co_await oldest.done.wait();
}

task<> engine_core::run_step(std::shared_ptr<flight> step)
{
    auto batch = std::move(step->step.batch);
    auto outcome = co_await as_result(ranks_->run(std::move(batch)));
    if (outcome.failure())
        step->failure = outcome.failure();
    else
        step->result = std::move(outcome).value();
    step->done.set();
    work_.set();
}

bool engine_core::issue(scope& running)
{
    auto at = now();
    for (auto const& s : scheduler_.sequences())
        s->parked = s->owner->reader_behind();
    auto next = scheduler_.next(at);
    for (auto const& victim : scheduler_.victims())
        victim->owner->preempted();
    if (!next) return false;
    auto step = std::make_shared<flight>();
    step->step = std::move(*next);
    step->prompt_tokens = prompt_tokens_of(step->step.batch);
    for (auto const& s : step->step.members)
        s->owner->started(at);
    if (record_ != nullptr) {
        step->step.batch.number = step->number = ++recorded_steps_;
        record_->begin("step", step->number);
    }
    in_flight_.push_back(step);
    running.start(run_step(step));
    return true;
}

/// A device is lost, or a policy has made a bad plan: only the first can be mended. All steps in flight end, since the
/// ranks are of one group; what ran waits again, with the tokens that its reader has, and is computed anew on devices
/// that are made anew.
task<> engine_core::recover(std::exception_ptr why)
{
    while (!in_flight_.empty()) {
        auto next = in_flight_.front();
        while (!next->done.is_set())
            co_await progress_of(*next, next->done);
        in_flight_.pop_front();
        if (record_ != nullptr) record_->end("step", next->number);
        scheduler_.abandon(next->step);
    }
    sweep();
    for (auto const& s : scheduler_.restart_all())
        s->owner->preempted();
    while (!(closing_ && scheduler_.sequences().empty())) {
        if (code_of(why) == errc::bad_plan || restarts_ >= options_.restarts) {
            fail_all(why);
            co_return;
        }
        ++restarts_;
        ++counters_.restarts;
        auto made = co_await as_result(ranks_->restart());
        if (!made.failure()) co_return;
        why = made.failure();
        sweep();
    }
}

task<> engine_core::retire(flight& step)
{
    if (record_ != nullptr) record_->end("step", step.number);
    if (step.failure) {
        scheduler_.abandon(step.step);
        co_await recover(step.failure);
        co_return;
    }
    restarts_ = 0;
    auto at = now();
    ++counters_.steps;
    counters_.prompt_tokens += step.prompt_tokens;
    auto top_stride = step.step.draws.empty() ? 0 : step.result.top.size() / step.step.draws.size();
    for (auto const& [s, draw] : scheduler_.retire(step.step, step.result)) {
        ++counters_.generated_tokens;
        token_info token;
        token.id = step.result.tokens[draw];
        if (token.id < 0) {
            // Weights or a prompt that make the logits overflow: this sequence has no next token; the others go on.
            s->owner->end_all(finish_reason::failed, at, make_error_code(errc::engine_failed));
            sweep();
            continue;
        }
        if (auto wanted = s->request->sampling.top_logprobs; wanted >= 0) {
            token.logprob = step.result.logprobs[draw];
            for (std::int32_t i = 0; i < wanted; ++i) {
                auto const& entry = step.result.top[draw * top_stride + static_cast<std::size_t>(i)];
                if (entry.token >= 0) token.top.emplace_back(entry.token, entry.logprob);
            }
        }
        if (s->owner->take(s->choice, std::move(token), at)) scheduler_.end(*s);
    }
    take_reads(step);
}

/// Hands out what prompts were read for.
void engine_core::take_reads(flight const& step)
{
    auto const width = static_cast<std::size_t>(info_->spec.width);
    for (auto const& rows : step.step.reads) {
        if (rows.of->over) continue;
        auto& owner = *rows.of->owner;
        auto const scores = rows.of->request->read == reading::scores;
        auto const values = scores ? std::span(step.result.scores).subspan(rows.first, rows.count)
                                   : std::span(step.result.hidden).subspan(rows.first * width, rows.count * width);
        auto const numbers = owner.take_read(rows.position, values);
        if (!numbers)
            owner.end_all(finish_reason::failed, now(), make_error_code(errc::engine_failed));
        else if (rows.complete)
            owner.end_read(now());
        if (owner.over()) scheduler_.end(*rows.of);
    }
}

/// Ends the sequences of answers that readers have cancelled or that ended otherwise.
void engine_core::sweep()
{
    auto at = now();
    auto running = scheduler_.sequences(); // a copy: ending a sequence changes the list
    for (auto const& s : running) {
        auto& a = *s->owner;
        if (a.cancelled() || (closing_ && !draining_)) a.end_all(finish_reason::cancelled, at);
        if (a.ended(s->choice)) scheduler_.end(*s);
    }
}

void engine_core::end_answer(answer& a, finish_reason why)
{
    a.end_all(why, now());
    sweep();
}

void engine_core::fail_all(std::exception_ptr why)
{
    failed_ = why;
    auto at = now();
    auto running = scheduler_.sequences();
    for (auto const& s : running) {
        s->owner->end_all(finish_reason::failed, at, code_of(why));
        scheduler_.end(*s);
    }
    closing_ = true;
    loads_->close(replica_);
}

task<> engine_core::close(bool drain)
{
    draining_ = closing_ ? draining_ && drain : drain;
    closing_ = true;
    loads_->close(replica_);
    work_.set();
    bell_->ring();
    co_await closed_.wait();
}

engine_stats engine_core::stats() const
{
    auto out = counters_;
    out.waiting = scheduler_.waiting();
    out.running = static_cast<std::int64_t>(scheduler_.sequences().size()) - out.waiting;
    out.free_pages = scheduler_.free_pages();
    out.pages = scheduler_.pages();
    out.preemptions = scheduler_.preemptions();
    return out;
}

} // namespace plait
