// as: engine/example.test.cpp
TEST_CASE("a test that hopes")
{
    std::this_thread::sleep_for(std::chrono::milliseconds(10)); // finds: runtime-only
    sleep(1);                                                   // finds: runtime-only
}
