#include <algorithm>
#include <tuple>

#include <plait/engine/policies/ordered.hpp>
#include <plait/engine/policies/weaving.hpp>

namespace plait {

namespace {

std::vector<sequence_view const*> by_arrival(snapshot const& now)
{
    std::vector<sequence_view const*> order;
    order.reserve(now.sequences.size());
    for (auto const& s : now.sequences)
        order.push_back(&s);
    return order;
}

} // namespace

step_plan plan_in_order(snapshot const& now, std::vector<sequence_view const*> const& order)
{
    step_plan plan;
    auto tokens = now.token_budget;
    auto places = now.sequence_budget;
    auto pages = now.free_pages;
    auto coming = now.coming_pages;
    auto slots = now.free_slots;
    auto coming_slots = now.coming_slots;
    auto take = [&](sequence_view const& s, std::int64_t count) {
        plan.entries.push_back({s.id, count});
        tokens -= count;
        pages -= pages_for(s, count);
        --places;
    };

    std::vector<bool> gone(order.size());
    auto give_way = [&](std::size_t i) {
        // A prompt may need the room of a sequence that has its token already.
        auto taken = std::ranges::find(plan.entries, order[i]->id, &step_plan::entry::id);
        if (taken != plan.entries.end()) {
            tokens += taken->tokens;
            pages += pages_for(*order[i], taken->tokens);
            ++places;
            plan.entries.erase(taken);
        }
        plan.preempt.push_back(order[i]->id);
        coming += order[i]->pages;
        coming_slots += order[i]->slots;
        gone[i] = true;
    };
    // Those whose readers are behind go first, whatever their place: they wait anyway.
    auto set_parked_aside = [&](auto enough) {
        for (auto i = order.size(); i-- > 0 && !enough();)
            if (order[i]->parked && !gone[i]) give_way(i);
    };
    // Who else must give way is found from the end of the order, and never before the one that needs the pages. Pages
    // that a victim gives back come free when the steps in flight are done; until then nobody behind may take any.
    auto last = order.size();
    auto make_room = [&](std::size_t i, std::int64_t need) {
        auto enough = [&] { return need <= pages + coming; };
        set_parked_aside(enough);
        while (!enough() && last > i + 1) {
            --last;
            if (order[last]->running && !gone[last]) give_way(last);
        }
        if (need <= pages) return true;
        pages = 0;
        return false;
    };

    // A prompt that one step must compute whole would wait for ever behind those that decode, so it comes before them;
    // but not with pages that they need now: it would start and give way again, and nobody would get on.
    std::int64_t kept = 0;
    auto needed_now = [&] {
        std::int64_t out = 0;
        for (auto const* s : order)
            if (s->decoding()) out += pages_for(*s, 1);
        return out;
    };
    for (auto const* s : order) {
        if (s->running || s->pending == 0) continue;
        if (s->slots <= slots && pages_for(*s, s->pending + 1) + needed_now() <= pages)
            kept = std::min(s->together, tokens);
        break;
    }
    for (std::size_t i = 0; i < last && tokens > kept && places > 0; ++i) {
        auto const& s = *order[i];
        if (s.decoding() && make_room(i, pages_for(s, 1))) take(s, 1);
    }
    bool somebody_waits = false;
    for (std::size_t i = 0; i < last && tokens > 0 && places > 0; ++i) {
        auto const& s = *order[i];
        if (s.decoding() || s.pending == 0) continue;
        if (!s.running) {
            if (somebody_waits) continue; // later ones may not starve it; those that run go on, or it waits for ever
            auto need = pages_for(s, s.pending + 1);
            if (s.together > tokens) {
                somebody_waits = true;
                continue;
            }
            if (s.slots > slots || need > pages) {
                set_parked_aside([&] { return s.slots <= slots + coming_slots && need <= pages + coming; });
                somebody_waits = true;
                continue;
            }
            slots -= s.slots;
        } else if (!make_room(i, pages_for(s, 1))) {
            continue;
        }
        auto count = std::min(s.pending, tokens);
        while (pages_for(s, count) > pages)
            --count;
        take(s, count);
    }
    choose_lanes(plan, now);
    return plan;
}

step_plan first_come_first_served::next(snapshot const& now)
{
    return plan_in_order(now, by_arrival(now));
}

step_plan shortest_prefill_first::next(snapshot const& now)
{
    auto order = by_arrival(now);
    std::ranges::sort(order, {}, [](sequence_view const* s) {
        return std::tuple(s->decoding() ? 0 : s->pending, s->arrival, s->id);
    });
    return plan_in_order(now, order);
}

} // namespace plait
