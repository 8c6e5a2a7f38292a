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
	// heapGrowth is the value of GOGC: garbage is collected when the heap has grown to five times the live memory, instead of twice. A
	// gateway has little live memory and much garbage, so this costs tens of megabytes and saves a tenth of the CPU time.
	heapGrowth = 400
	// leastGrowth is the value of GOGC for a large live heap, for example with thousands of connections. maxGarbage limits the garbage to this
	// number of bytes or, if more memory is live, to the size of the live memory.
	leastGrowth, maxGarbage = 100, 96 << 20
	// limitShare is the percentage of a container's memory limit at which garbage is collected regardless of GOGC.
	limitShare = 80
)

// tuneHeap sets GOGC and the memory limit of the Go runtime. It does not override the environment variables GOGC and GOMEMLIMIT.
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

// pace returns a function that adapts GOGC to the amount of live memory. now is the current value of GOGC.
func pace(now int) func() {
	used := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	return func() {
		metrics.Read(used)
		next := growthOf(used[0].Value.Uint64() + used[1].Value.Uint64())
		if next*10 < now*9 || next*9 > now*10 { // setting it stops the world
			now = next
			debug.SetGCPercent(now)
		}
	}
}

// growthOf returns GOGC for a number of live bytes.
func growthOf(used uint64) int {
	return int(min(max(maxGarbage*100/max(used, 1), leastGrowth), heapGrowth))
}

// afterCollection calls f after each garbage collection.
func afterCollection(f func()) {
	runtime.AddCleanup(new([16]byte), func(struct{}) {
		f()
		afterCollection(f)
	}, struct{}{})
}

// memoryLimit returns the smallest memory limit, in bytes, of this process's control group and the groups that contain it (cgroups(7)). It
// reads the files under root. ok is false without a limit.
func memoryLimit(root string) (least int64, ok bool) {
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(groups)) {
		// The format is hierarchy:controllers:path; in version 2, controllers is empty.
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
				// A missing limit is written as "max" in version 2, and as a number close to the largest integer in version 1.
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
