#include <plait/apps/bench/runtime/contest.hpp>

#include <plait/apps/bench/runtime/allocations.hpp>

#include <algorithm>
#include <cmath>

namespace plait::bench {

namespace {

sample take_turn(contestant const& who, double scale)
{
    auto const size = static_cast<std::int64_t>(static_cast<double>(who.size) * scale);
    return who.turn(std::max<std::int64_t>(size, 8));
}

bool counts_allocations(contest const& what)
{
    return what.show_allocations || what.most_allocations;
}

} // namespace

std::vector<std::string> rows_of(contest const& what)
{
    std::vector<std::string> out{what.name};
    if (counts_allocations(what)) out.push_back(what.name + ", allocations");
    return out;
}

contest among(std::string name, unsigned threads, contestant own, std::string unit)
{
    contest out;
    out.name = std::move(name);
    out.unit = std::move(unit);
    out.threads = threads;
    own.name = "plait";
    out.own = std::move(own);
    return out;
}

std::vector<row> hold(contest const& what, int rounds, double scale)
{
    row times;
    times.name = what.name;
    times.unit = what.unit;
    times.threads = what.threads;
    times.target = what.target;
    times.more_is_better = what.more_is_better;
    for (auto const& who : what.rivals)
        times.beside.push_back({who.name, {}, who.times});

    auto counts = times;
    counts.name = rows_of(what).back();
    counts.unit = "";
    counts.target = what.most_allocations;
    for (auto& one : counts.beside)
        one.times.reset();

    if (counts_allocations(what)) {
        count_allocations counting;
        counts.samples.push_back(take_turn(what.own, scale).allocations);
        for (std::size_t i = 0; i < what.rivals.size(); ++i)
            counts.beside[i].samples.push_back(take_turn(what.rivals[i], scale).allocations);
    }
    for (int i = 0; i < std::min(rounds, what.most_rounds); ++i) {
        times.samples.push_back(take_turn(what.own, scale).value);
        for (std::size_t k = 0; k < what.rivals.size(); ++k)
            times.beside[k].samples.push_back(take_turn(what.rivals[k], scale).value);
    }
    std::vector<row> out{std::move(times)};
    if (counts_allocations(what)) out.push_back(std::move(counts));
    return out;
}

std::vector<row> hold(std::vector<contest> const& all, int rounds, double scale,
                      std::function<void(std::string const&)> const& begins,
                      std::function<void(row const&)> const& ends)
{
    std::vector<row> out;
    for (auto const& one : all) {
        if (begins) begins(one.name + (one.threads == 1 ? "" : ", " + std::to_string(one.threads) + " threads"));
        for (auto& made : hold(one, rounds, scale)) {
            out.push_back(std::move(made));
            if (ends) ends(out.back());
        }
    }
    return out;
}

int width_of(std::vector<contest> const& all)
{
    int out = 0;
    for (auto const& one : all) {
        std::vector<rival> beside;
        beside.reserve(one.rivals.size());
        for (auto const& who : one.rivals)
            beside.push_back({who.name, {}, {}});
        for (auto const& name : rows_of(one))
            out = std::max(out, width_of(name, beside));
    }
    return out;
}

std::string built()
{
#ifdef NDEBUG
    return std::string(__VERSION__) + ", without assertions";
#else
    return std::string(__VERSION__) + ", with assertions: not for measuring";
#endif
}

} // namespace plait::bench
