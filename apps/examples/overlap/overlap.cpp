#include "overlap.hpp"

#include <plait/actors/simulation/simulation.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/engine/costs.hpp>
#include <plait/model/families/family.hpp>
#include <plait/streams/trace.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <ostream>
#include <string_view>

namespace overlap {

using namespace std::chrono_literals;

namespace {

/// Has the built-in policies divide each step as a scene asks for.
class of_scene final : public plait::cost_model {
public:
    explicit of_scene(scene which)
        : which_(which)
    {
    }
    plait::duration fused(plait::step_shape const&) const override { return 2us; }
    plait::duration split(plait::step_shape const&) const override { return which_ == scene::split_prompt ? 1us : 3us; }
    plait::duration beside(plait::step_shape const&) const override
    {
        return which_ == scene::decode_beside_prefill ? 1us : 3us;
    }

private:
    scene which_;
};

plait::request ask_for(std::int64_t prompt, std::int64_t answer)
{
    plait::request out;
    for (std::int64_t i = 0; i < prompt; ++i)
        out.tokens.push_back(3 + static_cast<std::int32_t>(i % 100));
    out.max_tokens = answer;
    out.ignore_end = true;
    return out;
}

plait::task<> read_all(plait::generation from)
{
    while (true) {
        auto piece = co_await from.next();
        if (!piece) co_return;
    }
}

/// In the second scene the prompt comes when twelve sequences decode.
plait::task<> requests_of(plait::engine running, scene which)
{
    auto body = [&](plait::scope& all) -> plait::task<> {
        if (which == scene::decode_beside_prefill)
            for (int i = 0; i < 12; ++i) {
                auto one = co_await running.submit(ask_for(4, 40));
                co_await one.next();
                all.start(read_all(std::move(one)));
            }
        auto prompt = co_await running.submit(ask_for(256, 1));
        all.start(read_all(std::move(prompt)));
    };
    co_await plait::with_scope(body);
}

/// What device 0 did in the step that took longest.
step longest_step(plait::trace const& record)
{
    std::map<std::int64_t, std::vector<plait::trace::operation>> steps;
    for (auto const& operation : record.operations())
        if (operation.part.starts_with("device 0") && operation.what.step > 0)
            steps[operation.what.step].push_back(operation);
    step out;
    for (auto const& [number, operations] : steps) {
        auto const begin = std::ranges::min(operations, {}, [](auto const& o) { return o.what.begin; }).what.begin;
        auto const end = std::ranges::max(operations, {}, [](auto const& o) { return o.what.end; }).what.end;
        if (end - begin <= out.length) continue;
        out.length = end - begin;
        out.bars.clear();
        for (auto const& o : operations)
            out.bars.push_back(
                {std::string(o.track), std::string(o.what.what.name), o.what.begin - begin, o.what.end - begin});
    }
    return out;
}

/// A class of the drawing's style.
char const* style_of(bar const& b)
{
    if (b.stream == "communication") return "sum";
    if (b.stream == "urgent") return "decode";
    return b.name == "attention" ? "attend" : "compute";
}

std::string in_micros(plait::duration d)
{
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.0f us", static_cast<double>(d.count()) / 1e3);
    return text.data();
}

/// When the sums of so many layers are over.
plait::duration end_of_layers(step const& s, int layers)
{
    std::vector<plait::duration> ends;
    for (auto const& b : s.bars)
        if (b.name == "all_reduce") ends.push_back(b.end);
    std::ranges::sort(ends);
    auto const wanted = 1 + 2 * static_cast<std::size_t>(layers); // the embedding's, and two of each layer
    return ends.size() < wanted ? s.length : ends[wanted - 1];
}

} // namespace

step run(std::filesystem::path const& model, scene which, bool overlapped, std::shared_ptr<plait::trace> record)
{
    plait::simulation_options punctual;
    punctual.slowness = 0;
    plait::simulation all(punctual);
    auto const spec = plait::describe(plait::open_model(model)).spec;

    plait::engine_options options;
    options.model = model;
    options.spread.tensor = spec.layers.front().attention.heads % 2 == 0 ? 2 : 3;
    options.sequences = 16;
    options.kv_tokens = 2048;
    options.context = std::min<std::int64_t>(spec.context, 512);
    options.memory = std::int64_t(4) << 30;
    options.lanes = 2;
    if (overlapped) options.costs = std::make_shared<of_scene>(which);
    // A small model on slow devices is as a large one on fast ones: a sum takes about as long as what comes before it.
    options.simulated.emplace();
    options.simulated->each.cost = plait::sim::roofline{2e13, 1.2e13, 200ns};
    options.simulated->each.compute = false;
    options.simulated->link = {200ns, 2e10};
    if (!record) record = std::make_shared<plait::trace>();
    options.record = record;
    auto body = [&]() -> plait::task<> {
        auto running = co_await plait::open(all.home(), options);
        co_await requests_of(running, which);
        co_await running.close();
    };
    all.run(body());
    return longest_step(*record);
}

void draw(std::ostream& to, std::string const& title, step const& off, step const& on, int layers)
{
    constexpr int left = 110, width = 640, row = 22, gap = 40;
    auto const window = end_of_layers(off, layers);
    auto const x_of = [&](plait::duration at) {
        return left + static_cast<double>(at.count()) * width / static_cast<double>(window.count());
    };
    std::array<std::string_view, 3> const streams{"urgent", "compute", "communication"};
    auto const uses = [](step const& s, std::string_view stream) {
        return std::ranges::any_of(s.bars, [&](bar const& b) { return b.stream == stream; });
    };
    int height = 40;
    for (auto const* s : {&off, &on})
        height +=
            gap + row * static_cast<int>(std::ranges::count_if(streams, [&](auto name) { return uses(*s, name); }));
    to << R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 )" << left + width + 20 << " " << height
       << R"(" width=")" << left + width + 20 << R"(" role="img" aria-label=")" << title << "\">\n"
       << "<style>text{font:12px sans-serif;fill:#222}.h{font-weight:bold;font-size:14px}.l{text-anchor:end}"
          ".compute{fill:#6fa8dc}.attend{fill:#3d85c6}.decode{fill:#93c47d}.sum{fill:#e69138}</style>\n"
       << R"(<rect width=")" << left + width + 20 << R"(" height=")" << height << R"(" fill="#fff"/>)" << "\n"
       << R"(<text x="10" y="22" class="h">)" << title << "</text>\n";
    int y = 40;
    for (auto const* s : {&off, &on}) {
        to << R"(<text x="10" y=")" << y + 14 << "\">" << (s == &off ? "overlap off" : "overlap on")
           << ": the step takes " << in_micros(s->length) << "</text>\n";
        y += 22;
        for (auto stream : streams) {
            if (!uses(*s, stream)) continue;
            to << R"(<text x=")" << left - 8 << R"(" y=")" << y + 14 << R"(" class="l">)" << stream << "</text>\n";
            for (auto const& b : s->bars) {
                if (b.stream != stream || b.begin >= window || b.end == b.begin) continue;
                auto const from = x_of(b.begin), until = x_of(std::min(b.end, window));
                to << R"(<rect x=")" << from << R"(" y=")" << y << R"(" width=")" << std::max(0.5, until - from - 0.5)
                   << R"(" height=")" << row - 5 << R"(" class=")" << style_of(b) << "\"><title>" << b.name
                   << "</title></rect>\n";
            }
            y += row;
        }
        y += gap - 22;
    }
    to << "</svg>\n";
}

} // namespace overlap
