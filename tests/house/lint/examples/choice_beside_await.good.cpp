// as: engine/example.cpp
#include <plait/actors/tasks/task.hpp>

namespace plait {

task<std::string> choices(bool flag, std::string a, std::string b)
{
    auto chosen = flag ? a : b;
    co_await send(chosen);
    // Literals have no class type.
    co_await skip(flag ? 1 : 2);
    co_await print(flag ? "yes" : "no");
    // No await in the expression.
    auto both = flag ? a + b : b + a;
    co_await each([](int n) { return n > 0 ? n : -n; });
    co_return flag ? a : b;
}

} // namespace plait
