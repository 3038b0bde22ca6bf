#include <plait/tests/support/co_test.hpp>

#include <new>
#include <utility>

using namespace plait;

namespace {

/// Its copies and moves may throw.
struct touchy {
    explicit touchy(int& left)
        : left(&left)
    {
    }
    touchy(touchy const& other)
        : left(other.left)
    {
        if (--*left == 0) throw std::bad_alloc();
    }
    touchy& operator=(touchy const&) = delete;
    ~touchy() = default;
    int* left;
};

struct touched : actor {
    void take(touchy const&) {}
};

} // namespace

CO_TEST_CASE("an argument that can't be copied on its way leaves the actor with no handle of the message's")
{
    int thrown = 0;
    for (int copies = 1; copies < 10; ++copies) {
        CAPTURE(copies);
        auto to = rt.spawn<touched>();
        weak_ref<touched> const weak = to;
        int left = 100;
        touchy const argument(left);
        left = copies;
        try {
            co_await tell<&touched::take>(std::move(to), argument);
        } catch (std::bad_alloc const&) {
            ++thrown;
        }
        left = 100;
        to = {};
        while (weak.lock())
            co_await this_task::yield();
    }
    CHECK(thrown > 1);
    CHECK(thrown < 9);
}
