package parity

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestACreateThatOutlivesItsRequest: the platform makes the pod, but its answer
// comes after the request's time. Whoever repeats it gets that pod.
func TestACreateThatOutlivesItsRequest(t *testing.T) {
	const create = `{"imageName":"img:1","gpuTypeIds":["NVIDIA L4"],"env":{"TOKEN":"` + canary + `"}}`
	brief := func(d *door) {
		d.text = strings.Replace(d.text, "log:", "v1: {budget: 1s, volume_budget: 1s}\nlog:", 1)
	}
	for _, name := range []string{"http", "envoy"} {
		t.Run(name, func(t *testing.T) {
			answered := make(chan struct{})
			hold := func(_ *door, r *http.Request) {
				if r.Method == http.MethodPost && r.URL.Path == "/v2/pods" {
					<-answered
				}
			}
			d := openDoor(t, name, brief, between(t, func(*door, *http.Request) {}, hold))
			ask := func(key string) answer { return d.ask(t, request("POST", "/v1/pods", key, create)) }
			first := ask("key_research")
			if first.Status != 504 || first.Header.Get("Retry-After") == "" || !strings.Contains(first.Body, "Send the same request again") {
				t.Errorf("first answer: %d %s", first.Status, first.Body)
			}
			close(answered)
			again := ask("key_research")
			for again.Status == 504 { // as it says
				again = ask("key_research")
			}
			if again.Status != 201 {
				t.Fatalf("repeat: %d %s", again.Status, again.Body)
			}
			made := d.platform.CallsTo("createPod")
			if len(made) != 1 {
				t.Errorf("%d pods made, want 1", len(made))
			}
			if strings.Contains(d.redis.Dump(), canary) {
				t.Error("a secret of the body is in the store")
			}
			if other := ask("key_platform"); other.Status != 201 || field(t, other.Body, "id") == field(t, again.Body, "id") {
				t.Errorf("another caller: %d %s, want a pod of its own", other.Status, other.Body)
			}
		})
	}
}

// TestAGraphQLCreateThatOutlivesItsRequest: the same, for clients of GraphQL.
func TestAGraphQLCreateThatOutlivesItsRequest(t *testing.T) {
	t.Parallel()
	answered := make(chan struct{})
	hold := func(_ *door, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v2/pods" {
			<-answered
		}
	}
	brief := func(d *door) {
		d.text = strings.Replace(d.text, "log:", "graphql: {create_timeout: 1s}\nlog:", 1)
	}
	d := openDoor(t, "http", brief, between(t, func(*door, *http.Request) {}, hold))
	const create = `mutation { podFindAndDeployOnDemand(input: {gpuTypeId: "NVIDIA L4", imageName: "img:1", cloudType: SECURE}) { id } }`
	first := d.ask(t, graphql(create))
	if first.Status != 200 || !strings.Contains(first.Body, "Send the same request again") {
		t.Errorf("first answer: %d %s", first.Status, first.Body)
	}
	close(answered)
	again := d.ask(t, graphql(create))
	for strings.Contains(again.Body, "Send the same request again") { // as it says
		again = d.ask(t, graphql(create))
	}
	if strings.Contains(again.Body, "errors") {
		t.Fatalf("repeat: %s", again.Body)
	}
	if n := len(d.platform.CallsTo("createPod")); n != 1 {
		t.Errorf("%d pods made, want 1", n)
	}
}

// TestCreatesThatOutliveTheirRequestsAtOnce: identical creates that were meant to be
// several stay several; each repeat gets a pod of its own.
func TestCreatesThatOutliveTheirRequestsAtOnce(t *testing.T) {
	const create, several = `{"imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`, 4
	answered := make(chan struct{})
	hold := func(_ *door, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v2/pods" {
			<-answered
		}
	}
	d := openDoor(t, "http", briefly, between(t, func(*door, *http.Request) {}, hold))
	round := func() map[string]int {
		var mu sync.Mutex
		var group sync.WaitGroup
		ids := make(map[string]int)
		for range several {
			group.Go(func() {
				a := d.ask(t, request("POST", "/v1/pods", "key_research", create))
				for a.Status == 504 && isClosed(answered) { // as it says
					a = d.ask(t, request("POST", "/v1/pods", "key_research", create))
				}
				mu.Lock()
				defer mu.Unlock()
				ids[answeredID(a)]++
			})
		}
		group.Wait()
		return ids
	}
	if got := round(); got[""] != several {
		t.Errorf("first round %v, want %d times 504", got, several)
	}
	close(answered)
	if got := round(); len(got) != several || got[""] != 0 {
		t.Errorf("second round %v, want %d pods once each", got, several)
	}
	if n := len(d.platform.CallsTo("createPod")); n != several {
		t.Errorf("%d creates, want %d", n, several)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
