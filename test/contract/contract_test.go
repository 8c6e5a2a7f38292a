package contract

import (
	"slices"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// part is one part of the contract.
type part struct {
	name        string
	destructive bool // makes, changes or pays for something
	run         func(*testing.T, *client)
}

// parts is the whole contract; the order is from what nothing depends on to
// what depends on much.
func parts() []part {
	return []part{
		{"manners", false, manners},
		{"catalog", false, catalog},
		{"account", true, account},
		{"secrets", true, secrets},
		{"registries", true, registries},
		{"templates", true, templates},
		{"network volumes", true, networkVolumes},
		{"pods", true, pods},
		{"clusters", true, clusters},
		{"serverless", true, serverless},
		{"builds", true, builds},
		{"sandboxes", true, sandboxes},
		{"pages", true, pages},
		{"run interface", true, runInterface},
		{"billing", false, billing},
		{"money", true, money},
	}
}

func TestContract(t *testing.T) {
	c := newClient(t)
	for _, p := range parts() {
		t.Run(p.name, func(t *testing.T) {
			if p.destructive && !c.destructive {
				t.Skip("destructive: set TOLLGATE_CONTRACT_DESTRUCTIVE=1")
			}
			p.run(t, c)
		})
	}
	t.Run("complete", func(t *testing.T) { complete(t, c) })
}

// complete fails for an operation that no part has called, and on the emulator
// for a documented status that no part has seen.
func complete(t *testing.T, c *client) {
	t.Helper()
	if !c.destructive {
		t.Skip("only a whole run is complete")
	}
	unseen := map[string]string{
		"getOpenAPI 429":    "is not counted: it needs no key",
		"listSandboxes 400": "is the gateway's, for labels of its own",
	}
	for _, id := range c.api.ids() {
		if len(c.seen[id]) == 0 {
			t.Errorf("%s: no part of the contract calls it", id)
			continue
		}
		if c.emulator == nil {
			continue
		}
		for status := range c.api.operations[id].responses {
			code, err := strconv.Atoi(status)
			if err != nil || c.seen[id][code] || unseen[id+" "+status] != "" {
				continue // "default" is every other status
			}
			t.Errorf("%s: no part of the contract sees status %d", id, code)
		}
	}
	if n := len(c.api.operations); n < 66 {
		t.Errorf("the descriptions have %d operations, want at least the 66 we know", n)
	}
	if !slices.Contains(c.api.ids(), "createPod") {
		t.Error("the description does not describe createPod")
	}
}
