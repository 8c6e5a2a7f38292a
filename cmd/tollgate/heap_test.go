package main

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
)

// The more is in use, the less garbage there is beside it, in proportion.
func TestGrowth(t *testing.T) {
	for used, want := range map[uint64]int{0: 400, 8 << 20: 400, 24 << 20: 400, 48 << 20: 200, 96 << 20: 100, 1 << 34: 100} {
		if got := growthOf(used); got != want {
			t.Errorf("growthOf(%d MB) = %d, want %d", used>>20, got, want)
		}
	}
}

// It is set after each collection, not after the first alone.
func TestAfterCollection(t *testing.T) {
	ran := make(chan struct{}, 100)
	afterCollection(func() { ran <- struct{}{} })
	for n := range 3 {
		for tries := 0; len(ran) == 0; tries++ {
			if tries == 1000 {
				t.Fatalf("it ran after %d collections only", n)
			}
			runtime.GC()
		}
		<-ran
	}
}

// The runtime is given a limit that fits the memory in use.
func TestPace(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	runtime.GC()
	pace(1)()
	if got := debug.SetGCPercent(100); got < leastGrowth+1 || got > heapGrowth {
		t.Errorf("GOGC = %d, want more than %d and at most %d, for little is in use", got, leastGrowth, heapGrowth)
	}
}

func TestMemoryLimit(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  int64
		ok    bool
	}{
		{"no control groups", nil, 0, false},
		{"a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 268435456, true},
		{"a container without a limit", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0, false},
		{"a service below a slice with less", map[string]string{
			"proc/self/cgroup": "0::/system.slice/tollgate.service\n",
			"sys/fs/cgroup/system.slice/tollgate.service/memory.max": "2000\n",
			"sys/fs/cgroup/system.slice/memory.max":                  "1000\n",
		}, 1000, true},
		{"version 1", map[string]string{
			"proc/self/cgroup": "5:cpu:/x\n4:memory:/docker/c1\n0::/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/docker/c1/memory.limit_in_bytes": "4096\n",
		}, 4096, true},
		{"version 1 without a limit", map[string]string{
			"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range tc.files {
				name = filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, ok := memoryLimit(root); got != tc.want || ok != tc.ok {
				t.Errorf("memoryLimit = %d, %t, want %d, %t", got, ok, tc.want, tc.ok)
			}
		})
	}
}
