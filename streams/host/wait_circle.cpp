#include <set>

#include <plait/streams/host/wait_circle.hpp>

namespace plait::host {

namespace {

class search {
public:
    search(host_fabric const& all, group_round& goal)
        : heads_(all.heads)
        , goal_(goal)
    {
    }

    bool from(group_round& r)
    {
        for (std::size_t i = 0; i < r.sides.size(); ++i) {
            auto const& side = r.sides[i];
            if (!side.put || side.arrived) continue;
            auto const head = heads_.find(side.on);
            if (head == heads_.end()) continue;
            path.push_back({&r, i, head->second});
            if (head->second == &goal_) return true;
            if (seen_.insert(head->second).second && from(*head->second)) return true;
            path.pop_back();
        }
        return false;
    }

    std::vector<wait_step> path;

private:
    std::map<host_stream const*, group_round*> const& heads_;
    group_round& goal_;
    std::set<group_round const*> seen_;
};

/// The side of `r` that has come to it on that stream.
std::size_t side_on(group_round const& r, host_stream const* on)
{
    std::size_t i = 0;
    while (r.sides[i].on != on || !r.sides[i].arrived)
        ++i;
    return i;
}

} // namespace

std::vector<wait_step> find_wait_circle(host_fabric const& all, group_round& r)
{
    search s(all, r);
    s.from(r);
    return std::move(s.path);
}

std::string text_of(std::vector<wait_step> const& circle)
{
    std::string text = "collectives wait for each other";
    char const* separator = ": ";
    for (auto const& step : circle) {
        text += separator + text_of(*step.waiting, step.side) + ", comes only after " +
                text_of(*step.held_by, side_on(*step.held_by, step.waiting->sides[step.side].on));
        separator = "; ";
    }
    return text;
}

} // namespace plait::host
