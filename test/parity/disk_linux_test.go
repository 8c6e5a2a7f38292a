package parity

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// smallDisk mounts a disk of some bytes until the test ends, and returns where, and what
// fills it up.
func smallDisk(t *testing.T, size int) (dir string, fill func() (empty func())) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", size)); err != nil {
		t.Skip("no disk can be mounted: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir, func() func() {
		f, err := os.Create(filepath.Join(dir, "full"))
		for err == nil {
			_, err = f.Write(make([]byte, 4<<10))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("filling up the disk: %v, want no space left", err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := os.Remove(f.Name()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A disk that is full stops calls that may cost money, and not those that end a cost, which are
// recorded in the room that is kept for them; with room on the disk again all goes on.
func TestMoneyCanBeEndedOnAFullDisk(t *testing.T) {
	for _, name := range []string{"http", "envoy"} {
		t.Run(name, func(t *testing.T) {
			disk, fill := smallDisk(t, 4<<20)
			path := filepath.Join(disk, "audit.log")
			d := openDoor(t, name, budgeted("{per_hour: 9}"), audited(path))
			first, second, third := d.rented(t, podL4), d.rented(t, podL4), d.rented(t, podL4)
			empty := fill()
			// The file has a little more room than the reserve.
			used := 0
			restart := request("POST", "/v2/pods/"+first+"/action", "key_research", `{"action":"restart"}`)
			for ; used < 50 && d.ask(t, restart).Status == 409; used++ {
			}
			for _, r := range []struct {
				method, target, body string
				status               int
			}{
				{"POST", "/v2/pods", podL4, 503},
				{"POST", "/v2/pods/" + first + "/action", `{"action":"restart"}`, 503},
				{"POST", "/v2/pods/" + first + "/action", `{"action":"stop"}`, 200},
				{"POST", "/v1/pods/" + second + "/stop", "", 200},
				{"POST", "/v2/pods/" + first + "/action", `{"action":"start"}`, 503},
				{"DELETE", "/v2/pods/" + first, "", 204},
				{"DELETE", "/v1/pods/" + second, "", 204},
				{"POST", "/graphql", `{"query":"mutation { podTerminate(input: {podId: \"` + third + `\"}) }"}`, 200},
				{"GET", "/v2/pods", "", 200},
			} {
				if a := d.ask(t, request(r.method, r.target, "key_research", r.body)); a.Status != r.status || strings.Contains(a.Body, `"errors"`) {
					t.Errorf("%s %s %s: %d %s, want %d", r.method, r.target, r.body, a.Status, a.Body, r.status)
				}
			}
			if n := len(d.platform.CallsTo("deletePod")); n != 3 {
				t.Errorf("%d pods were deleted, want 3", n)
			}
			empty()
			d.rented(t, podL4)
			ended := make(map[string]int)
			for _, l := range readAudit(t, path) {
				if l.Phase == "intent" {
					ended[l.Verb]++
				}
			}
			if diff := cmp.Diff(map[string]int{"create": 4, "restart": used, "stop": 2, "delete": 3}, ended); diff != "" {
				t.Errorf("recorded (-want +got):\n%s", diff)
			}
		})
	}
}
