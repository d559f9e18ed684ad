// Sends a schedule of packets through ns-3's point-to-point link with a drop-tail queue.
//
//   link < SCHEDULE > FATES
//
// The first line of a schedule is "RATE DELAY PACKETS": bits per second, nanoseconds, and what the queue holds. Each other one
// is "AT OCTETS": when, in nanoseconds, a packet comes to the queue, and its size on the link. Fates are these lines again with
// a third field: when the packet is at the far end, in nanoseconds, or "dropped".
//
// ns-3 puts two octets of PPP before each packet, so it is given two less.

#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

constexpr uint32_t PPP = 2;
constexpr uint16_t IPV4 = 0x0800;
constexpr int64_t DROPPED = -1;

struct Entry {
    int64_t at;
    uint32_t octets;
    int64_t fate;
};

std::vector<Entry> schedule;
std::map<uint64_t, size_t> numbers;

// Sends a packet, and has the next one sent at its time: no event is older than it would be if packets came over a link.
void Send(Ptr<NetDevice> device, size_t number) {
    Entry& entry = schedule[number];
    Ptr<Packet> packet = Create<Packet>(entry.octets - PPP);
    numbers[packet->GetUid()] = number;
    if (!device->Send(packet, device->GetBroadcast(), IPV4)) {
        entry.fate = DROPPED;
    }
    if (number + 1 < schedule.size()) {
        Simulator::Schedule(NanoSeconds(schedule[number + 1].at) - Simulator::Now(), &Send, device, number + 1);
    }
}

bool Receive(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address&) {
    schedule[numbers.at(packet->GetUid())].fate = Simulator::Now().GetNanoSeconds();
    return true;
}

}  // namespace

int main() {
    uint64_t rate;
    int64_t delay;
    uint32_t packets;
    std::cin >> rate >> delay >> packets;
    for (Entry entry{}; std::cin >> entry.at >> entry.octets;) {
        schedule.push_back(entry);
    }
    if (schedule.empty()) {
        std::cerr << "expected a schedule: RATE DELAY PACKETS, then a line AT OCTETS for each packet" << std::endl;
        return 2;
    }

    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delay)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)));
    NodeContainer nodes;
    nodes.Create(2);
    NetDeviceContainer devices = link.Install(nodes);
    devices.Get(1)->SetReceiveCallback(MakeCallback(&Receive));
    Simulator::Schedule(NanoSeconds(schedule[0].at), &Send, devices.Get(0), size_t{0});
    Simulator::Run();
    Simulator::Destroy();

    for (const Entry& entry : schedule) {
        const std::string fate = entry.fate == DROPPED ? "dropped" : std::to_string(entry.fate);
        std::cout << entry.at << ' ' << entry.octets << ' ' << fate << '\n';
    }
}
