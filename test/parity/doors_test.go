package parity

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// TestDoors: the same intent meets the same verdict, price and counters through
// v2, v1 and GraphQL, in both doors, by the library's policies and by the same
// rules of the organisation's own.
func TestDoors(t *testing.T) {
	library := openLanes(t, libraryPolicies)
	own := openLanes(t, "    rego: "+ownPolicies(t)+"\n")
	for _, i := range intents() {
		t.Run(i.name, func(t *testing.T) {
			first := library[0].play(t, i)
			if diff := cmp.Diff(i.denied, first.Denied); diff != "" {
				t.Errorf("denied by (-want +got):\n%s", diff)
			}
			if allowed := len(i.denied) == 0; allowed != (first.Done == 1) {
				t.Errorf("the platform made %d changes, want one if allowed (%t)", first.Done, allowed)
			}
			if priced := i.do != "stop" && i.do != "delete"; priced != (first.Price != "") {
				t.Errorf("price = %q, want one for what can cost money (%t)", first.Price, priced)
			}
			if len(first.Counters) < 5 { // minute, hour and day of the key, hour of the organisation, one class
				t.Errorf("counters = %v, want those of key, organisation and class", first.Counters)
			}
			for _, l := range slices.Concat(library[1:], own) {
				if diff := cmp.Diff(first, l.play(t, i)); diff != "" {
					t.Errorf("%s through the %s door (-v2 through http, +got):\n%s", l.dialect, l.name, diff)
				}
			}
		})
	}
}

// seen is what came of an intent, as far as it must not depend on the way in.
type seen struct {
	Denied []string
	// Done is how many changes the platform made.
	Done int
	// Price is the worst case per hour that was judged, "" for none.
	Price string
	// Counters holds the count taken from each window of a class, and which windows of the caller
	// were taken from: how much, depends on the dialect.
	Counters map[string]int64
}

// lane is one way in: a door and a dialect.
type lane struct {
	*door
	dialect string
}

// play lets one intent happen.
func (l *lane) play(t *testing.T, i intent) seen {
	t.Helper()
	id := ""
	if i.has != nil {
		id = l.owns(t, *i.has, i.stopped)
	}
	if code := l.asOperator(t, http.MethodPost, "/admin/limits/reset?org=acme", "", nil); code != http.StatusNoContent {
		t.Fatalf("reset: %d", code)
	}
	l.platform.ResetCalls()
	requestID := strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(i.name)
	answer := l.ask(t, l.request(t, i, id, requestID))
	event := l.event(t, requestID)
	s := seen{Counters: map[string]int64{}}
	if names, ok := event["denied"].([]any); ok {
		for _, name := range names {
			s.Denied = append(s.Denied, strings.TrimPrefix(fmt.Sprint(name), "own_"))
		}
		slices.Sort(s.Denied)
	}
	if price, ok := event["usd_per_hour"]; ok {
		s.Price = fmt.Sprint(price)
	}
	for _, c := range l.platform.Calls() {
		if c.Method != http.MethodGet && c.Status < 300 {
			s.Done++
		}
	}
	if s.Done == 0 && len(s.Denied) == 0 {
		t.Errorf("nothing came of it: %d %s", answer.Status, answer.Body)
	}
	var limits struct {
		Windows []struct {
			Scope, Window string
			Used          int64
		}
	}
	l.asOperator(t, http.MethodGet, "/admin/limits?org=acme", "", &limits)
	var units int64
	for _, w := range limits.Windows {
		switch name := w.Scope + " " + w.Window; {
		case w.Used == 0:
		case strings.HasPrefix(name, "class:"):
			s.Counters[name] = w.Used
		default:
			s.Counters[name] = 1
			if units == 0 {
				units = w.Used
			}
			if w.Used != units || l.dialect == "v2" && units != 1 {
				t.Errorf("%s counts %d, want as many as every window of the caller, %d", name, w.Used, units)
			}
		}
	}
	l.clear(t)
	return s
}

// request writes the intent in the lane's dialect.
func (l *lane) request(t *testing.T, i intent, id, requestID string) string {
	t.Helper()
	write := func(method, target string, b body) string {
		text := ""
		if b != nil {
			text = encode(t, b)
		}
		return request(method, target, "key_research", text, "X-Request-Id: "+requestID)
	}
	switch l.dialect {
	case "v2":
		switch i.do {
		case "create":
			return write("POST", "/v2/pods", i.want.v2())
		case "patch":
			return write("PATCH", "/v2/pods/"+id, i.want.v2())
		case "delete":
			return write("DELETE", "/v2/pods/"+id, nil)
		}
		return write("POST", "/v2/pods/"+id+"/action", body{"action": i.do})
	case "v1":
		switch i.do {
		case "create":
			b := i.want.v1()
			b["volumeInGb"] = i.want.volume // v1 makes one of 20 GB otherwise
			return write("POST", "/v1/pods", b)
		case "patch":
			return write("PATCH", "/v1/pods/"+id, i.want.v1())
		case "delete":
			return write("DELETE", "/v1/pods/"+id, nil)
		}
		return write("POST", "/v1/pods/"+id+"/"+i.do, nil)
	}
	field, input := map[string]string{"start": "podResume", "stop": "podStop", "restart": "podRestart", "delete": "podTerminate", "patch": "podEditJob"}[i.do], i.want.graphql()
	kind := strings.ToUpper(field[:min(1, len(field))]) + field[min(1, len(field)):] + "Input"
	selection := " { id }"
	switch {
	case i.do == "create" && i.want.flavor != "":
		field, kind = "deployCpuPod", "deployCpuPodInput"
	case i.do == "create":
		field, kind = "podFindAndDeployOnDemand", "PodFindAndDeployOnDemandInput"
	case i.do == "delete":
		selection = ""
	}
	if id != "" {
		input["podId"] = id
	}
	return write("POST", "/graphql", body{
		"query":     fmt.Sprintf("mutation m($input: %s) { %s(input: $input)%s }", kind, field, selection),
		"variables": body{"input": input},
	})
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// event finds the one line an exchange left in the log.
func (l *lane) event(t *testing.T, requestID string) map[string]any {
	t.Helper()
	marked := fmt.Sprintf("%q:%q", "request_id", requestID)
	var found string
	world.Until(t, "the event of "+requestID, func() bool {
		for line := range strings.Lines(l.logs.String()) {
			if strings.Contains(line, marked) && strings.Contains(line, `"msg":"exchange"`) {
				found = line
			}
		}
		return found != ""
	})
	var m map[string]any
	if err := json.Unmarshal([]byte(found), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// owns rents a pod behind the gateway's back.
func (l *lane) owns(t *testing.T, p pod, stopped bool) (id string) {
	t.Helper()
	made := l.asPlatform(t, "POST", "/v2/pods", encode(t, p.v2()))
	id = fmt.Sprint(made["id"])
	l.platform.Clock().Advance(time.Minute) // it runs now
	if stopped {
		l.asPlatform(t, "POST", "/v2/pods/"+id+"/action", `{"action":"stop"}`)
	}
	return id
}

// clear gives all pods back.
func (l *lane) clear(t *testing.T) {
	t.Helper()
	pods, _ := l.asPlatform(t, "GET", "/v2/pods", "")["pods"].([]any)
	for _, p := range pods {
		l.asPlatform(t, "DELETE", "/v2/pods/"+fmt.Sprint(p.(map[string]any)["id"]), "")
	}
}

// openLanes opens every way into the same rules.
func openLanes(t *testing.T, text string) []*lane {
	t.Helper()
	var lanes []*lane
	for _, name := range []string{"http", "envoy"} {
		for _, dialect := range []string{"v2", "v1", "graphql"} {
			d := openDoor(t, name, func(d *door) { d.text = doorsConfiguration(text) })
			if err := d.platform.SetQuota("acme", platform.Quota{Minute: 1e6, Hour: 1e6, Day: 1e6}); err != nil {
				t.Fatal(err)
			}
			lanes = append(lanes, &lane{door: d, dialect: dialect})
		}
	}
	return lanes
}
