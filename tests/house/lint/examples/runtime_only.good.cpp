// as: engine/example.cpp
#include <plait/actors/runtime/runtime.hpp>

namespace plait {

class stopwatch {
public:
    explicit stopwatch(clock& c)
        : clock_(c)
        , start_(clock_.now())
    {
    }
    duration time() const { return clock_.now() - start_; }
    int random(int seed);

private:
    clock& clock_;
    time_point start_;
};

task<> everything(runtime& r, sampler s)
{
    auto now = r.clock().now();
    co_await r.clock().sleep_for(1);
    auto elapsed = s.time();
    auto id = std::this_thread::get_id();
    std::mt19937_64 generator(r.random_seed()); // seeded: it repeats
    auto number = s.random(3) + rng::random(4);
}

} // namespace plait
