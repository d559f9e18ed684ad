// A member of a group by ndnd's SvSync: publishes so many times, and prints the state vector whenever it hears of news.
//
// Usage: group GROUP MEMBER PUBLICATIONS, at the forwarder of NDN_CLIENT_TRANSPORT, where the strategy of GROUP is multicast.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/engine"
	"github.com/named-data/ndnd/std/ndn"
	"github.com/named-data/ndnd/std/object"
	"github.com/named-data/ndnd/std/object/storage"
	svs "github.com/named-data/ndnd/std/sync"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

var (
	mutex  sync.Mutex
	vector = map[string]uint64{}
)

func show(member string, number uint64) {
	mutex.Lock()
	defer mutex.Unlock()
	vector[member] = max(vector[member], number)
	parts := []string{}
	for name, number := range vector {
		parts = append(parts, fmt.Sprintf(" %s=%d", name, number))
	}
	sort.Strings(parts)
	fmt.Println("vector" + strings.Join(parts, ""))
}

func main() {
	group, err := enc.NameFromStr(os.Args[1])
	check(err)
	member, err := enc.NameFromStr(os.Args[2])
	check(err)
	publications, err := strconv.Atoi(os.Args[3])
	check(err)
	app := engine.NewBasicEngine(engine.NewDefaultFace())
	check(app.Start())
	client := object.NewClient(app, storage.NewMemoryStore(), nil)
	check(client.Start())
	node := svs.NewSvSync(svs.SvSyncOpts{
		Client:      client,
		GroupPrefix: group,
		OnUpdate:    func(update svs.SvSyncUpdate) { show(update.Name.String(), update.High) },
	})
	client.AnnouncePrefix(ndn.Announcement{Name: group.Append(enc.NewVersionComponent(3))})
	check(node.Start())
	for range publications {
		time.Sleep(time.Second)
		show(member.String(), node.IncrSeqNo(member))
	}
	select {}
}
