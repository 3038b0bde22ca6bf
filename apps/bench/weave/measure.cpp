#include <plait/apps/bench/weave/measure.hpp>

#include <plait/actors/error.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/apps/bench/runtime/peers/threads/threads.hpp>
#include <plait/apps/bench/runtime/processors.hpp>
#include <plait/apps/bench/weave/workloads.hpp>
#include <plait/model/families/family.hpp>
#include <plait/model/files/model_files.hpp>
#include <plait/model/shard.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace plait::bench {

namespace {

using namespace std::chrono_literals;

contest two_flows()
{
    auto c = among("two flows", 1, {"", weaving::woven, 8});
    c.rivals.push_back({"hand-written loop", weaving::by_hand, 8, 1.02});
    return c;
}

contest a_turn()
{
    auto c = among("a turn", 1, {"", weaving::a_turn, 500});
    c.target = 100;
    return c;
}

constexpr std::array<std::pair<char const*, duration>, 4> links{
    {{"5 ms", 5ms}, {"1 ms", 1ms}, {"0.3 ms", 300us}, {"0.1 ms", 100us}}};

contest hidden(std::string link, duration time)
{
    // A tenth of a second of two halves' parts, each of which takes two and a quarter links.
    auto const parts = std::clamp<std::int64_t>(50ms / (time * 9 / 4), 8, 60);
    auto c = among("hidden, " + std::move(link), 2,
                   {"", [time](std::int64_t n) { return weaving::overlap(time, n); }, parts}, "%");
    c.more_is_better = true;
    if (time >= 1ms) c.target = 90;
    c.most_rounds = 7;
    return c;
}

contest sum(int ranks, std::string const& size, std::int64_t floats, std::int64_t n)
{
    auto c = among("sum of " + size + ", " + std::to_string(ranks) + " ranks", static_cast<unsigned>(ranks),
                   {"", [=](std::int64_t count) { return weaving::all_reduce(ranks, floats, count); }, n}, "us");
    c.rivals.push_back(
        {"threads, std::barrier",
         [=](std::int64_t count) { return with_threads::all_reduce(static_cast<std::size_t>(ranks), floats, count); },
         n});
    return c;
}

contest resident(std::filesystem::path const& model, std::int32_t ranks)
{
    auto on = [model](std::int32_t count) {
        return [model, count](std::int64_t) { return weaving::resident_of_rank(model, count); };
    };
    auto c = among("resident, a rank of " + std::to_string(ranks), 1, {"", on(ranks), 1}, "MiB");
    c.rivals.push_back({"one device", on(1), 1, 1.05 / ranks});
    c.most_rounds = 3;
    return c;
}

std::vector<std::int32_t> degrees_of(std::filesystem::path const& path)
{
    auto const files = open_model(path);
    auto const model = describe(files);
    std::vector<std::int32_t> out;
    for (std::int32_t n = 2; n <= 8; ++n)
        try {
            check({n, 1}, files.tensors(), model);
            out.push_back(n);
        } catch (error const& e) {
            if (e.condition() != errc::invalid_argument) throw;
        }
    return out;
}

} // namespace

std::vector<contest> contests(weave_bench const& what)
{
    std::vector<contest> out{two_flows(), a_turn()};
    if (processor(1)) // otherwise one computes while the other waits anyway
        for (auto const& [link, time] : links)
            out.push_back(hidden(link, time));
    for (int ranks : {2, 4, 8}) {
        out.push_back(sum(ranks, "576", 576, 500));
        out.push_back(sum(ranks, "1 MiB", 1 << 18, 20));
    }
    if (!what.model.empty())
        for (auto ranks : what.tensor.empty() ? degrees_of(what.model) : what.tensor)
            out.push_back(resident(what.model, ranks));
    std::erase_if(out, [&](contest const& one) {
        return !what.only.empty() && std::ranges::none_of(what.only, [&](std::string const& part) {
            return one.name.find(part) != std::string::npos;
        });
    });
    return out;
}

heading heading_of(weave_bench const& what)
{
    auto const count = runtime::available_cpus();
    heading out;
    out.facts = {
        {"machine", processor_name() + ", " + std::to_string(count) + (count == 1 ? " processor" : " processors")},
        {"compiler", built()},
        {"rounds", std::to_string(what.rounds) + (what.rounds == 1 ? " round" : " rounds") +
                       " by turns (fewer of long rows); medians, of the ratios too"}};
    if (!what.model.empty()) out.facts.push_back({"model", what.model.string()});
    out.numbers = {{"processors", count}};
    return out;
}

int width_of(weave_bench const& what)
{
    return width_of(contests(what));
}

std::vector<row> measure(weave_bench const& what, std::function<void(std::string const&)> const& begins,
                         std::function<void(row const&)> const& ends)
{
    return hold(contests(what), what.rounds, what.scale, begins, ends);
}

} // namespace plait::bench
