package v1

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
)

// sluggish is a platform whose creates take their time. It is used in a bubble,
// where time is synctest's.
type sluggish struct {
	// delay is how long a create takes, mute how long its answer takes after
	// that, status the answer.
	delay, mute time.Duration
	status      int
	// deaf creates make a pod but their answer never comes.
	deaf bool

	mu   sync.Mutex // guards what follows
	ops  []string
	pods []any
}

func (s *sluggish) Call(ctx context.Context, r *translate.Request) (*translate.Response, error) {
	s.mu.Lock()
	s.ops = append(s.ops, r.Operation)
	s.mu.Unlock()
	if r.Operation == "createPod" {
		time.Sleep(s.delay) // whoever asked may have left, the platform goes on
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.Operation == "createPod" {
		defer time.Sleep(s.mute)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Operation {
	case "createPod":
		return s.create()
	case "listPods":
		return &translate.Response{Status: 200, Body: map[string]any{"pods": s.pods}}, nil
	case "getPod":
		if pod := translate.ByID(s.pods, r.Params["id"]); pod != nil {
			return &translate.Response{Status: 200, Body: pod}, nil
		}
		return &translate.Response{Status: 404}, nil
	case "listGpuTypes":
		return &translate.Response{Status: 200, Body: fixture("gpus")}, nil
	}
	return nil, errors.New("unexpected call of " + r.Operation)
}

func (s *sluggish) create() (*translate.Response, error) {
	if s.status != 201 {
		return &translate.Response{Status: s.status, Body: map[string]any{"detail": short}}, nil
	}
	pod := merge(fixture("newPod"), map[string]any{
		"id": fmt.Sprintf("p%d", len(s.pods)+1), "createdAt": time.Now().UTC().Format(time.RFC3339), "gpu": map[string]any{"id": "NVIDIA L4"},
	})
	s.pods = append(s.pods, pod)
	if s.deaf {
		return nil, errLost
	}
	return &translate.Response{Status: 201, Body: pod}, nil
}

func (s *sluggish) count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(strings.Join(s.ops, " ")+" ", op+" ")
}

// shop is an API in a bubble whose creates can outlive their requests.
type shop struct {
	*sluggish
	api  *API
	late sync.WaitGroup
}

func newShop(t *testing.T, platform *sluggish) *shop {
	t.Helper()
	s := &shop{sluggish: platform}
	var err error
	s.api, err = New(DefaultConfig(), translate.Deps{Store: translate.NewMemoryStore(time.Now), Late: s.late.Go})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const oneL4 = `{"imageName":"img:1","gpuTypeIds":["NVIDIA L4"],"env":{"SECRET":"s"}}`

// order sends a create of a caller and tells how long its answer took.
func (s *shop) order(ctx context.Context, caller, body string) (result, time.Duration) {
	begin := time.Now()
	out := s.api.Serve(ctx, "createPod", &translate.Incoming{Account: "acme", Caller: caller, HasBody: true, Body: mustJSON(body)}, s.sluggish)
	return result{Outgoing: out, body: mustJSON(string(out.Body))}, time.Since(begin)
}

// TestSlowCreate: a create that takes longer than its request may is answered in
// time, and its repeat gets the same pod.
func TestSlowCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, &sluggish{delay: 40*time.Second - time.Millisecond, status: 201})
		first, took := s.order(t.Context(), "ann", oneL4)
		if first.Status != 504 || !strings.Contains(first.text("message"), "Send the same request again") || first.Header.Get("Retry-After") != "5" || took != 25*time.Second {
			t.Errorf("first answer after %v: %d %s, Retry-After %q", took, first.Status, first.Body, first.Header.Get("Retry-After"))
		}
		time.Sleep(5 * time.Second)
		again, took := s.order(t.Context(), "ann", oneL4)
		if again.Status != 201 || again.text("id") != "p1" || took != 10*time.Second {
			t.Errorf("repeat answered after %v: %d %s, want 201 with p1 after 10s", took, again.Status, again.Body)
		}
		if env, ok := translate.At(again.body, "env", "PUBLIC_KEY").(string); ok {
			t.Errorf("the variable the platform added is shown: %q", env)
		}
		if n := s.count("createPod"); n != 1 {
			t.Errorf("%d creates, want 1", n)
		}
		// What was answered is no longer remembered: the next is a pod of its own.
		s.delay = 0
		if next, _ := s.order(t.Context(), "ann", oneL4); next.text("id") != "p2" {
			t.Errorf("a create afterwards: %d %s, want p2", next.Status, next.Body)
		}
		s.late.Wait()
	})
}

// TestSlowCreateOfAnother: only the same caller's same request is a repeat.
func TestSlowCreateOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, &sluggish{delay: 40 * time.Second, status: 201})
		s.order(t.Context(), "ann", oneL4)
		s.late.Wait()
		s.delay = 0
		if got, _ := s.order(t.Context(), "bob", oneL4); got.text("id") != "p2" {
			t.Errorf("another caller: %d %s, want p2", got.Status, got.Body)
		}
		if got, _ := s.order(t.Context(), "ann", strings.Replace(oneL4, "img:1", "img:2", 1)); got.text("id") != "p3" {
			t.Errorf("another request: %d %s, want p3", got.Status, got.Body)
		}
		if got, _ := s.order(t.Context(), "ann", oneL4); got.text("id") != "p1" {
			t.Errorf("the repeat: %d %s, want p1", got.Status, got.Body)
		}
		s.late.Wait()
	})
}

// TestSlowCreatesAtOnce: identical creates that were meant to be several stay
// several.
func TestSlowCreatesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, &sluggish{delay: 40 * time.Second, status: 201})
		round := func() map[string]int {
			var mu sync.Mutex
			var group sync.WaitGroup
			ids := map[string]int{}
			for range 4 {
				group.Go(func() {
					got, _ := s.order(t.Context(), "ann", oneL4)
					mu.Lock()
					defer mu.Unlock()
					ids[fmt.Sprint(got.Status, got.text("id"))]++
				})
			}
			group.Wait()
			return ids
		}
		if got := fmt.Sprint(round()); got != "map[504:4]" {
			t.Errorf("first round %s, want four times 504", got)
		}
		if got := fmt.Sprint(round()); got != "map[201p1:1 201p2:1 201p3:1 201p4:1]" {
			t.Errorf("second round %s, want each pod once", got)
		}
		s.late.Wait()
	})
}

// TestSlowCreateEnds: what came of a create that outlived its request decides
// what its repeat does.
func TestSlowCreateEnds(t *testing.T) {
	tests := map[string]struct {
		platform *sluggish
		creates  int
		id       string
	}{
		"refused: the repeat tries anew": {&sluggish{status: 400}, 2, "p1"},
		"lost, but carried out":          {&sluggish{status: 201, deaf: true}, 1, "p1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, tt.platform)
				s.delay = 40 * time.Second
				if first, _ := s.order(t.Context(), "ann", oneL4); first.Status != 504 {
					t.Errorf("first answer %d, want 504", first.Status)
				}
				s.late.Wait()
				s.delay, s.status, s.deaf = 0, 201, false
				got, _ := s.order(t.Context(), "ann", oneL4)
				if got.Status != 201 || got.text("id") != tt.id || s.count("createPod") != tt.creates {
					t.Errorf("repeat: %d %s after %d creates, want %s after %d", got.Status, got.Body, s.count("createPod"), tt.id, tt.creates)
				}
				s.late.Wait()
			})
		})
	}
}

// TestSlowCreateWithoutEnd: when nobody notes the end, the last moment of the
// repeat is for a look, and the pod it finds is nobody else's.
func TestSlowCreateWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, &sluggish{delay: 40 * time.Second, mute: time.Minute, status: 201})
		s.order(t.Context(), "ann", oneL4)
		got, took := s.order(t.Context(), "ann", oneL4)
		if got.Status != 201 || got.text("id") != "p1" || took > 25*time.Second {
			t.Errorf("repeat after %v: %d %s, want p1", took, got.Status, got.Body)
		}
		s.late.Wait()
		s.delay, s.mute = 0, 0
		if next, _ := s.order(t.Context(), "ann", oneL4); next.text("id") != "p2" {
			t.Errorf("a create afterwards: %d %s, want p2", next.Status, next.Body)
		}
		s.late.Wait()
	})
}

// TestClientOfACreateLeaves: a client with less patience than the budget repeats
// as well.
func TestClientOfACreateLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, &sluggish{delay: 20*time.Second - time.Millisecond, status: 201})
		ctx, leave := context.WithTimeout(t.Context(), 10*time.Second)
		defer leave()
		s.order(ctx, "ann", oneL4)
		got, took := s.order(t.Context(), "ann", oneL4)
		if got.text("id") != "p1" || took != 10*time.Second || s.count("createPod") != 1 {
			t.Errorf("repeat after %v and %d creates: %d %s, want p1", took, s.count("createPod"), got.Status, got.Body)
		}
		s.late.Wait()
	})
}
