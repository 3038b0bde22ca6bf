// as: engine/example.cpp
#include <plait/actors/tasks/scope.hpp>

namespace plait {

task<int> lambdas(queue q, int n)
{
    auto body = [&](scope& s) -> task<> {
        s.start(fill(q));
        // The await of a lambda's body stands in another full expression than the lambda.
        co_await q.next();
    };
    co_await with_scope(body);
    // Without captures there is nothing to destroy twice.
    auto sum = co_await fold(q, 0, [](int a, int b) { return a + b; });
    // Subscripts, attributes and structured bindings are not lambdas.
    auto first = co_await q.at(table[n]);
    auto [a, b] = co_await q.pair();
    auto const& [c, d] = co_await q.pair();
    [[maybe_unused]] auto e = co_await q.next();
    // An expression of its own before or after the await.
    auto less = [n](int x) { return x < n; };
    co_await q.next();
    std::sort(q.begin(), q.end(), [n](int x, int y) { return x % n < y % n; });
    co_return sum;
}

} // namespace plait
