// as: engine/example.cpp
#include <plait/actors/tasks/task.hpp>

namespace plait {

// if (co_await q.ready()) in a comment, and "if (co_await x)" in a string, are nobody's business.
task<int> conditions(queue q)
{
    auto const ready = co_await q.ready();
    if (ready) {
        auto text = "while (co_await q.next()) {";
        auto raw = R"(if (co_await q.ready()) { )";
        use(text, raw);
    }
    while (true) {
        auto item = co_await q.next();
        if (!item) {
            break;
        }
    }
    // The body of a loop or of a branch is not its condition.
    for (int i = 0; i < 3; ++i) {
        co_await q.next();
    }
    if (q.empty())
        co_await q.ready();
    else
        co_await q.next();
    do {
        co_await q.next();
    } while (!q.empty());
    // Neither is a lambda that a condition only calls or names.
    if (run([](queue p) -> task<> { co_await p.next(); })) {
        co_return 1;
    }
    co_return 1'000;
}

} // namespace plait
