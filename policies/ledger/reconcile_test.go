package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/test/spend/storetest"
)

const org = "acme"

var (
	owner   = ledger.Owner{Team: "research", Key: "ann"}
	onePod  = ledger.Amounts{ledger.Burn: 430_000, ledger.GPUs: 1, ledger.Pods: 1}
	stopped = ledger.Amounts{ledger.Burn: 1_000, ledger.Pods: 1}
)

// reconciled is a ledger in memory with a platform that a test writes down.
type reconciled struct {
	*testing.T
	*storetest.Memory
	storetest.World

	now   time.Time
	found []ledger.PlatformResource
	// listed is called before each list, which fails with away.
	listed func()
	away   error
	// hidden are resources that the list lacks and a GET finds, and looked those that a GET finds instead
	// of the listed ones; asked counts GETs.
	hidden  []ledger.PlatformResource
	looked  []ledger.PlatformResource
	failing bool
	asked   int
	report  ledger.Report
}

func newReconciled(t *testing.T) *reconciled {
	t.Helper()
	r := &reconciled{T: t, now: time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC), listed: func() {}}
	r.Memory = storetest.NewMemory(func() time.Time { return r.now }, nil)
	if err := r.BeginRebuild(t.Context(), org, "t"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.FinishRebuild(t.Context(), org, "t"); err != nil {
		t.Fatal(err)
	}
	return r
}

// List implements ledger.Platform.
func (r *reconciled) List(context.Context, string, func(operation.Kind) bool) ([]ledger.PlatformResource, error) {
	r.listed()
	return r.found, r.away
}

// Get implements ledger.Platform.
func (r *reconciled) Get(_ context.Context, _ string, _ operation.Kind, id string) (*ledger.PlatformResource, error) {
	if r.asked++; r.failing {
		return nil, errors.New("502")
	}
	for _, f := range slices.Concat(r.looked, r.found, r.hidden) {
		if f.ID == id {
			return &f, nil
		}
	}
	return nil, nil
}

// deps are the dependencies of a pass.
func (r *reconciled) deps(w storetest.Around) ledger.Deps {
	d := storetest.Deps(r.Memory, w)
	d.CallTimeout = 10 * time.Second
	return d
}

// pass makes a pass over a store.
func (r *reconciled) pass(store ledger.Store) error {
	d := r.deps(r)
	d.Store = store
	return r.passOf(ledger.New(d))
}

func (r *reconciled) passOf(b *ledger.Components) (err error) {
	r.report, err = b.Loop.Pass(r.Context(), org)
	return err
}

func (r *reconciled) reserve(hold, resource string, after ledger.Amounts) {
	r.Helper()
	out, err := r.Reserve(r.Context(), org, &ledger.Reservation{
		Hold: hold, Kind: string(operation.KindPod), Resource: resource, Owner: owner, After: after, Metadata: ledger.Metadata{Name: hold},
		Limits: make([][ledger.Ceilings]int64, 3),
	})
	if err != nil || out.Status != ledger.Admitted {
		r.Fatalf("Reserve(%s) = %v, %v", hold, out.Status, err)
	}
}

func (r *reconciled) settle(s ledger.Settlement) {
	r.Helper()
	s.Kind, s.Owner = string(operation.KindPod), owner
	if err := r.Settle(r.Context(), org, &s); err != nil {
		r.Fatal(err)
	}
}

// rent enters a pod in the ledger and at the platform.
func (r *reconciled) rent(name string) {
	r.Helper()
	r.reserve(name, "", onePod)
	r.settle(ledger.Settlement{Hold: name, End: ledger.Commit, Resource: "pod-" + name, Amounts: onePod})
	r.has(name, onePod)
}

// has gives the platform a pod.
func (r *reconciled) has(name string, a ledger.Amounts) {
	r.found = append(r.found, ledger.PlatformResource{Kind: operation.KindPod, ID: "pod-" + name, Name: name, Amounts: a, Priced: true})
}

// takes are the amounts and the owner of each resource in the ledger.
func (r *reconciled) takes() map[string]string {
	r.Helper()
	state, err := r.Show(r.Context(), org)
	if err != nil {
		r.Fatal(err)
	}
	out := make(map[string]string)
	for _, x := range state.Resources {
		out[x.ID] = fmt.Sprint(x.Owner, x.Amounts)
	}
	for _, h := range state.Holds {
		out[h.ID] = "hold"
	}
	return out
}

// TestCallsDuringAPass: a resource that calls make and remove while a pass reads is neither
// taken for made without the gateway nor entered when it is gone.
func TestCallsDuringAPass(t *testing.T) {
	for _, tt := range []struct {
		name string
		// between are the calls before the first list, and before the second.
		between [2]func(r *reconciled)
		want    map[string]string
	}{
		{
			name:    "a create under way",
			between: [2]func(r *reconciled){func(r *reconciled) { r.reserve("new", "", onePod); r.has("new", onePod) }},
			want:    map[string]string{"new": "hold"},
		},
		{
			name:    "a create that has ended",
			between: [2]func(r *reconciled){func(r *reconciled) { r.rent("new") }},
			want:    map[string]string{"pod-new": fmt.Sprint(owner, onePod)},
		},
		{
			name: "a create whose pod is gone when the list has come",
			between: [2]func(r *reconciled){
				func(r *reconciled) { r.has("gone", onePod) },
				func(r *reconciled) { r.found = nil },
			},
			want: map[string]string{},
		},
		{
			name:    "a pod made without the gateway",
			between: [2]func(r *reconciled){func(r *reconciled) { r.has("other", onePod) }},
			want:    map[string]string{"pod-other": fmt.Sprint(ledger.Owner{}, onePod)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReconciled(t)
			lists := 0
			r.listed = func() {
				if lists < len(tt.between) && tt.between[lists] != nil {
					tt.between[lists](r)
				}
				lists++
			}
			if err := r.pass(r.Memory); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, r.takes()); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
		})
	}
}

// halfway is a store that fails for good after so many steps.
type halfway struct {
	ledger.Store
	steps int
}

var errHalfway = errors.New("killed")

func (h *halfway) step() error {
	if h.steps--; h.steps < 0 {
		return errHalfway
	}
	return nil
}

func (h *halfway) Settle(ctx context.Context, org string, s *ledger.Settlement) error {
	if err := h.step(); err != nil {
		return err
	}
	return h.Store.Settle(ctx, org, s)
}

func (h *halfway) Adjust(ctx context.Context, org string, list ...*ledger.Adjustment) (made []ledger.AdjustResult, err error) {
	for _, a := range list {
		if err := h.step(); err != nil {
			return made, err
		}
		one, err := h.Store.Adjust(ctx, org, a)
		if made = append(made, one...); err != nil {
			return made, err
		}
	}
	return made, nil
}

func (h *halfway) Show(ctx context.Context, org string) (ledger.State, error) {
	if err := h.step(); err != nil {
		return ledger.State{}, err
	}
	return h.Store.Show(ctx, org)
}

// TestAPassKilledHalfway: wherever a pass ends, the next one finishes its work, and the
// ledger agrees with the platform.
func TestAPassKilledHalfway(t *testing.T) {
	for steps := 0; ; steps++ {
		r := newReconciled(t)
		for _, name := range []string{"stays", "stopped", "removed"} {
			r.rent(name)
		}
		for _, name := range []string{"made", "lost", "late"} {
			r.reserve(name, "", onePod)
			r.settle(ledger.Settlement{Hold: name, End: ledger.Open, ResolveWithin: time.Minute})
		}
		r.reserve("stop", "pod-stays", ledger.Amounts{})
		r.settle(ledger.Settlement{Hold: "stop", End: ledger.Open, ResolveWithin: time.Minute})
		r.found = r.found[:1]
		r.has("stopped", stopped)
		r.has("made", onePod)
		r.has("late", onePod)
		r.has("other", onePod)
		r.now = r.now.Add(2 * time.Minute)
		err := r.pass(&halfway{r.Memory, steps})
		if err != nil && !errors.Is(err, errHalfway) {
			t.Fatal(err)
		}
		if again := r.pass(r.Memory); again != nil {
			t.Fatal(again)
		}
		ann := func(a ledger.Amounts) string { return fmt.Sprint(owner, a) }
		want := map[string]string{
			"pod-stays": ann(onePod), "pod-stopped": ann(stopped), "pod-made": ann(onePod), "pod-late": ann(onePod),
			"pod-other": fmt.Sprint(ledger.Owner{}, onePod),
		}
		if diff := cmp.Diff(want, r.takes()); diff != "" {
			t.Errorf("killed after %d steps (-want +got):\n%s", steps, diff)
		}
		if err == nil {
			if steps < 8 {
				t.Errorf("a pass of %d steps tells nothing", steps)
			}
			return
		}
	}
}
