// as: engine/example.cpp
#include <plait/actors/sync/channel.hpp>

namespace plait {

struct message {
    std::string text;
    int kind = 0;
};

task<message> braces(channel<message> c)
{
    co_await c.send(message{"hello", 1});                  // finds: braces-beside-await
    co_await c.send({.text = "hello", .kind = 2});         // finds: braces-beside-await
    co_await c.send({"hello", 1});                         // finds: braces-beside-await
    co_await tell<&logger::write>(log, std::vector{1, 2}); // finds: braces-beside-await
    co_await open(options{});                              // finds: braces-beside-await
    std::vector<int> both{co_await one(), co_await two()}; // finds: braces-beside-await
    auto wrapped = message{co_await text(), 1};            // finds: braces-beside-await
    co_return message{co_await text(), 1};                 // finds: braces-beside-await
}

generator<message> messages()
{
    co_yield message{"hello", 1};   // finds: braces-beside-await
    co_yield {"hello", 1};          // finds: braces-beside-await
}

} // namespace plait
