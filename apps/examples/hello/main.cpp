// Asks the model one question and prints the answer as it comes:  plait-hello MODEL.gguf "What is a braid?"
#include <plait/engine/engine.hpp>
#include <plait/streams/trace_file.hpp>

#include <iostream>

plait::task<> hello(plait::runtime& home, plait::engine_options options, std::string question)
{
    auto engine = co_await plait::open(home, options);

    plait::request ask;
    ask.messages.push_back({"user", question});
    auto answer = co_await engine.submit(ask);
    while (true) {
        auto piece = co_await answer.next();
        if (!piece) break;
        std::cout << piece->text << std::flush;
    }
    std::cout << "\n" << answer.result().generated_tokens << " tokens\n";
    co_await engine.close();
}

int main(int argc, char** argv)
{
    plait::trace_file trace(plait::take_trace_option(argc, argv)); // --trace FILE: what ran when
    if (argc != 3) return 2;
    plait::engine_options options;
    options.model = argv[1];
    options.record = trace.record();
    plait::runtime home;
    home.run(hello(home, options, argv[2]));
    trace.write();
}
