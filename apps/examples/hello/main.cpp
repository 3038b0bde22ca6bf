// Asks the model one question and prints the answer as it comes:  plait-hello MODEL.gguf "What is a braid?"
#include <plait/engine/engine.hpp>

#include <iostream>

plait::task<> hello(plait::runtime& home, std::string model, std::string question)
{
    plait::engine_options options;
    options.model = model;
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
}

int main(int argc, char** argv)
{
    if (argc != 3) return 2;
    plait::runtime home;
    home.run(hello(home, argv[1], argv[2]));
}
