#include <plait/actors/ask_cycles.hpp>

#include <plait/actors/actor_core.hpp>

namespace plait::detail {

namespace {

std::string name_of(message const& m)
{
    auto text = std::string(m.method()) + " of " + m.core().label();
    if (auto const where = m.sent_from(); where.line != 0)
        text += " (" + std::string(where.file) + ":" + std::to_string(where.line) + ")";
    return text;
}

} // namespace

std::string ask_cycles::hold(message const& held, message const& holder)
{
    std::lock_guard lock(mutex_);
    forget(held);
    held_by_[&holder].push_back(&held);
    holder_of_[&held] = &holder;
    // Everything that waits for `held`, and what each of them waits for in turn.
    std::map<message const*, message const*> waits_for{{&held, nullptr}};
    std::vector<message const*> open{&held};
    auto add = [&](message const* who, message const* for_whom) {
        if (waits_for.emplace(who, for_whom).second) open.push_back(who);
    };
    while (!open.empty() && !waits_for.contains(&holder)) {
        auto const* m = open.back();
        open.pop_back();
        if (auto const* asker = m->asked_by()) add(asker, m);
        if (auto found = held_by_.find(m); found != held_by_.end()) {
            for (auto const* h : found->second)
                add(h, m);
        }
    }
    if (!waits_for.contains(&holder)) return {};
    auto text = name_of(holder);
    for (auto const* m = waits_for[&holder]; m; m = waits_for[m])
        text += " waits for " + name_of(*m);
    return text + ", which the first one's exclusive section keeps waiting";
}

void ask_cycles::release(message const& held) noexcept
{
    std::lock_guard lock(mutex_);
    forget(held);
}

void ask_cycles::let_go(message const& holder) noexcept
{
    std::lock_guard lock(mutex_);
    auto const found = held_by_.find(&holder);
    if (found == held_by_.end()) return;
    for (auto const* held : found->second)
        holder_of_.erase(held);
    held_by_.erase(found);
}

void ask_cycles::forget(message const& held) noexcept
{
    auto const found = holder_of_.find(&held);
    if (found == holder_of_.end()) return;
    auto const holder = held_by_.find(found->second);
    std::erase(holder->second, &held);
    if (holder->second.empty()) held_by_.erase(holder);
    holder_of_.erase(found);
}

} // namespace plait::detail
