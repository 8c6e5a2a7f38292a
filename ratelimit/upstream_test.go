package ratelimit_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// platform plays the platform: it counts calls per minute and tells so.
type platform struct {
	limit, used int64
	ends        time.Time
	clock       *manual
}

func (p *platform) answer() (int, http.Header) {
	if now := p.clock.Now(); !now.Before(p.ends) {
		p.ends, p.used = now.Truncate(time.Minute).Add(time.Minute), 0
	}
	h := make(http.Header)
	status := http.StatusOK
	if p.used >= p.limit {
		status = http.StatusTooManyRequests
		h.Set("Retry-After", fmt.Sprint(p.reset()))
	} else {
		p.used++
	}
	h.Set("RateLimit-Policy", fmt.Sprintf(`"minute";q=%d;w=60`, p.limit))
	h.Set("RateLimit", fmt.Sprintf(`"minute";r=%d;t=%d`, p.limit-p.used, p.reset()))
	return status, h
}

func (p *platform) reset() int64 {
	return int64((p.ends.Sub(p.clock.Now()) + time.Second - 1) / time.Second)
}

func newUpstream(t *testing.T, clock *manual) *ratelimit.Upstream {
	t.Helper()
	return ratelimit.NewUpstream(ratelimit.UpstreamConfig{Enabled: true}, clock.Now)
}

// use makes calls of a team one after the other and returns how many passed.
func use(t *testing.T, u *ratelimit.Upstream, p *platform, team string, weight int64, calls int) int {
	t.Helper()
	passed := 0
	for range calls {
		if ok, _ := u.Admit("cred", team, weight); !ok {
			continue
		}
		status, h := p.answer()
		if status == http.StatusOK {
			passed++
		}
		u.Observe("cred", status, h)
	}
	return passed
}

func TestUpstreamSharesWhatIsLeft(t *testing.T) {
	clock := newManual()
	u, p := newUpstream(t, clock), &platform{limit: 1000, clock: clock}
	if got := use(t, u, p, "a", 1, 801); got != 801 {
		t.Fatalf("above the threshold %d of 801 passed", got)
	}
	// 199 are left and shared; b has three times a's weight.
	use(t, u, p, "b", 3, 1)
	a := use(t, u, p, "a", 1, 1000)
	b := 1 + use(t, u, p, "b", 3, 1000)
	if a < 48 || a > 52 || a+b != 199 {
		t.Errorf("a and b got %d and %d of 199, want about 50 and the rest", a, b)
	}
	ok, after := u.Admit("cred", "a", 1)
	if ok || after <= 0 || after > time.Minute {
		t.Errorf("with nothing left: admitted = %v, retry after %v", ok, after)
	}
	clock.Add(after)
	if got := use(t, u, p, "a", 1, 10); got != 10 {
		t.Errorf("after the time told %d of 10 passed", got)
	}
}

func TestUpstreamAloneMayUseAll(t *testing.T) {
	clock := newManual()
	u, p := newUpstream(t, clock), &platform{limit: 100, clock: clock}
	if got := use(t, u, p, "a", 1, 150); got != 100 {
		t.Errorf("a team alone got %d of 100", got)
	}
}

func TestUpstreamIdleTeamGivesUpItsPart(t *testing.T) {
	clock := newManual()
	u, p := newUpstream(t, clock), &platform{limit: 1000, clock: clock}
	use(t, u, p, "a", 1, 900)
	use(t, u, p, "b", 1, 1)
	use(t, u, p, "a", 1, 200)
	left := p.limit - p.used
	if left < 45 {
		t.Fatalf("%d are left for b, want about half of 100", left)
	}
	clock.Add(11 * time.Second)
	if got := use(t, u, p, "a", 1, 200); int64(got) != left {
		t.Errorf("a got %d of the %d that b left", got, left)
	}
}

func TestUpstreamCountsCallsUnderWay(t *testing.T) {
	clock := newManual()
	u, p := newUpstream(t, clock), &platform{limit: 100, clock: clock}
	use(t, u, p, "a", 1, 90)
	admitted := 0
	for range 50 {
		if ok, _ := u.Admit("cred", "a", 1); ok {
			admitted++
		}
	}
	if admitted != 10 {
		t.Errorf("%d calls were sent at once with 10 left", admitted)
	}
	u.Observe("cred", 0, nil) // one was lost before it got there
	if ok, _ := u.Admit("cred", "a", 1); !ok {
		t.Error("the place of a lost call was not given to another")
	}
}

func TestUpstreamRetryAfter(t *testing.T) {
	clock := newManual()
	u := newUpstream(t, clock)
	u.Admit("cred", "a", 1)
	u.Observe("cred", http.StatusTooManyRequests, http.Header{"Retry-After": {"7"}})
	if ok, after := u.Admit("cred", "b", 1); ok || after != 7*time.Second {
		t.Errorf("after a 429: admitted = %v, retry after %v; want 7s", ok, after)
	}
	if ok, _ := u.Admit("other", "a", 1); !ok {
		t.Error("another credential was held back")
	}
}

func TestUpstreamIgnoresNonsense(t *testing.T) {
	for _, value := range []string{
		"", ";;;", `"minute"`, `"minute";r=-1;t=5`, `"minute";r=1;t=-5`, `"minute";r=0;t=99999999999`,
		`"minute";r="0";t=1`, `("minute");r=0;t=5`, `5;r=0;t=5`,
	} {
		clock := newManual()
		u := newUpstream(t, clock)
		u.Admit("cred", "a", 1)
		u.Observe("cred", http.StatusOK, http.Header{"Ratelimit": {value}})
		if ok, _ := u.Admit("cred", "a", 1); !ok {
			t.Errorf("RateLimit: %s held a call back", value)
		}
	}
}

func TestUpstreamOffByDefault(t *testing.T) {
	clock := newManual()
	u := ratelimit.NewUpstream(ratelimit.UpstreamConfig{}, clock.Now)
	p := &platform{limit: 10, clock: clock}
	use(t, u, p, "a", 1, 10)
	if ok, _ := u.Admit("cred", "b", 1); !ok {
		t.Error("held a call back though it is off")
	}
}
