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
        bool named = false;
    };
    std::unordered_map<sequence_id, state> known;
    for (auto const& s : now.sequences)
        known.emplace(s.id, state{&s});
    auto claim = [&](sequence_id id) -> sequence_view const& {
        auto found = known.find(id);
        if (found == known.end()) refuse("sequence " + std::to_string(id) + " is not in the snapshot");
        if (std::exchange(found->second.named, true)) refuse("sequence " + std::to_string(id) + " is named twice");
        return *found->second.view;
    };
    for (auto id : plan.preempt)
        if (!claim(id).running) refuse("sequence " + std::to_string(id) + " is preempted but not running");
    std::int64_t tokens = 0, pages = 0, slots = 0;
    for (auto const& entry : plan.entries) {
        auto const& s = claim(entry.id);
        if (entry.tokens < 1 || entry.tokens > s.pending)
            refuse("sequence " + std::to_string(entry.id) + ": " + number(entry.tokens) + " tokens of " +
                   number(s.pending) + " pending");
        tokens += entry.tokens;
        pages += pages_for(s, entry.tokens);
        if (!s.running) slots += s.slots;
    }
    if (tokens > now.token_budget) refuse(number(tokens) + " tokens, more than the step's " + number(now.token_budget));
    if (static_cast<std::int64_t>(plan.entries.size()) > now.sequence_budget)
        refuse(std::to_string(plan.entries.size()) + " sequences, more than the step's " + number(now.sequence_budget));
    if (slots > now.free_slots) refuse(number(slots) + " slots, more than the " + number(now.free_slots) + " free");
    if (pages > now.free_pages) refuse(number(pages) + " pages, more than the " + number(now.free_pages) + " free");
}

} // namespace plait
