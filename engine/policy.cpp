#include <algorithm>
#include <string>
#include <unordered_map>

#include <plait/actors/error.hpp>
#include <plait/engine/policy.hpp>
#include <plait/kernels/paged_kv.hpp>

namespace plait {

namespace {

class callable_policy final : public policy {
public:
    explicit callable_policy(std::function<step_plan(snapshot const&)> next)
        : next_(std::move(next))
    {
    }
    step_plan next(snapshot const& now) override { return next_(now); }

private:
    std::function<step_plan(snapshot const&)> next_;
};

[[noreturn]] void refuse(std::string const& what)
{
    throw error(errc::bad_plan, "policy: " + what);
}

std::string number(std::int64_t value)
{
    return std::to_string(value);
}

} // namespace

std::int64_t pages_for(sequence_view const& s, std::int64_t tokens) noexcept
{
    if (s.reserved > 0) return s.running ? 0 : s.reserved;
    auto needed = pages_of(s.computed + tokens);
    return std::max<std::int64_t>(0, needed - s.held) + (s.shared_tail ? 1 : 0);
}

std::unique_ptr<policy> make_policy(std::function<step_plan(snapshot const&)> next)
{
    return std::make_unique<callable_policy>(std::move(next));
}

void check(step_plan const& plan, snapshot const& now)
{
    struct state {
        sequence_view const* view;
        bool preempted = false;
        std::int32_t lane = -1; // of its last entry
        std::int64_t tokens = 0;
    };
    std::unordered_map<sequence_id, state> known;
    for (auto const& s : now.sequences)
        known.emplace(s.id, state{&s});
    auto find = [&](sequence_id id) -> state& {
        auto found = known.find(id);
        if (found == known.end()) refuse("sequence " + std::to_string(id) + " is not in the snapshot");
        return found->second;
    };
    for (auto id : plan.preempt) {
        auto& s = find(id);
        if (std::exchange(s.preempted, true)) refuse("sequence " + std::to_string(id) + " is named twice");
        if (!s.view->running) refuse("sequence " + std::to_string(id) + " is preempted but not running");
    }
    auto lanes = static_cast<std::int32_t>(std::max<std::size_t>(1, plan.lanes.size()));
    if (lanes > now.lanes) refuse(std::to_string(lanes) + " lanes, more than the step's " + number(now.lanes));
    for (auto role : plan.lanes)
        if (role != stream_role::compute && role != stream_role::urgent)
            refuse("a lane on a stream that does not compute");
    std::int64_t tokens = 0, pages = 0, slots = 0, sequences = 0;
    for (auto const& entry : plan.entries) {
        auto& s = find(entry.id);
        auto const name = "sequence " + std::to_string(entry.id);
        if (s.preempted) refuse(name + " is named twice");
        if (entry.lane < 0 || entry.lane >= lanes)
            refuse(name + ": lane " + std::to_string(entry.lane) + " of " + std::to_string(lanes));
        if (entry.lane <= s.lane)
            refuse(name + (entry.lane == s.lane ? " is named twice" : ": its chunks are not in ascending lanes"));
        auto first = s.lane < 0;
        s.lane = entry.lane;
        s.tokens += entry.tokens;
        if (entry.tokens < 1 || s.tokens > s.view->pending)
            refuse(name + ": " + number(entry.tokens < 1 ? entry.tokens : s.tokens) + " tokens of " +
                   number(s.view->pending) + " pending");
        if (first && entry.tokens < s.view->together)
            refuse(name + ": " + number(entry.tokens) + " tokens of " + number(s.view->together) +
                   " that are computed together");
        tokens += entry.tokens;
        if (!first) continue;
        ++sequences;
        if (!s.view->running) slots += s.view->slots;
    }
    for (auto const& [id, s] : known)
        if (s.tokens > 0) pages += pages_for(*s.view, s.tokens);
    if (tokens > now.token_budget) refuse(number(tokens) + " tokens, more than the step's " + number(now.token_budget));
    if (sequences > now.sequence_budget)
        refuse(number(sequences) + " sequences, more than the step's " + number(now.sequence_budget));
    if (slots > now.free_slots) refuse(number(slots) + " slots, more than the " + number(now.free_slots) + " free");
    if (pages > now.free_pages) refuse(number(pages) + " pages, more than the " + number(now.free_pages) + " free");
}

} // namespace plait
