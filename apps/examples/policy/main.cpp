// Shows what a policy changes: one tenant asks twenty questions, then another asks one. Prints how many of the first
// tenant's answers were finished when the second had its first word, with each of two policies:  plait-policy
// MODEL.gguf [--trace FILE]
#include "tenants_in_turn.hpp"

#include <plait/actors/tasks/scope.hpp>
#include <plait/engine/engine.hpp>
#include <plait/streams/trace_file.hpp>

#include <exception>
#include <iostream>
#include <memory>
#include <string>

namespace {

plait::request question(std::string tenant, int number)
{
    plait::request out;
    out.text = "Question " + std::to_string(number) + ":";
    out.max_tokens = 40;
    out.ignore_end = true;
    out.sampling.temperature = 0;
    out.tenant = std::move(tenant);
    return out;
}

plait::task<> read(plait::generation answer, int& finished)
{
    while (true) {
        auto piece = co_await answer.next();
        if (!piece) break;
    }
    ++finished;
}

plait::task<int> finished_before_the_first_word(plait::runtime& home, std::string model,
                                                std::shared_ptr<plait::policy> rule,
                                                std::shared_ptr<plait::trace> record)
{
    plait::engine_options options;
    options.model = model;
    options.context = 128;
    options.sequences = 4;
    options.schedule = std::move(rule);
    options.record = std::move(record);
    auto engine = co_await plait::open(home, options);
    int finished = 0;
    int before = 0;
    auto body = [&](plait::scope& readers) -> plait::task<> {
        for (int i = 0; i < 20; ++i) {
            auto answer = co_await engine.submit(question("greedy", i));
            readers.start(read(std::move(answer), finished));
        }
        auto answer = co_await engine.submit(question("modest", 20));
        auto first = co_await answer.next();
        if (first) before = finished;
    };
    co_await plait::with_scope(body);
    co_await engine.close();
    co_return before;
}

} // namespace

int main(int argc, char** argv)
{
    auto const traced = plait::take_trace_option(argc, argv);
    if (argc != 2) return 2;
    try {
        plait::trace_file trace(traced);
        plait::runtime home;
        auto arrival = std::make_shared<plait::first_come_first_served>();
        auto in_turn = std::make_shared<tenants_in_turn>();
        std::cout << "answers that the greedy tenant had before the modest one's first word\n";
        auto count = home.run(finished_before_the_first_word(home, argv[1], arrival, trace.record()));
        std::cout << "  first come, first served  " << count << " of 20\n";
        count = home.run(finished_before_the_first_word(home, argv[1], in_turn, trace.record()));
        std::cout << "  tenants in turn           " << count << " of 20\n";
        trace.write();
    } catch (std::exception const& e) {
        std::cerr << "plait-policy: " << e.what() << "\n";
        return 1;
    }
}
