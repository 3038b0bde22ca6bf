#include <plait/apps/bench/runtime/measure.hpp>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/apps/bench/runtime/compile.hpp>
#include <plait/apps/bench/runtime/contest.hpp>
#include <plait/apps/bench/runtime/peers/asio/asio.hpp>
#include <plait/apps/bench/runtime/peers/caf/caf.hpp>
#include <plait/apps/bench/runtime/peers/tbb/tbb.hpp>
#include <plait/apps/bench/runtime/plait/plait.hpp>
#include <plait/apps/bench/runtime/processors.hpp>

#include <algorithm>

namespace plait::bench {

namespace {

std::vector<contest> wanted(runtime_bench const& what)
{
    auto out = contests(what.headers);
    std::erase_if(out, [&](contest const& one) {
        return !what.only.empty() && std::ranges::none_of(what.only, [&](std::string const& part) {
            return one.name.find(part) != std::string::npos;
        });
    });
    return out;
}

std::string peers()
{
    auto out = "Asio " + with_asio::version();
    if constexpr (PLAIT_BENCH_PEERS) {
        out += ", CAF " + with_caf::version() + ", oneTBB " + with_tbb::version();
    } else {
        out += "; CAF and TBB are not built in (PLAIT_BENCH_PEERS)";
    }
    return out;
}

std::string threads()
{
    auto const milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(with_plait::spin).count();
    auto out = "all park as soon as they have nothing to do, but in the spinning row: there plait's two look for " +
               std::to_string(milliseconds) + " ms first";
    if (auto const first = processor(0), second = processor(1); first && second)
        out += "; pairs of threads of plait, Asio and bare code are on processors " + std::to_string(*first) + " and " +
               std::to_string(*second);
    return out;
}

} // namespace

std::filesystem::path own_headers()
{
    return PLAIT_BENCH_HEADERS;
}

heading heading_of(runtime_bench const& what)
{
    auto const count = runtime::available_cpus();
    heading out;
    out.facts = {
        {"machine", processor_name() + ", " + std::to_string(count) + (count == 1 ? " processor" : " processors")},
        {"compiler", built()},
        {"peers", "beside " + peers()},
        {"threads", "threads: " + threads()},
        {"rounds", std::to_string(what.rounds) + (what.rounds == 1 ? " round" : " rounds") +
                       " by turns (fewer of long rows); medians, of the ratios too"}};
    out.numbers = {{"processors", count}, {"spin_ns", with_plait::spin.count()}};
    return out;
}

int width_of(runtime_bench const& what)
{
    return width_of(wanted(what));
}

std::vector<row> measure(runtime_bench const& what, std::function<void(std::string const&)> const& begins,
                         std::function<void(row const&)> const& ends)
{
    return hold(wanted(what), what.rounds, what.scale, begins, ends);
}

} // namespace plait::bench
