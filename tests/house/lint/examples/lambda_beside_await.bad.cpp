// as: engine/example.cpp
#include <plait/actors/tasks/scope.hpp>

namespace plait {

task<int> lambdas(queue q, int n)
{
    co_await with_scope([&](scope& s) -> task<> { // finds: lambda-beside-await
        s.start(fill(q));
        co_return;
    });
    auto sum = co_await fold(q, 0, [n](int a, int b) { return a + b * n; }); // finds: lambda-beside-await
    auto found = find(co_await q.all(), [=](int a) { return a == n; });      // finds: lambda-beside-await
    if (n > 0)
        co_await each(q, [q, m = n + 1](auto&& item) mutable noexcept { item += m; }); // finds: lambda-beside-await
    co_return co_await apply([&]() -> task<int> { co_return n; }); // finds: lambda-beside-await
}

} // namespace plait
