package parity

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// legacyKeyed are the creates of the old dialects with an Idempotency-Key, and where their answers have the id.
var legacyKeyed = map[string]struct {
	write func(key, image string) string
	id    func(t *testing.T, a answer) string
}{
	"v1": {func(key, image string) string {
		return request("POST", "/v1/pods", "key_research", `{"name":"a","imageName":"`+image+`","gpuTypeIds":["NVIDIA GeForce RTX 4090","NVIDIA L4"],"gpuTypePriority":"custom"}`, "Idempotency-Key: "+key)
	}, func(t *testing.T, a answer) string { return fmt.Sprint(field(t, a.Body, "id")) }},
	"graphql": {func(key, image string) string {
		return request("POST", "/graphql", "key_research",
			`{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"a\", imageName: \"`+image+`\", gpuTypeIdList: [\"NVIDIA GeForce RTX 4090\", \"NVIDIA L4\"], cloudType: SECURE}) { id } }"}`, "Idempotency-Key: "+key)
	}, func(t *testing.T, a answer) string { return fmt.Sprint(data(t, a, "podFindAndDeployOnDemand")["id"]) }},
}

// An Idempotency-Key of a legacy create makes one pod, of whichever candidate was free, and its repeats are
// answered with that pod. What was refused can be tried again.
func TestLegacyRepeatsWithAKey(t *testing.T) {
	t.Parallel()
	for name, dialect := range legacyKeyed {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, d *door) {
				d.platform.AddFault(platform.Fault{Operation: "createPod", Kind: platform.FaultCapacity, Times: 2})
				if a := d.ask(t, dialect.write("k1", "img:1")); a.Header.Get("Idempotent-Replayed") != "" || a.Status == http.StatusCreated || a.Status == http.StatusOK && !strings.Contains(a.Body, "NO_CAPACITY") {
					t.Fatalf("with nothing free: %d %s", a.Status, a.Body)
				}
				d.platform.AddFault(platform.Fault{Operation: "createPod", Kind: platform.FaultCapacity, Times: 1})
				before := len(d.platform.CallsTo("createPod"))
				first := d.ask(t, dialect.write("k1", "img:1"))
				id := dialect.id(t, first)
				if n := len(d.platform.CallsTo("createPod")) - before; n != 2 || len(id) < 5 || first.Header.Get("Idempotent-Replayed") != "" {
					t.Fatalf("%d creates, want 2: %d %s", n, first.Status, first.Body)
				}
				var group sync.WaitGroup
				for range 5 {
					group.Go(func() {
						again := d.ask(t, dialect.write(`"k1"`, "img:1"))
						if again.Status != first.Status || dialect.id(t, again) != id || again.Header.Get("Idempotent-Replayed") != "true" {
							t.Errorf("repeat: %d %s, want pod %s", again.Status, again.Body, id)
						}
					})
				}
				group.Wait()
				other := d.ask(t, dialect.write("k1", "img:2"))
				if kind := "used for a different request"; !strings.Contains(other.Body, kind) || name == "v1" && other.Status != http.StatusUnprocessableEntity {
					t.Errorf("another body: %d %s, want %s", other.Status, other.Body, kind)
				}
				if n := len(d.platform.CallsTo("createPod")) - before; n != 2 {
					t.Errorf("%d creates in all, want 2", n)
				}
			})
		})
	}
}

// An action of a legacy request is taken once for a key, whichever actions the translation takes for it.
func TestLegacyActionsWithAKey(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		id := d.rented(t, podL4)
		d.advance(5 * time.Minute) // it runs
		for range 2 {
			if a := d.ask(t, request("POST", "/v1/pods/"+id+"/restart", "key_research", "", "Idempotency-Key: r1")); a.Status != http.StatusOK {
				t.Fatalf("restart: %d %s", a.Status, a.Body)
			}
		}
		if n := len(d.platform.CallsTo("podAction")); n != 1 {
			t.Errorf("%d actions, want 1", n)
		}
		failed := "ERROR"
		if err := d.platform.ChangePod(id, platform.PodChange{Status: &failed}); err != nil {
			t.Fatal(err)
		}
		if a := d.ask(t, request("POST", "/v1/pods/"+id+"/restart", "key_research", "", "Idempotency-Key: r2")); a.Status != http.StatusOK {
			t.Errorf("restart of a failed pod, which starts it: %d %s", a.Status, a.Body)
		}
	})
}
