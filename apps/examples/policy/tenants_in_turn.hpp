#pragma once

#include <plait/engine/policies/ordered.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

/// Nobody waits for another tenant's queue: the first sequence of each tenant is served, then the second of each, and
/// so on; among equals, the tenant whose last turn is longest ago. Where a tenant of whom nothing runs finds no room,
/// the tenant of whom most runs gives up its youngest sequence, which later goes on from where it was.
class tenants_in_turn final : public plait::policy {
    using view = plait::sequence_view const*;
    std::map<std::string, std::size_t, std::less<>> last_turn_; // of the tenants in the last snapshot
    std::size_t turns_ = 0;

public:
    plait::step_plan next(plait::snapshot const& now) override
    {
        std::map<std::string_view, std::vector<view>> all, running;
        std::vector<std::tuple<std::size_t, std::size_t, view>> places;
        for (auto const& s : now.sequences) {
            places.emplace_back(all[s.tenant].size(), last_turn_[std::string(s.tenant)], &s);
            all[s.tenant].push_back(&s);
            if (s.running) running[s.tenant].push_back(&s);
        }
        std::erase_if(last_turn_, [&](auto const& tenant) { return !all.contains(tenant.first); });
        std::ranges::sort(places);
        auto most = std::ranges::max_element(running, {}, [](auto const& tenant) { return tenant.second.size(); });
        std::vector<view> order;
        view victim = nullptr;
        for (auto const& [place, turn, s] : places) {
            order.push_back(s);
            auto slots = now.free_slots + now.coming_slots;
            auto pages = now.free_pages + now.coming_pages;
            auto fits = s->slots <= slots && pages_for(*s, s->pending + 1) <= pages;
            if (place > 0 || running.contains(s->tenant) || fits) continue;
            if (most != running.end() && most->second.size() > 1) victim = most->second.back();
        }
        std::erase(order, victim);
        auto plan = plait::plan_in_order(now, order);
        if (victim != nullptr) plan.preempt.push_back(victim->id);
        for (auto const& entry : plan.entries) {
            auto const& s = *std::ranges::find(now.sequences, entry.id, &plait::sequence_view::id);
            if (!s.running) last_turn_[std::string(s.tenant)] = ++turns_;
        }
        return plan;
    }
};
