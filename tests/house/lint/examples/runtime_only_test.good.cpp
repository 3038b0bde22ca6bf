// as: actors/example.test.cpp
TEST_CASE("a test may start threads and read a clock")
{
    auto start = std::chrono::steady_clock::now();
    std::thread other([&] { channel.send(1); });
    other.join();
}
