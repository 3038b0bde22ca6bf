#include <algorithm>
#include <string>
#include <unordered_map>

#include <plait/actors/error.hpp>
#include <plait/engine/scheduler.hpp>

namespace plait {

scheduler::scheduler(scheduler_options options, std::shared_ptr<policy> rule)
    : options_(std::move(options))
    , policy_(std::move(rule))
{
    for (std::size_t g = 0; g < options_.kv.groups.size(); ++g)
        pools_.push_back(std::make_unique<block_pool>(options_.pages));
    for (auto slot = static_cast<std::int32_t>(options_.slots); slot-- > 0;)
        free_slots_.push_back(slot);
}

std::int64_t scheduler::free_pages() const noexcept
{
    auto least = options_.pages;
    for (auto const& pool : pools_)
        least = std::min(least, pool->free_pages());
    return least;
}

std::int64_t scheduler::owned_pages(sequence const& s) const noexcept
{
    std::int64_t most = 0;
    for (std::size_t g = 0; g < s.pages.tables().size(); ++g)
        most = std::max(most,
                        static_cast<std::int64_t>(std::ranges::count_if(s.pages.tables()[g].pages(), [&](page_id page) {
                            return page >= 0 && pools_[g]->references(page) == 1;
                        })));
    return most;
}

std::int64_t scheduler::waiting() const noexcept
{
    return std::ranges::count_if(sequences_, [](auto const& s) { return !s->running; });
}

std::shared_ptr<sequence> scheduler::add(std::shared_ptr<sequence_request const> request,
                                         std::vector<std::int32_t> tokens, std::shared_ptr<answer> owner)
{
    // With overcommit one choice at a time is enough to make progress.
    auto alone = reservation(*request, options_.admit == admission::reserve ? request->choices : 1);
    if (alone > options_.pages)
        throw error(errc::never_fits,
                    "the request's " + std::to_string(request->prompt) + " prompt tokens and its limit of " +
                        std::to_string(request->limit) + " in all take " + std::to_string(alone) + " KV pages of " +
                        std::to_string(page_tokens) + " tokens; the engine has " + std::to_string(options_.pages));
    if (request->choices > options_.slots)
        throw error(errc::never_fits, std::to_string(request->choices) + " choices; the engine runs " +
                                          std::to_string(options_.slots) + " sequences at once");
    if (options_.prefix && request->prompt - 1 > options_.step_tokens)
        throw error(errc::never_fits, "the prompt's " + std::to_string(request->prompt) +
                                          " tokens see each other, so one step must compute them; a step computes " +
                                          std::to_string(options_.step_tokens));
    auto s = std::make_shared<sequence>();
    s->id = next_id_++;
    s->forked = request->choices == 1;
    s->request = std::move(request);
    s->tokens = std::move(tokens);
    s->owner = std::move(owner);
    sequences_.push_back(s);
    return s;
}

/// Pages that a request may come to hold: each choice all of its own, but for the full pages of the prompt, which they
/// share.
std::int64_t scheduler::reservation(sequence_request const& request, std::int64_t choices) noexcept
{
    auto each = pages_of(request.limit);
    return each + (choices - 1) * (each - request.prompt / page_tokens);
}

sequence_view scheduler::view(sequence const& s) const
{
    auto const& r = *s.request;
    sequence_view v;
    v.id = s.id;
    v.tenant = r.tenant;
    v.priority = r.priority;
    v.arrival = r.arrival;
    v.deadline = r.deadline;
    v.running = s.running;
    v.slots = s.forked ? 1 : r.choices;
    v.prompt = r.prompt;
    v.computed = s.computed;
    v.pending = s.parked || waits_for_token(s) ? 0 : s.pending();
    if (options_.prefix && s.computed == 0) v.together = r.prompt - 1;
    v.parked = s.parked;
    v.generated = s.generated();
    v.held = s.pages.tables().empty() ? 0 : static_cast<std::int64_t>(s.pages.tables().front().pages().size());
    // What is set aside for it comes free with what it holds.
    v.pages = s.running ? owned_pages(s) + std::max<std::int64_t>(0, s.reserved - v.held) : 0;
    v.shared_tail = s.running && s.pages.pages_to_grow(s.computed + 1) > pages_of(s.computed + 1) - v.held;
    if (options_.admit == admission::reserve) {
        v.reserved = s.running ? s.reserved : reservation(r, v.slots);
    }
    return v;
}

bool scheduler::waits_for_token(sequence const& s) const noexcept
{
    auto const next = built_ + 1;
    return options_.stages > 1 && s.ahead > 0 && next - s.newest_step < options_.stages;
}

snapshot scheduler::look(time_point now)
{
    snapshot look;
    look.now = now;
    look.token_budget = options_.step_tokens;
    look.sequence_budget = options_.slots;
    look.lanes = options_.lanes;
    look.costs = options_.costs.get();
    look.free_slots = free_slots();
    look.free_pages = free_pages();
    auto coming = [&](sequence const& s, std::int64_t pages) {
        look.coming_slots += static_cast<std::int64_t>(s.slots.size());
        look.coming_pages += pages;
    };
    for (auto const& s : leaving_)
        coming(*s, owned_pages(*s)); // what was set aside for it is free already
    views_.clear();
    for (auto const& s : sequences_) {
        auto v = view(*s);
        if (s->preempted) coming(*s, v.pages);
        auto can_give_way = s->parked && s->running;
        if (!s->preempted && (can_give_way || (!s->parked && v.pending > 0))) views_.push_back(v);
    }
    look.free_pages -= promised_pages();
    if (options_.stages > 1) {
        auto able = std::ranges::count_if(sequences_, [](auto const& s) { return !s->parked; });
        auto each = (std::min<std::int64_t>(able, options_.slots) + options_.stages - 1) / options_.stages;
        look.sequence_budget = std::clamp<std::int64_t>(each, 1, look.sequence_budget);
    }
    look.sequences = views_;
    return look;
}

/// Pages that running sequences have set aside and do not hold yet.
std::int64_t scheduler::promised_pages() const
{
    if (options_.admit != admission::reserve) return 0;
    std::int64_t promised = 0;
    std::unordered_map<page_id, std::int64_t> sharers; // of last pages that are partly filled
    for (auto const& s : sequences_) {
        if (!s->running) continue;
        auto v = view(*s);
        promised += std::max<std::int64_t>(0, s->reserved - v.held);
        if (v.shared_tail) ++sharers[s->pages.tables().front().pages().back()];
    }
    // Whoever writes first takes a copy; the last one keeps the page, unless one that writes no more still holds it.
    for (auto [page, count] : sharers)
        promised += pools_.front()->references(page) > count ? count : count - 1;
    return promised;
}

std::shared_ptr<sequence> scheduler::find(sequence_id id) const
{
    auto found = std::ranges::find(sequences_, id, [](auto const& s) { return s->id; });
    return found == sequences_.end() ? nullptr : *found;
}

void scheduler::start(sequence& s)
{
    for (auto count = s.forked ? 1 : s.request->choices; count > 0; --count) {
        s.slots.push_back(free_slots_.back());
        free_slots_.pop_back();
    }
    std::vector<page_table> tables;
    tables.reserve(pools_.size());
    for (std::size_t g = 0; g < pools_.size(); ++g)
        tables.emplace_back(*pools_[g], options_.kv.groups[g].window);
    s.pages = sequence_pages(std::move(tables));
    s.reserved = view(s).reserved;
    s.running = true;
}

std::optional<issued_step> scheduler::next(time_point now)
{
    victims_.clear();
    for (;;) {
        auto seen = look(now);
        auto can_compute = [](sequence_view const& s) { return s.pending > 0; };
        if (std::ranges::none_of(seen.sequences, can_compute)) return std::nullopt;
        auto plan = policy_->next(seen);
        check(plan, seen);
        auto freed = preempt(plan);
        if (!plan.entries.empty()) return build(plan);
        // What came free at once may be what the policy waits for, and nothing else would have it look again.
        if (!freed) return std::nullopt;
    }
}

/// True when something came free at once, because no step in flight used it.
bool scheduler::preempt(step_plan const& plan)
{
    bool freed = false;
    for (auto id : plan.preempt) {
        auto s = find(id);
        s->preempted = true;
        ++preemptions_;
        victims_.push_back(s);
        if (s->in_flight > 0) continue;
        left_step(*s);
        freed = true;
    }
    return freed;
}

issued_step scheduler::build(step_plan const& plan)
{
    issued_step step;
    ++built_;
    step.batch.groups.resize(pools_.size());
    for (auto& group : step.batch.groups)
        group.first.push_back(0);
    std::unordered_map<sequence_id, std::uint32_t> written; // bit i: by lane i
    // Pages are taken, copied and given back for all of a sequence's chunks at once: nothing that one chunk reads is
    // given away by the next.
    std::unordered_map<sequence_id, std::int64_t> tokens_of;
    for (auto const& entry : plan.entries)
        tokens_of[entry.id] += entry.tokens;
    auto end_of = [](auto const& list) { return static_cast<std::uint32_t>(list.size()); };
    auto& batch = step.batch;
    auto lanes = std::max<std::size_t>(1, plan.lanes.size());
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        auto& pass = batch.passes.emplace_back();
        auto bit = std::uint32_t{1} << (batch.passes.size() - 1);
        if (!plan.lanes.empty()) pass.where = plan.lanes[lane];
        pass.rows.first = end_of(batch.tokens);
        pass.chunks.first = end_of(batch.chunks);
        pass.draws.first = end_of(batch.draws);
        pass.scores.first = end_of(batch.scored);
        pass.shown.first = end_of(batch.shown_rows);
        for (auto const& entry : plan.entries) {
            if (entry.lane != static_cast<std::int32_t>(lane)) continue;
            auto& by = written[entry.id];
            auto s = find(entry.id);
            if (by == 0) join(step, s, tokens_of[entry.id]);
            pass.reads |= by;
            by |= bit;
            add_rows(step, s, entry.tokens);
        }
        pass.rows.count = end_of(batch.tokens) - pass.rows.first;
        pass.chunks.count = end_of(batch.chunks) - pass.chunks.first;
        pass.draws.count = end_of(batch.draws) - pass.draws.first;
        pass.scores.count = end_of(batch.scored) - pass.scores.first;
        pass.shown.count = end_of(batch.shown_rows) - pass.shown.first;
        if (pass.rows.count == 0) batch.passes.pop_back(); // nobody is in this lane
    }
    return step;
}

/// `s` takes part in the step, with `tokens` tokens in all its chunks.
void scheduler::join(issued_step& step, std::shared_ptr<sequence> const& s, std::int64_t tokens)
{
    if (!s->running) start(*s);
    std::vector<std::vector<page_copy>> copies(pools_.size());
    s->pages.grow(s->computed + tokens, copies);
    for (std::size_t g = 0; g < pools_.size(); ++g) {
        auto& all = step.batch.groups[g].copies;
        all.insert(all.end(), copies[g].begin(), copies[g].end());
    }
    ++s->in_flight;
    s->newest_step = built_;
    step.members.push_back(s);
}

void scheduler::add_rows(issued_step& step, std::shared_ptr<sequence> const& s, std::int64_t tokens)
{
    auto& batch = step.batch;
    for (std::size_t g = 0; g < pools_.size(); ++g) {
        auto& group = batch.groups[g];
        auto pages = s->pages.tables()[g].pages();
        group.pages.insert(group.pages.end(), pages.begin(), pages.end());
        group.first.push_back(static_cast<std::uint32_t>(group.pages.size()));
    }
    auto row = batch.tokens.size() - batch.passes.back().rows.first;
    auto prefix = options_.prefix ? s->request->prompt - 1 : 0;
    auto stretched = options_.short_context > 0 && s->request->limit > options_.short_context;
    batch.chunks.push_back({static_cast<std::int32_t>(row), static_cast<std::int32_t>(tokens),
                            static_cast<std::int32_t>(s->computed), static_cast<std::int32_t>(prefix), stretched});
    for (std::int64_t i = s->computed; i < s->computed + tokens; ++i)
        batch.tokens.push_back(i < static_cast<std::int64_t>(s->tokens.size()) ? s->tokens[static_cast<std::size_t>(i)]
                                                                               : -1 - s->slots.front());
    s->computed += tokens;
    if (s->request->read != reading::none)
        add_reads(step, s, static_cast<std::int64_t>(row), tokens);
    else if (s->computed == s->total())
        add_draws(step, s);
}

/// The `tokens` newest tokens of `s` are those of the pass's rows from `row` on: notes what the prompt is read for.
void scheduler::add_reads(issued_step& step, std::shared_ptr<sequence> const& s, std::int64_t row, std::int64_t tokens)
{
    auto& batch = step.batch;
    auto const read = s->request->read;
    read_rows rows;
    rows.of = s;
    rows.position = read == reading::last ? s->total() - 1 : s->computed - tokens;
    rows.first = read == reading::scores ? batch.scored.size() : batch.shown_rows.size();
    rows.complete = s->computed == s->total();
    auto const begin = s->computed - tokens;
    for (auto i = begin; i < s->computed; ++i) {
        auto const is_last = i + 1 == s->total();
        auto const at = static_cast<std::int32_t>(row + i - begin);
        if (read == reading::scores ? is_last
                                    : (read == reading::last && !is_last) || (read == reading::first && i > 0))
            continue;
        ++rows.count;
        if (read != reading::scores) {
            batch.shown_rows.push_back(at);
            continue;
        }
        batch.scored_rows.push_back(at);
        batch.scored.push_back(s->tokens[static_cast<std::size_t>(i + 1)]);
    }
    step.reads.push_back(std::move(rows));
}

/// The last known token is computed: the next one is drawn, for a request of several choices once for each.
void scheduler::add_draws(issued_step& step, std::shared_ptr<sequence> const& s)
{
    if (s->forked) {
        add_draw(step, s);
        return;
    }
    std::vector<std::shared_ptr<sequence>> choices{s};
    for (std::int32_t choice = 1; choice < s->request->choices; ++choice) {
        auto sibling = std::make_shared<sequence>();
        sibling->id = next_id_++;
        sibling->choice = choice;
        sibling->request = s->request;
        sibling->owner = s->owner;
        sibling->tokens = s->tokens;
        sibling->computed = s->computed;
        sibling->in_flight = 1;
        sibling->newest_step = s->newest_step;
        sibling->pages = s->pages.fork();
        sibling->slots = {s->slots[static_cast<std::size_t>(choice)]};
        sibling->running = true;
        choices.push_back(sibling);
        step.members.push_back(sibling);
    }
    auto each = options_.admit == admission::reserve ? pages_of(s->request->limit) : 0;
    s->slots.resize(1);
    // Behind the first choice, so that the order of arrival holds.
    auto at = std::ranges::find(sequences_, s) + 1;
    sequences_.insert(at, choices.begin() + 1, choices.end());
    for (auto const& choice : choices) {
        choice->forked = true;
        choice->reserved = each;
        add_draw(step, choice);
    }
}

void scheduler::add_draw(issued_step& step, std::shared_ptr<sequence> const& s)
{
    auto& batch = step.batch;
    auto slot = s->slots.front();
    if (!s->sampling) {
        s->sampling = true;
        step_batch::slot_start start;
        start.slot = slot;
        start.params = s->request->sampling;
        start.params.sequence = static_cast<std::uint64_t>(s->choice);
        start.seen_first = static_cast<std::uint32_t>(batch.seen.size());
        auto const& p = start.params;
        if (p.repetition_penalty != 1 || p.presence_penalty != 0 || p.frequency_penalty != 0) {
            std::unordered_map<std::int32_t, std::size_t> place;
            for (std::size_t i = 0; i < s->tokens.size(); ++i) {
                auto [found, added] = place.emplace(s->tokens[i], batch.seen.size());
                if (added) batch.seen.push_back({s->tokens[i], 0, false});
                auto& seen = batch.seen[found->second];
                if (static_cast<std::int64_t>(i) < s->request->prompt)
                    seen.in_prompt = true;
                else
                    ++seen.count;
            }
        }
        start.seen_count = static_cast<std::uint32_t>(batch.seen.size()) - start.seen_first;
        start.bias_first = static_cast<std::uint32_t>(batch.biases.size());
        batch.biases.insert(batch.biases.end(), s->request->biases.begin(), s->request->biases.end());
        start.bias_count = static_cast<std::uint32_t>(s->request->biases.size());
        batch.starts.push_back(start);
    }
    batch.logit_rows.push_back(static_cast<std::int32_t>(batch.tokens.size() - batch.passes.back().rows.first) - 1);
    batch.draws.push_back({slot, static_cast<std::int32_t>(s->total())});
    batch.top_logprobs = std::max(batch.top_logprobs, s->request->sampling.top_logprobs);
    step.draws.push_back(s);
    ++s->ahead;
}

std::vector<scheduler::sampled> scheduler::retire(issued_step const& step, step_result const& result)
{
    std::vector<sampled> out;
    for (std::size_t i = 0; i < step.draws.size(); ++i) {
        auto const& s = step.draws[i];
        --s->ahead;
        if (s->over) continue;
        s->tokens.push_back(result.tokens[i]);
        out.push_back({s, i});
    }
    leave(step);
    return out;
}

void scheduler::abandon(issued_step const& step)
{
    for (auto const& s : step.draws)
        --s->ahead;
    leave(step);
}

std::vector<std::shared_ptr<sequence>> scheduler::restart_all()
{
    std::vector<std::shared_ptr<sequence>> out;
    for (auto const& s : sequences_) {
        if (!s->running) continue;
        s->preempted = true;
        left_step(*s);
        out.push_back(s);
    }
    return out;
}

void scheduler::end(sequence& s)
{
    if (s.over) return;
    s.over = true;
    auto at = std::ranges::find(sequences_, s.id, [](auto const& other) { return other->id; });
    auto self = std::move(*at);
    sequences_.erase(at);
    if (s.in_flight > 0)
        leaving_.push_back(std::move(self));
    else
        release(s);
}

void scheduler::leave(issued_step const& step)
{
    for (auto const& s : step.members) {
        --s->in_flight;
        left_step(*s);
    }
}

/// No step in flight uses the sequence any more: one that is over or preempted gives back what it holds.
void scheduler::left_step(sequence& s)
{
    if (s.in_flight > 0) return;
    if (s.over) {
        release(s);
        std::erase_if(leaving_, [&](auto const& other) { return other.get() == &s; });
    } else if (s.preempted) {
        release(s);
        s.preempted = false;
        s.computed = 0;
    }
}

void scheduler::release(sequence& s)
{
    s.pages.clear();
    free_slots_.insert(free_slots_.end(), s.slots.begin(), s.slots.end());
    s.slots.clear();
    s.reserved = 0;
    s.running = false;
    s.sampling = false;
}

} // namespace plait
