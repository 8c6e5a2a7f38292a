package catalog_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeFetcher answers from memory; hold, when set, delays every answer until
// it is closed.
type fakeFetcher struct {
	calls atomic.Int64
	hold  chan struct{}

	mu   sync.Mutex
	gpus []catalog.GPU
	err  error
}

func (f *fakeFetcher) set(gpus []catalog.GPU, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gpus, f.err = gpus, err
}

func (f *fakeFetcher) Lists(ctx context.Context, _ string, _ *catalog.Snapshot) (catalog.Lists, error) {
	f.calls.Add(1)
	if f.hold != nil {
		select {
		case <-f.hold:
		case <-ctx.Done():
			return catalog.Lists{}, context.Cause(ctx)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return catalog.Lists{GPUs: f.gpus}, f.err
}

func oneGPU(usd string) []catalog.GPU {
	m, err := catalog.ParseMoney(usd)
	if err != nil {
		panic(err)
	}
	return []catalog.GPU{{ID: "NVIDIA L4", Secure: catalog.Offer{Offered: true, Price: catalog.Price{Known: true, PerHour: m}}}}
}

func newCatalog(t *testing.T, f interface {
	Lists(ctx context.Context, org string, last *catalog.Snapshot) (catalog.Lists, error)
},
) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(catalog.DefaultConfig(), catalog.Deps{Fetch: f.Lists})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// hourly is what an L4 costs, with the 20 GB of disk (0.00274) that every
// pod gets.
func hourly(t *testing.T, c *catalog.Catalog) string {
	t.Helper()
	snap, err := c.Snapshot(t.Context(), "acme")
	if err != nil {
		return "unknown"
	}
	return snap.Price("createPod", operation.VerbCreate, map[string]any{"gpu": map[string]any{"id": "NVIDIA L4"}}).Hourly.String()
}

func TestSnapshotIsKeptUntilMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFetcher{}
		f.set(oneGPU("0.43"), nil)
		c := newCatalog(t, f)
		if got, want := hourly(t, c), "0.43274"; got != want {
			t.Errorf("first price: got %s, want %s", got, want)
		}
		f.set(nil, errors.New("down"))
		time.Sleep(time.Hour)
		if got, want := hourly(t, c), "0.43274"; got != want {
			t.Errorf("price at the age of an hour: got %s, want %s", got, want)
		}
		time.Sleep(time.Second)
		if got, want := hourly(t, c), "unknown"; got != want {
			t.Errorf("price beyond max_age: got %s, want %s", got, want)
		}
		calls := f.calls.Load()
		if got, want := hourly(t, c), "unknown"; got != want || f.calls.Load() != calls {
			t.Errorf("right after a failure: got %s and %d reads, want %s and no read", got, f.calls.Load()-calls, want)
		}
		f.set(oneGPU("0.5"), nil)
		time.Sleep(5 * time.Second)
		if got, want := hourly(t, c), "0.50274"; got != want {
			t.Errorf("after the retry interval: got %s, want %s", got, want)
		}
	})
}

// A gateway that starts before its platform knows prices as soon as there is one: pauses
// between failing reads begin with 100 ms and double up to five seconds.
func TestSnapshotAsksAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFetcher{}
		f.set(nil, errors.New("down"))
		c := newCatalog(t, f)
		began := time.Now()
		var reads []int64 // milliseconds since the first one
		for calls := int64(0); time.Since(began) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
			hourly(t, c)
			if n := f.calls.Load(); n != calls {
				calls = n
				reads = append(reads, time.Since(began).Milliseconds())
			}
		}
		if want := []int64{0, 100, 300, 700, 1500, 3100, 6300, 11300, 16300}; !slices.Equal(reads, want) {
			t.Errorf("read at %d ms, want %d", reads, want)
		}
		f.set(oneGPU("0.5"), nil)
		time.Sleep(5 * time.Second)
		if got, want := hourly(t, c), "0.50274"; got != want {
			t.Errorf("when the platform is back: got %s, want %s", got, want)
		}
		f.set(nil, errors.New("down"))
		time.Sleep(2 * time.Hour)
		hourly(t, c)
		f.set(oneGPU("0.6"), nil)
		time.Sleep(100 * time.Millisecond)
		if got, want := hourly(t, c), "0.60274"; got != want {
			t.Errorf("after one failure since: got %s, want %s", got, want)
		}
	})
}

func TestSnapshotReadsOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFetcher{hold: make(chan struct{})}
		f.set(oneGPU("0.43"), nil)
		c := newCatalog(t, f)
		impatient, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Snapshot(impatient, "acme"); !errors.Is(err, catalog.ErrUnavailable) {
				t.Errorf("impatient caller: got %v, want ErrUnavailable", err)
			}
		})
		synctest.Wait()
		for range 20 {
			wg.Go(func() {
				if got, want := hourly(t, c), "0.43274"; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		}
		synctest.Wait()
		cancel() // the read goes on for the others
		synctest.Wait()
		close(f.hold)
		wg.Wait()
		if got := f.calls.Load(); got != 1 {
			t.Errorf("reads: got %d, want 1", got)
		}
	})
}

// TestSnapshotLooksAgain lets a read begin and end while a caller that has seen no list
// looks at the clock.
func TestSnapshotLooksAgain(t *testing.T) {
	for name, fails := range map[string]error{"a list": nil, "an error": errors.New("down")} {
		t.Run(name, func(t *testing.T) {
			f := &fakeFetcher{}
			f.set(oneGPU("0.43"), fails)
			var c *catalog.Catalog
			var asked atomic.Bool
			now := func() time.Time {
				if asked.CompareAndSwap(false, true) {
					if _, err := c.Snapshot(t.Context(), "acme"); !errors.Is(err, fails) {
						t.Errorf("the other Snapshot: %v, want %v", err, fails)
					}
				}
				return time.Now()
			}
			c, err := catalog.New(catalog.DefaultConfig(), catalog.Deps{Fetch: f.Lists, Now: now})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Snapshot(t.Context(), "acme"); !errors.Is(err, fails) {
				t.Errorf("Snapshot: %v, want %v", err, fails)
			}
			if got := f.calls.Load(); got != 1 {
				t.Errorf("reads: got %d, want 1", got)
			}
		})
	}
}

func TestRunRefreshes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFetcher{}
		f.set(oneGPU("0.43"), nil)
		c := newCatalog(t, f)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.Run(ctx, "acme"); !errors.Is(err, context.Canceled) {
				t.Errorf("Run: got %v, want context.Canceled", err)
			}
		})
		synctest.Wait()
		f.set(oneGPU("0.6"), nil)
		time.Sleep(5*time.Minute + 5*time.Second)
		synctest.Wait()
		reads := f.calls.Load()
		if got, want := hourly(t, c), "0.60274"; got != want || f.calls.Load() != reads {
			t.Errorf("after refresh: got %s and %d more reads, want %s from memory", got, f.calls.Load()-reads, want)
		}
		f.set(nil, errors.New("down"))
		time.Sleep(10 * time.Minute)
		status := c.Status()
		if len(status) != 1 || status[0].Err == nil || !strings.Contains(status[0].Err.Error(), "down") {
			t.Errorf("status of a failing list: got %+v", status)
		}
		if got, want := hourly(t, c), "0.60274"; got != want {
			t.Errorf("last good price: got %s, want %s", got, want)
		}
		cancel()
		wg.Wait()
	})
}

func TestNewFaults(t *testing.T) {
	_, err := catalog.New(catalog.Config{Storage: catalog.Storage{
		Standard: "free", Container: "0", Persistent: "", PersistentStopped: "-0.2", DefaultDisk: -1,
	}}, catalog.Deps{})
	if err == nil {
		t.Fatal("got no error")
	}
	var faults []string
	for line := range strings.Lines(err.Error()) {
		faults = append(faults, strings.TrimSpace(line))
	}
	want := []string{
		`catalog: storage.standard: must be a positive amount in USD, got "free"`,
		`storage.persistent: must be an amount in USD, got "" (0 makes these disks free)`,
		`storage.persistent_stopped: must be an amount in USD, got "-0.2" (0 makes these disks free)`,
		"storage.default_disk: must not be negative, got -1",
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if _, err := catalog.New(catalog.DefaultConfig(), catalog.Deps{}); err == nil {
		t.Error("no fetcher: got no error")
	}
}

// TestFailedReadsAreLogged: a line when they begin to fail, and one when they
// succeed again, however many there are.
func TestFailedReadsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFetcher{}
		f.set(oneGPU("0.43"), nil)
		var log strings.Builder
		c, err := catalog.New(catalog.DefaultConfig(), catalog.Deps{Fetch: f.Lists, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, "acme") }()
		for _, down := range []error{nil, errors.New("down"), nil} {
			f.set(oneGPU("0.43"), down)
			time.Sleep(time.Hour)
			synctest.Wait()
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: got %v, want context.Canceled", err)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "cannot read the price list") || !strings.Contains(lines[1], "read after earlier failures") {
			t.Errorf("log:\n%s\nwant two lines", log.String())
		}
	})
}
