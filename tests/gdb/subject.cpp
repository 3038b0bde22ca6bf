// A program that waits in a known way, for the test of plait_gdb.py: it raises SIGTRAP when everything waits.
#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <chrono>
#include <csignal>

namespace shop {

struct store : plait::actor {
    explicit store(plait::event& o)
        : open(o)
    {
    }
    plait::task<int> get(int key)
    {
        ++asked;
        co_await open.wait(); // waits for the event
        co_return key;
    }
    int begun() const { return asked; }

    plait::event& open;
    int asked = 0;
};

struct client : plait::actor {
    plait::task<int> fetch(plait::ref<store> from)
    {
        co_return co_await plait::ask<&store::get>(from, 1); // asks
    }
    plait::task<> visit(plait::ref<store> from)
    {
        auto side_by_side = [&](plait::scope& s) -> plait::task<> {
            s.start([this]() -> plait::task<> {
                ++sleepers;
                co_await home().clock().sleep_until(plait::time_point::max()); // sleeps
            });
            co_await fetch(from); // fetches
            s.request_stop();
        };
        co_await plait::with_scope(side_by_side);
    }
    int begun() const { return sleepers; }

    int sleepers = 0;
};

plait::task<> wait(plait::runtime& home)
{
    plait::event open;
    auto s = home.spawn<store>(open);
    auto c = home.spawn<client>();
    co_await plait::tell<&client::visit>(c, s);
    // Both actors live on one thread: when they answer, what they have begun waits.
    int begun = 0;
    while (begun < 2) {
        begun = co_await plait::ask<&store::begun>(s);
        begun += co_await plait::ask<&client::begun>(c);
    }
    std::raise(SIGTRAP);
    open.set();
}

} // namespace shop

int main()
{
    plait::runtime home;
    home.run(shop::wait(home));
}
