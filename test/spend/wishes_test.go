package spend

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	limits "github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// making is how long the platform takes to make a pod for a wish.
const making = 800 * time.Millisecond

// wish is one pod that a caller wants. It asks and leaves, asks again, and in the end
// stays until it is told.
type wish struct {
	name, path, body string
	visits           []visit
}

// visit is a request to a gateway whose caller leaves after a time, and pauses.
type visit struct {
	gateway     int
	stay, pause time.Duration
}

// drawWish draws a wish whose caller leaves long before the platform has answered, but
// for the last visit, and which comes back last at any time.
func drawWish(rt *rapid.T, name string) wish {
	ms := func(label string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(rt, name+" "+label)) * time.Millisecond
	}
	w := wish{name: name}
	switch rapid.SampledFrom([]string{"v2", "v1", "graphql"}).Draw(rt, name+" dialect") {
	case "v2":
		w.path, w.body = pods, fmt.Sprintf(`{"name":%q,"image":"img:1","gpu":{"id":"NVIDIA L4"}}`, name)
	case "v1":
		w.path, w.body = "/v1/pods", fmt.Sprintf(`{"name":%q,"imageName":"img:1","gpuTypeIds":["NVIDIA L4"],"gpuCount":1}`, name)
	default:
		w.path = "/graphql"
		w.body = fmt.Sprintf(`{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"%s\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L4\", gpuCount: 1}) { id } }"}`, name)
	}
	for range rapid.IntRange(1, 3).Draw(rt, name+" visits") {
		w.visits = append(w.visits, visit{rapid.IntRange(0, 1).Draw(rt, name+" gateway"), ms("stay", 80), ms("pause", 40)})
	}
	last := &w.visits[len(w.visits)-1]
	last.pause += ms("last pause", 1200)
	return w
}

// TestWishes holds two gateways on default settings against what callers want, in random
// histories of callers that leave and come back in every dialect, to either gateway,
// while replies of the store are lost: each has one pod in the end, and nothing is left
// reserved.
func TestWishes(t *testing.T) {
	t.Parallel()
	addr, d := redistest.Start(t), new(drops)
	client, err := limits.Open("redis://"+addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(d)
	s := open(t, &plan{gateways: 2, run: true, redis: addr, client: client, config: "    budget: {gpus: 5000}\n    keys: [{id: ann, sha256: SHA256(key_of_ann_1), roles: [admin], exempt: true}]\n"})
	s.platform.SetLatency("createPod", making)
	s.await("the ledger is complete", func() bool { s := s.state(); return s.Complete })
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		wishes := make([]wish, 12)
		for i := range wishes {
			wishes[i] = drawWish(rt, fmt.Sprintf("wish-%d-%d", round, i))
		}
		d.arm(rapid.IntRange(0, 4).Draw(rt, "lost replies"), rapid.Bool().Draw(rt, "on their way to the store"))
		defer d.disarm()
		decided := make([]bool, len(wishes))
		var wg sync.WaitGroup
		for i := range wishes {
			wg.Go(func() { decided[i] = s.grant(rt, &wishes[i]) })
		}
		wg.Wait()
		counts := s.take()
		for i := range wishes {
			if n := counts[wishes[i].name]; n != 1 && (decided[i] || n == 0) {
				rt.Errorf("%d pods of %+v, want one", n, wishes[i])
			}
		}
	})
	s.await("nothing is reserved", func() bool { s := s.state(); return len(s.Holds) == 0 })
}

// grant has a wish's caller ask until it is told of a pod. It reports false if a visit
// took so long that its caller may have left an answer behind: what becomes of that
// cannot be decided.
func (s *site) grant(rt *rapid.T, w *wish) (decided bool) {
	began := time.Now()
	for _, v := range w.visits {
		if told, text := s.visit(v.gateway, w, v.stay); told {
			rt.Errorf("%s was told %s before there was a pod", w.name, text)
		}
		if time.Since(began) > making-making/8 {
			return s.settle(rt, w) && false
		}
		world.Pause(v.pause) // the caller's own
	}
	return s.settle(rt, w)
}

// settle asks until the caller is told, as one does that is told to try again.
func (s *site) settle(rt *rapid.T, w *wish) bool {
	const tries = 20
	var text string
	for i := range tries {
		var told bool
		if told, text = s.visit(w.visits[0].gateway+i, w, time.Minute); told {
			return true
		}
		world.Pause(100 * time.Millisecond) // the caller's own
	}
	rt.Errorf("%s was not granted: %s", w.name, text)
	return false
}

// visit asks once, and reports whether the answer told of a pod.
func (s *site) visit(g int, w *wish, stay time.Duration) (told bool, text string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), stay)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.gateways[g%len(s.gateways)].url+w.path, strings.NewReader(w.body))
	if err != nil {
		return false, err.Error()
	}
	req.Header = http.Header{"Authorization": {"Bearer key_of_ann_1"}, "Content-Type": {"application/json"}}
	res, err := s.client.Do(req)
	if err != nil {
		return false, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	text = fmt.Sprintf("%d %s", res.StatusCode, body)
	return err == nil && res.StatusCode < 300 && !strings.Contains(text, `"errors"`), text
}

// take counts the platform's pods by name, and takes them away.
func (s *site) take() map[string]int {
	s.t.Helper()
	var list struct{ Pods []struct{ ID, Name string } }
	if err := json.Unmarshal([]byte(s.outside(http.MethodGet, pods, "").body), &list); err != nil {
		s.t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, p := range list.Pods {
		counts[p.Name]++
		s.outside(http.MethodDelete, pods+"/"+p.ID, "")
	}
	return counts
}
