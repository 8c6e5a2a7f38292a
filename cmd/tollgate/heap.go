package main

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

const (
	// heapGrowth is GOGC: garbage is collected when the heap has grown to five
	// times the memory in use, instead of twice. A gateway keeps little and makes much
	// garbage, so this costs tens of megabytes and saves a tenth of the CPU time.
	heapGrowth = 400
	// leastGrowth is that of a heap of which much is in use, by thousands of connections,
	// so that there is not more garbage than maxGarbage, in bytes, unless as much is used.
	leastGrowth, maxGarbage = 100, 96 << 20
	// limitShare is the part of a container's memory, in percent, at which garbage
	// is collected however little the heap has grown.
	limitShare = 80
)

// tuneHeap sets how often garbage is collected. Values of GOGC and GOMEMLIMIT stay.
func tuneHeap() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(heapGrowth)
		afterCollection(pace(heapGrowth))
	}
	if _, set := os.LookupEnv("GOMEMLIMIT"); set {
		return
	}
	if limit, ok := memoryLimit("/"); ok {
		debug.SetMemoryLimit(limit / 100 * limitShare)
	}
}

// pace returns a function that sets GOGC, whose value is now, to fit the memory in use.
func pace(now int) func() {
	used := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	return func() {
		metrics.Read(used)
		next := growthOf(used[0].Value.Uint64() + used[1].Value.Uint64())
		if next*10 < now*9 || next*9 > now*10 { // to set it stops the world
			now = next
			debug.SetGCPercent(now)
		}
	}
}

// growthOf is GOGC where so many bytes are in use.
func growthOf(used uint64) int {
	return int(min(max(maxGarbage*100/max(used, 1), leastGrowth), heapGrowth))
}

// afterCollection has f run after each collection of garbage.
func afterCollection(f func()) {
	runtime.AddCleanup(new([16]byte), func(struct{}) {
		f()
		afterCollection(f)
	}, struct{}{})
}

// memoryLimit returns the least memory limit, in bytes, of this process's control
// group and those above it (cgroups(7)), with files below root; false is no limit.
func memoryLimit(root string) (least int64, ok bool) {
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path, without controllers in version 2.
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		var mount, file string
		switch controllers {
		case "":
			mount, file = "sys/fs/cgroup", "memory.max"
		case "memory":
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for at := path.Clean("/" + group); ; at = path.Dir(at) {
			text, err := os.ReadFile(filepath.Join(root, mount, at, file))
			if err == nil {
				// No limit is "max" in version 2 and close to the greatest number in 1.
				const none = 1 << 60
				if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n < none && (!ok || n < least) {
					least, ok = n, true
				}
			}
			if at == "/" {
				break
			}
		}
	}
	return least, ok
}
