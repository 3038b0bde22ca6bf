#include <string>

#include <plait/streams/host/group_core.hpp>

namespace plait::host {

group_round::group_round(std::shared_ptr<group_core> of, std::vector<int> const& ranks)
    : group(std::move(of))
    , sides(ranks.size())
    , calls(ranks.size())
    , arrival(group->clock_, group->pool_, [](alarm& rung) noexcept {
        auto const self = std::move(static_cast<flight&>(rung).self);
        self->group->landed(*self);
    })
{
    for (std::size_t i = 0; i < ranks.size(); ++i)
        sides[i].rank = ranks[i];
}

char const* difference(collective_call const& one, collective_call const& other) noexcept
{
    auto const pair = [](collective_kind kind) {
        return kind == collective_kind::send || kind == collective_kind::receive;
    };
    if (one.kind != other.kind && !(pair(one.kind) && pair(other.kind))) return "kinds";
    if (one.element != other.element) return "elements";
    if (one.count != other.count) return "counts";
    auto const sums = one.kind == collective_kind::all_reduce || one.kind == collective_kind::reduce_scatter;
    if (sums && one.parts != other.parts) return "parts";
    if (one.kind == collective_kind::broadcast && one.peer != other.peer) return "roots";
    return nullptr;
}

std::string text_of(group_round const& r, std::size_t side)
{
    auto const& call = r.calls[side];
    auto text = "rank " + std::to_string(r.sides[side].rank) + "'s " + std::string(name(call.kind)) + " of " +
                std::to_string(call.count) + " " + std::string(name(call.element));
    switch (call.kind) {
    case collective_kind::all_reduce:
    case collective_kind::reduce_scatter:
        if (call.parts != 1) text += " in " + std::to_string(call.parts) + " parts";
        break;
    case collective_kind::broadcast:
    case collective_kind::receive:
        text += " from rank " + std::to_string(call.peer);
        break;
    case collective_kind::send:
        text += " to rank " + std::to_string(call.peer);
        break;
    case collective_kind::all_gather:
    case collective_kind::all_to_all:
        break;
    }
    return text + " in " + r.group->name() + ", put at " + call.where.file + ":" + std::to_string(call.where.line);
}

} // namespace plait::host
