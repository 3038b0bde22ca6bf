// as: engine/example.cpp
#include <plait/actors/tasks/task.hpp>

namespace plait {

task<std::string> choices(bool flag, std::string a, std::string b)
{
    auto x = flag ? co_await first() : co_await second(); // finds: choice-beside-await
    co_await send(flag ? a : b);                           // finds: choice-beside-await
    co_await send(flag ? std::string("a") : b + "c");      // finds: choice-beside-await
    co_return co_await ready() ? a : b;                    // finds: choice-beside-await
}

} // namespace plait
