// as: engine/example.cpp
#include <plait/actors/sync/channel.hpp>

namespace plait {

task<message> braces(channel<message> c)
{
    message hello{"hello", 1};
    co_await c.send(std::move(hello));
    co_await c.send(message("hello", 1));
    // Scalars have no destructor to run twice.
    co_await c.skip(std::size_t{3}, int{4});
    co_await c.skip(std::uint64_t{3});
    // No await in the expression.
    auto later = message{"hello", 1};
    std::vector<int> numbers = {1, 2, 3};
    if (later.kind == 1) {
        co_return message{"hello", 1};
    }
    for (int n : {1, 2, 3}) {
        co_await c.skip(n);
    }
    // The body of a lambda is no list, and what is in it belongs to another expression.
    auto sum = co_await fold(c, [](int a) -> int { return std::max({a, 1}); });
    if constexpr (requires { c.size(); }) {
        co_await c.skip(1);
    }
    try {
        co_await c.skip(1);
    } catch (...) {
        fail();
    }
    co_return {};
}

// A constructor's list of initialisers and a class's members are no expressions.
struct taker {
    explicit taker(channel<message> c)
        : c_{std::move(c)}
        , n_{1}
    {
    }

    task<int> take()
    {
        auto got = co_await c_.receive();
        co_return got.kind;
    }

    channel<message> c_;
    int n_{0};
};

template<class T>
    requires std::integral<T>
task<T> twice(T value)
{
    co_await yield();
    co_return T{value};
}

auto thrice(int value) -> task<int>
{
    co_await yield();
    co_return value;
}

} // namespace plait
