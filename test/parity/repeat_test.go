package parity

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// keyed writes a create of key_research with an Idempotency-Key.
func keyed(key, body string) string {
	return request("POST", "/v2/pods", "key_research", body, "Idempotency-Key: "+key)
}

// patient gives creates of v2 a time to be looked for.
func patient(lookup string) option {
	return func(d *door) { d.text = strings.Replace(d.text, "log:", "timeouts: {lookup: "+lookup+"}\nlog:", 1) }
}

// both opens each door with and without a budget: the record of a call does not depend on the
// ledger.
func both(t *testing.T, body func(t *testing.T, d *door), opts ...option) {
	t.Helper()
	t.Run("with budgets", func(t *testing.T) { eachDoor(t, body, append(opts, budgeted("{gpus: 1}"))...) })
	t.Run("without", func(t *testing.T) { eachDoor(t, body, opts...) })
}

// TestRepeatsWithAKey: of many repeats at once, one makes the pod, and all later ones
// get its answer.
func TestRepeatsWithAKey(t *testing.T) {
	both(t, func(t *testing.T, d *door) {
		answers := make([]answer, 20)
		var group sync.WaitGroup
		for i := range answers {
			group.Go(func() { answers[i] = d.ask(t, keyed(`"k1"`, podL4)) })
		}
		group.Wait()
		var first answer
		for _, a := range answers {
			switch {
			case a.Status == 201 && a.Header.Get("Idempotent-Replayed") == "":
				if first.Status != 0 {
					t.Errorf("two answers that are not marked as repeats: %s and %s", first.Body, a.Body)
				}
				first = a
			case a.Status == 201:
			case a.Status != 409 || a.Header.Get("Retry-After") == "":
				t.Errorf("%d %s, want 201 or 409", a.Status, a.Body)
			}
		}
		if n := len(d.platform.CallsTo("createPod")); n != 1 {
			t.Errorf("%d creates, want 1", n)
		}
		again := d.ask(t, keyed("k1", podL4)) // without quotation marks it is the same key
		if again.Status != 201 || again.Body != first.Body || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("repeat: %d %s, want the first answer: %s", again.Status, again.Body, first.Body)
		}
		for _, name := range []string{"Content-Type", "X-Tollgate-Cost", "X-Tollgate-Budget"} {
			if got, want := again.Header.Get(name), first.Header.Get(name); got != want {
				t.Errorf("%s of the repeat = %q, want %q", name, got, want)
			}
		}
		if again.Header.Get("X-Tollgate-Decision") == first.Header.Get("X-Tollgate-Decision") || again.Header.Get("RateLimit") == "" {
			t.Errorf("headers of the repeat = %v, want ids and limits of its own", again.Header)
		}
		if a := d.ask(t, keyed("k1", strings.Replace(podL4, "img:1", "img:2", 1))); a.Status != 422 {
			t.Errorf("another body: %d %s, want 422", a.Status, a.Body)
		}
		other := strings.Replace(keyed("k1", podL4), "key_research", "key_platform", 1)
		if a := d.ask(t, other); a.Status != 201 || a.Body == first.Body {
			t.Errorf("another caller: %d %s, want a pod of its own", a.Status, a.Body)
		}
		for _, c := range d.platform.Calls() {
			if c.Header.Get("Idempotency-Key") != "" {
				t.Errorf("%s %s has the key", c.Method, c.Path)
			}
		}
		if dump := d.redis.Dump(); strings.Contains(dump, canary) {
			t.Error("the platform's key is in the store")
		}
		d.advance(24*time.Hour + time.Minute)
		d.redis.FastForward(24*time.Hour + time.Minute)
		n := len(d.platform.CallsTo("createPod"))
		d.ask(t, keyed("k1", podL4))
		if got := len(d.platform.CallsTo("createPod")); got != n+1 && !strings.Contains(d.text, "budget: ") {
			t.Errorf("%d creates after a day, want %d", got, n+1)
		}
	})
}

// TestIdempotencyKeys: a malformed key is refused, and reads have none.
func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		for key, want := range map[string]int{
			strings.Repeat("k", 255): 201, strings.Repeat("k", 256): 400, `"` + strings.Repeat("q", 255) + `"`: 201,
			`"` + strings.Repeat("q", 256) + `"`: 400, "": 400, `""`: 400, `"open`: 400, "a b": 400, "a, b": 400, `"a", "b"`: 400,
			"a\r\nIdempotency-Key: b": 400, "0b7e7c0f-7f3c-4d0e-8f55-3f3f2b0c5c11": 201,
		} {
			if a := d.ask(t, keyed(key, podL4)); a.Status != want {
				t.Errorf("key %q: %d %s, want %d", key, a.Status, a.Body, want)
			}
		}
		if a := d.ask(t, request("GET", "/v2/pods", "key_research", "", "Idempotency-Key: a, b")); a.Status != 200 {
			t.Errorf("a read: %d %s, want 200", a.Status, a.Body)
		}
	})
}

// TestWhatIsKept: a refusal of the gateway's, and of a platform that has not begun, can be tried
// again; an answer of the platform stays.
func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	const h100 = `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA H100 80GB HBM3"}}`
	both(t, func(t *testing.T, d *door) {
		if a := d.ask(t, keyed("policy", h100)); a.Status != 403 {
			t.Errorf("a policy's refusal: %d %s", a.Status, a.Body)
		}
		if a := d.ask(t, keyed("policy", podL4)); a.Status != 201 {
			t.Errorf("the same key after a policy's refusal: %d %s, want 201", a.Status, a.Body)
		}
		for _, tt := range []struct {
			fault  platform.Fault
			status int
			kept   bool
		}{
			{platform.Fault{Kind: platform.FaultCapacity}, 400, true},
			{platform.Fault{Kind: platform.FaultBalance}, 402, true},
			{platform.Fault{Kind: platform.FaultRateLimit}, 429, false},
			{platform.Fault{Kind: platform.FaultStatus, Status: 500}, 500, false},
			{platform.Fault{Kind: platform.FaultStatus, Status: 503}, 503, false},
		} {
			name := fmt.Sprintf("fault-%d", tt.status)
			tt.fault.Operation, tt.fault.Times = "createTemplate", 1
			d.platform.AddFault(tt.fault)
			ask := func() answer {
				return d.ask(t, request("POST", "/v2/templates", "key_platform", `{"name":"`+name+`","image":"img:1"}`, "Idempotency-Key: "+name))
			}
			if a := ask(); a.Status != tt.status {
				t.Errorf("%s: %d %s, want %d", tt.fault.Kind, a.Status, a.Body, tt.status)
			}
			want := 201
			if tt.kept {
				want = tt.status
			}
			if a := ask(); a.Status != want || (a.Header.Get("Idempotent-Replayed") == "true") != tt.kept {
				t.Errorf("repeat after %d: %d %s, want %d", tt.status, a.Status, a.Body, want)
			}
		}
	}, patient("1s"))
}

// TestAKeyNeedsTheStore: without it, it is not known whether the key was used.
func TestAKeyNeedsTheStore(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		exempt := func(raw string) string { return strings.Replace(raw, "key_research", "key_exempt", 1) }
		if a := d.ask(t, exempt(keyed("k", podL4))); a.Status != 201 {
			t.Fatalf("create: %d %s", a.Status, a.Body)
		}
		d.redis.SetError("ERR away")
		if a := d.ask(t, exempt(keyed("k", podL4))); a.Status != 503 || a.Header.Get("Retry-After") == "" {
			t.Errorf("with the key: %d %s, want 503", a.Status, a.Body)
		}
		if a := d.ask(t, exempt(request("POST", "/v2/pods", "key_research", podL4))); a.Status != 201 {
			t.Errorf("without: %d %s, want 201", a.Status, a.Body)
		}
		d.redis.SetError("")
		if n := len(d.platform.CallsTo("createPod")); n != 2 {
			t.Errorf("%d creates, want 2", n)
		}
	})
}

// TestRepeatsOfLostCreates: with a key, a create whose answer is lost is never made twice; its
// repeat gets the resource, and 409 until that is known.
func TestRepeatsOfLostCreates(t *testing.T) {
	for _, lookup := range []string{"0s", "1s"} {
		t.Run("lookup "+lookup, func(t *testing.T) {
			both(t, func(t *testing.T, d *door) {
				d.platform.AddFault(platform.Fault{Operation: "createPod", Kind: platform.FaultDrop, After: true, Times: 1})
				first := d.ask(t, keyed("k", podL4))
				if want := map[string]int{"0s": 504, "1s": 201}[lookup]; first.Status != want {
					t.Errorf("first: %d %s, want %d", first.Status, first.Body, want)
				}
				again := d.ask(t, keyed("k", podL4))
				if again.Status != 201 || again.Header.Get("Idempotent-Replayed") != "true" {
					t.Errorf("repeat: %d %s, want the pod", again.Status, again.Body)
				}
				if third := d.ask(t, keyed("k", podL4)); third.Body != again.Body {
					t.Errorf("another repeat: %d %s, want %s", third.Status, third.Body, again.Body)
				}
				d.platform.AddFault(platform.Fault{Operation: "createPod", Kind: platform.FaultStatus, Status: 504, Times: 1})
				never := func() answer { return d.ask(t, keyed("never", strings.Replace(podL4, `"a"`, `"never"`, 1))) }
				if strings.Contains(d.text, "gpus: 1") {
					d.platform.ClearFaults()
					return // there is no room for another
				}
				if a := never(); a.Status != 504 || !strings.Contains(a.Body, "may have been created") {
					t.Errorf("never made: %d %s, want 504", a.Status, a.Body)
				}
				if a := never(); a.Status != 409 || a.Header.Get("Retry-After") == "" {
					t.Errorf("its repeat: %d %s, want 409", a.Status, a.Body)
				}
				d.advance(12 * time.Minute)
				if a := never(); a.Status != 201 || a.Header.Get("Idempotent-Replayed") != "" {
					t.Errorf("its repeat after 12 minutes: %d %s, want a pod made now", a.Status, a.Body)
				}
			}, patient(lookup))
		})
	}
}

// gatewayField is the incarnation that has an intent in hand.
var gatewayField = regexp.MustCompile(`"gateway":"[^"]*"`)

// TestAKeyOfAGatewayThatIsGone: the gateway that made the call has ended before the answer came;
// another one finds the resource, and makes no second.
func TestAKeyOfAGatewayThatIsGone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *door) {
		d.platform.AddFault(platform.Fault{Operation: "createPod", Kind: platform.FaultDrop, After: true, Times: 1})
		a := d.ask(t, keyed("k", podL4))
		if a.Status != 504 {
			t.Fatalf("create: %d %s", a.Status, a.Body)
		}
		// A gateway that is killed leaves this behind: a record that says that the call is under
		// way.
		for field, row := range d.intents(t) {
			row = strings.Replace(row, `,"open":true`, "", 1)
			d.redis.HSet(intentsKey, field, gatewayField.ReplaceAllString(row, `"gateway":"gone"`))
		}
		if a := d.ask(t, keyed("k", podL4)); a.Status != 409 {
			t.Errorf("a repeat while the call can be under way: %d %s, want 409", a.Status, a.Body)
		}
		d.advance(2 * time.Minute)
		if a := d.ask(t, keyed("k", podL4)); a.Status != 201 {
			t.Errorf("a repeat after that: %d %s, want the pod", a.Status, a.Body)
		}
		if n := len(d.platform.CallsTo("createPod")); n != 1 {
			t.Errorf("%d creates, want 1", n)
		}
	}, patient("0s"))
}

// TestAKeyOfAStart: starts are remembered, too.
func TestAKeyOfAStart(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		id := d.rented(t, podL4)
		action := func(what, key string) answer {
			return d.ask(t, request("POST", "/v2/pods/"+id+"/action", "key_research", `{"action":"`+what+`"}`, "Idempotency-Key: "+key))
		}
		if a := action("stop", "s"); a.Status != 200 {
			t.Fatalf("stop: %d %s", a.Status, a.Body)
		}
		first := action("start", "k")
		if first.Status != 200 {
			t.Fatalf("start: %d %s", first.Status, first.Body)
		}
		n := len(d.platform.CallsTo("podAction"))
		if again := action("start", "k"); again.Status != 200 || again.Body != first.Body || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("repeat: %d %s, want %s", again.Status, again.Body, first.Body)
		}
		if got := len(d.platform.CallsTo("podAction")); got != n {
			t.Errorf("the platform was asked %d times more", got-n)
		}
	})
}

// intentsKey is the key of acme's intents.
const intentsKey = "tollgate:intents:{acme}:intents"

// intents returns the intents of acme in the store, by their fields: a line each.
func (d *door) intents(t *testing.T) map[string]string {
	t.Helper()
	fields, err := d.redis.HKeys(intentsKey)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, field := range fields {
		if strings.HasPrefix(field, "w") {
			all[field] = d.redis.HGet(intentsKey, field)
		}
	}
	return all
}
