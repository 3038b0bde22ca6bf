// What is recorded of devices and engines, and how it is written.

#include <plait/actors/error.hpp>
#include <plait/actors/simulation/simulation.hpp>
#include <plait/actors/time/clock.hpp>
#include <plait/streams/sim/sim_device.hpp>
#include <plait/streams/trace.hpp>
#include <plait/streams/trace_file.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>
#include <plait/tests/support/temporary_folder.hpp>
#include <plait/tests/support/test_gpu.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace plait;
using namespace plait::test;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

std::string text_of(trace const& what)
{
    std::ostringstream out;
    what.write(out);
    return out.str();
}

/// The events of one phase; all of them have what the format asks of every event.
std::vector<json> events_of(json const& file, std::string const& phase)
{
    std::vector<json> out;
    for (auto const& e : file.at("traceEvents")) {
        CHECK(e.at("name").is_string());
        CHECK(e.at("pid").is_number_integer());
        CHECK(e.at("tid").is_number_integer());
        if (e.at("ph") != "M") CHECK(e.at("ts").get<double>() >= 0);
        if (e.at("ph") == phase) out.push_back(e);
    }
    return out;
}

void nothing(int const& /*unused*/, share /*part*/) {}

/// Puts an operation that takes so long, with its name.
ticket put(device& d, stream_role role, char const* name, duration takes)
{
    return static_cast<host::host_stream&>(d.stream_of(role)).put({name, takes.count(), 7}, nothing, 0);
}

/// Runs `what` on a simulated device, where a byte takes a nanosecond, that records in `record`.
void run_recorded(trace& record, simulation_options how, std::string const& name, test_gpu::body what)
{
    simulation all(how);
    auto body = [&]() -> task<> {
        auto& rt = all.home();
        sim::sim_options each;
        each.cost = [](operation_info const& i) { return duration(i.bytes); };
        auto device = std::make_unique<sim::sim_device>(rt, std::size_t(1) << 20, each);
        device->record_in(record.add(name, rt.clock()));
        auto loop = rt.new_loop("plait-gpu-test");
        auto g = rt.spawn_on<test_gpu>(loop, std::ref(*loop), std::move(device));
        co_await ask<&test_gpu::run>(g, std::move(what));
        co_await stop(g);
    };
    all.run(body());
}

simulation_options late_by(std::uint32_t slowness)
{
    simulation_options how;
    how.slowness = slowness;
    return how;
}

/// Compute, then communication, then compute.
task<> there_and_back(test_gpu& g)
{
    using enum stream_role;
    auto& d = g.driven();
    put(d, compute, "before", 10us);
    d.stream_of(communication).wait(d.stream_of(compute).last());
    put(d, communication, "sum", 5us);
    put(d, compute, "beside", 1us);
    d.stream_of(compute).wait(d.stream_of(communication).last());
    co_await put(d, compute, "after", 7us);
}

} // namespace

TEST_CASE("a trace is JSON with a process for a device, a track for a stream, a slice for an operation")
{
    trace record;
    run_recorded(record, late_by(0), "a \"device\" \\ with\na tab\tand \x01 é", there_and_back);
    auto const file = json::parse(text_of(record));
    std::map<std::string, std::pair<double, double>> slices;
    for (auto const& e : events_of(file, "X")) {
        slices[e.at("name")] = {e.at("ts"), e.at("dur")};
        CHECK(e.at("args").at("bytes").get<double>() == e.at("dur").get<double>() * 1000);
        CHECK(e.at("args").at("flops") == 7);
    }
    CHECK(slices == std::map<std::string, std::pair<double, double>>{
                        {"before", {0, 10}}, {"sum", {10, 5}}, {"beside", {10, 1}}, {"after", {15, 7}}});
    std::set<std::string> tracks;
    std::string process;
    for (auto const& e : events_of(file, "M")) {
        if (e.at("name") == "thread_name") tracks.insert(e.at("args").at("name").get<std::string>());
        if (e.at("name") == "process_name") process = e.at("args").at("name");
    }
    CHECK(tracks == std::set<std::string>{"urgent", "compute", "communication", "copy_in", "copy_out"});
    CHECK(process == "a \"device\" \\ with\na tab\tand \x01 é");
    CHECK(file.at("otherData").at("dropped") == 0);
}

TEST_CASE("an arrow goes from the operation that was waited for to the one that waited")
{
    trace record;
    run_recorded(record, late_by(0), "device", there_and_back);
    auto const file = json::parse(text_of(record));
    auto const at = [&](json const& end) {
        for (auto const& e : events_of(file, "X")) {
            auto const from = e.at("ts").get<double>(), to = from + e.at("dur").get<double>();
            auto const when = end.at("ts").get<double>();
            if (e.at("tid") == end.at("tid") && from <= when && when < to) return e.at("name").get<std::string>();
        }
        return std::string("no operation");
    };
    std::map<int, std::pair<std::string, std::string>> arrows;
    for (auto const& e : events_of(file, "s"))
        arrows[e.at("id")].first = at(e);
    for (auto const& e : events_of(file, "f")) {
        CHECK(e.at("bp") == "e");
        arrows[e.at("id")].second = at(e);
    }
    CHECK(arrows == std::map<int, std::pair<std::string, std::string>>{{1, {"before", "sum"}}, {2, {"sum", "after"}}});
}

TEST_CASE("a trace keeps as many events as it may, and counts the others")
{
    trace record(3); // two slices and an arrow of the six
    run_recorded(record, late_by(0), "device", there_and_back);
    CHECK(record.dropped() == 3);
    auto const file = json::parse(text_of(record));
    CHECK(file.at("otherData").at("dropped") == 3);
    CHECK(events_of(file, "X").size() + events_of(file, "s").size() <= 3);
    trace none(0);
    run_recorded(none, late_by(0), "device", there_and_back);
    CHECK(none.dropped() == 6);
    CHECK(events_of(json::parse(text_of(none)), "X").empty());
    CHECK(json::parse(text_of(trace())).at("traceEvents").empty());
}

TEST_CASE("parts of one name get distinct ones")
{
    manual_clock time;
    trace record;
    for (int i = 0; i < 3; ++i)
        record.add("device", time);
    record.add("device (2)", time);
    std::set<std::string> names;
    for (auto const& e : events_of(json::parse(text_of(record)), "M"))
        names.insert(e.at("args").at("name").get<std::string>());
    CHECK(names == std::set<std::string>{"device", "device (2)", "device (3)", "device (2) (2)"});
}

TEST_CASE("a trace file is made at once and written in the end, and without a path nothing is recorded")
{
    temporary_folder folder;
    auto const path = folder.path() / "trace.json";
    {
        manual_clock time;
        trace_file written(path);
        CHECK(std::filesystem::exists(path));
        written.record()->add("part", time).begin("span", 1);
        written.write();
    }
    std::ifstream in(path);
    CHECK(json::parse(in).at("traceEvents").size() == 2);
    trace_file none("");
    CHECK(none.record() == nullptr);
    none.write();
    CHECK_THROWS_AS(trace_file(folder.path() / "none" / "trace.json"), error);
}

TEST_CASE("the trace's option is found anywhere among a program's arguments, and taken out")
{
    auto const take = [](std::vector<std::string> words) {
        std::vector<char*> arguments;
        arguments.reserve(words.size());
        for (auto& word : words)
            arguments.push_back(word.data());
        auto count = static_cast<int>(arguments.size());
        auto out = take_trace_option(count, arguments.data());
        for (int i = 0; i < count; ++i)
            out += std::string(" ") + arguments[static_cast<std::size_t>(i)];
        return out;
    };
    CHECK(take({"program", "a", "--trace", "t.json", "b"}) == "t.json program a b");
    CHECK(take({"program", "--trace", "t.json"}) == "t.json program");
    CHECK(take({"program", "a", "--trace"}) == " program a --trace");
    CHECK(take({"program", "a"}) == " program a");
    CHECK(take({"--trace", "a"}) == " --trace a");
}

TEST_CASE("the times of what was put on a simulated device do not depend on when the host looks")
{
    auto const all = [](test_gpu& g) -> task<> {
        auto& d = g.driven();
        for (int i = 0; i < 20; ++i) {
            auto const role = static_cast<stream_role>(i % 3);
            if (i > 0) d.stream_of(role).wait(d.stream_of(static_cast<stream_role>((i + 1) % 3)).last());
            put(d, role, "operation", duration(1000 + 137 * i));
        }
        for (std::size_t i = 0; i < 3; ++i)
            co_await d.stream_of(static_cast<stream_role>(i)).last();
    };
    trace punctual;
    run_recorded(punctual, late_by(0), "device", all);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        trace late;
        auto how = late_by(2);
        how.seed = seed;
        how.late_timers = 2;
        run_recorded(late, how, "device", all);
        CHECK(text_of(late) == text_of(punctual));
    }
}

namespace {

/// What is recorded of an engine of two devices.
task<std::string> recorded_engine(runtime& rt, std::filesystem::path model, bool simulated)
{
    auto const record = std::make_shared<trace>();
    auto options = tiny_engine(model);
    options.spread = {2, 1, 2};
    options.record = record;
    if (simulated) {
        options.simulated.emplace();
        options.simulated->each.cost = sim::roofline{1e9, 1e10, 2us};
        options.simulated->link = {5us, 1e9};
    }
    auto running = co_await open(rt, std::move(options));
    co_await collect_together(running, some_requests(6));
    co_await running.close();
    co_return text_of(*record);
}

void check_engine(json const& file)
{
    std::set<std::string> processes;
    for (auto const& e : events_of(file, "M"))
        if (e.at("name") == "process_name") processes.insert(e.at("args").at("name").get<std::string>().substr(0, 8));
    CHECK(processes == std::set<std::string>{"engine: ", "device 0", "device 1"});

    // Steps and requests begin and end once each.
    std::map<std::pair<std::string, int>, std::pair<double, double>> spans;
    for (auto const& e : events_of(file, "b"))
        spans[{e.at("name"), e.at("args").at("number")}] = {e.at("ts"), -1};
    CHECK(spans.size() == events_of(file, "b").size());
    for (auto const& e : events_of(file, "e")) {
        auto const found = spans.find({e.at("name"), e.at("args").at("number")});
        REQUIRE(found != spans.end());
        CHECK(found->second.second == -1);
        found->second.second = e.at("ts");
    }
    int requests = 0;
    for (auto const& [key, span] : spans) {
        CHECK(span.first <= span.second);
        requests += key.first == "request";
    }
    CHECK(requests == 4);

    // Operations of a stream do not overlap; those of a step lie within it, on each device.
    std::map<std::pair<int, int>, double> ends;
    std::map<int, std::set<int>> steps;
    std::set<std::string> names;
    for (auto const& e : events_of(file, "X")) {
        auto const begin = e.at("ts").get<double>(), end = begin + e.at("dur").get<double>();
        auto& last = ends[{e.at("pid"), e.at("tid")}];
        CHECK(begin >= last - 1e-3); // sums of decimals
        last = end;
        names.insert(e.at("name").get<std::string>());
        if (!e.at("args").contains("step")) continue;
        int const step = e.at("args").at("step");
        steps[e.at("pid")].insert(step);
        auto const span = spans.find({"step", step});
        REQUIRE(span != spans.end());
        CHECK(begin >= span->second.first - 1e-3);
        CHECK(end <= span->second.second + 1e-3);
    }
    CHECK(steps.size() == 2);
    CHECK(steps.begin()->second == steps.rbegin()->second);
    CHECK(spans.size() == 4 + steps.begin()->second.size());
    for (auto const* name : {"pack", "gather_tokens", "embed", "norm", "product", "attention", "all_reduce", "draw"})
        CHECK(names.contains(name));
    CHECK(!events_of(file, "s").empty());
    CHECK(events_of(file, "s").size() == events_of(file, "f").size());
}

} // namespace

TEST_CASE("an engine records its steps and requests, and its devices their operations, the same in every run")
{
    tiny_file model;
    std::vector<std::string> texts;
    for (int run = 0; run < 2; ++run) {
        simulation all(late_by(0));
        texts.push_back(all.run(recorded_engine(all.home(), model.path(), true)));
    }
    CHECK(texts[0] == texts[1]);
    check_engine(json::parse(texts[0]));
}

CO_TEST_CASE("an engine on the host records each of its devices from a thread of its own")
{
    tiny_file model;
    auto const text = co_await recorded_engine(rt, model.path(), false);
    check_engine(json::parse(text));
}
