package ratelimit

import (
	"cmp"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/dunglas/httpsfv"
)

// UpstreamConfig is how the platform's own limits are respected.
type UpstreamConfig struct {
	Enabled bool `yaml:"enabled" doc:"turns it on"`

	// Threshold is the part of a quota, in percent, below which the rest is shared
	// among teams.
	Threshold int `yaml:"-"`
	// Active is how long after its latest call a team still has its part kept for it.
	Active time.Duration `yaml:"-"`
}

// DefaultUpstreamConfig returns the defaults.
func DefaultUpstreamConfig() UpstreamConfig {
	return UpstreamConfig{Threshold: 20, Active: 10 * time.Second}
}

// Upstream follows the limits the platform puts on each credential of ours, by
// the RateLimit headers of its answers, and shares the rest of one among the
// teams that use it once it runs low: each active team may use the part of it
// that its weight is of the weights of all active teams, so that one busy team
// cannot leave the others with nothing. A team alone may use all. Above the
// threshold no team is held back.
//
// It knows this gateway's calls and the platform's answers; it is a
// courtesy, not a guarantee. It is safe for concurrent use.
type Upstream struct {
	config UpstreamConfig
	clock  Clock

	mu          sync.Mutex
	credentials map[string]*credential
}

// credential is the known state of one credential.
type credential struct {
	windows map[string]*upstreamWindow
	teams   map[string]*teamUse
	// inFlight is the number of calls sent and not answered: the platform may not
	// have counted them yet.
	flying int64
	// blocked is until when the platform said not to come back.
	blocked time.Time
}

// upstreamWindow is one window as the platform last told it.
type upstreamWindow struct {
	limit, remaining int64
	ends             time.Time
}

// teamUse is a team's use of a credential that runs low.
type teamUse struct {
	weight, used int64
	last         time.Time
}

// NewUpstream returns an Upstream; a nil clock means the machine's.
func NewUpstream(config UpstreamConfig, clock Clock) *Upstream {
	clock = cmp.Or[Clock](clock, systemClock{})
	return &Upstream{config: config, clock: clock, credentials: make(map[string]*credential)}
}

// Admit reports whether a team may use a credential (any name of it but the
// secret) for one call now, and if not, when to ask again. Every call that is
// admitted must be followed by one to Observe. Weights below one count as one.
func (u *Upstream) Admit(name, team string, weight int64) (ok bool, retryAfter time.Duration) {
	if !u.config.Enabled {
		return true, 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.clock.Now()
	c := u.credential(name)
	t := c.teams[team]
	if t == nil {
		t = &teamUse{}
		c.teams[team] = t
	}
	t.weight, t.last = max(1, weight), now
	if wait := c.blocked.Sub(now); wait > 0 {
		return false, wait
	}
	if w := c.tightest(now, u.config.Threshold); w == nil {
		c.untighten()
	} else if wait := u.hold(c, t, w, now); wait > 0 {
		return false, wait
	} else {
		t.used++
	}
	c.flying++
	return true, 0
}

// hold returns how long t must wait under a tight window.
func (u *Upstream) hold(c *credential, t *teamUse, w *upstreamWindow, now time.Time) time.Duration {
	left := w.remaining - c.flying
	if left <= 0 {
		return w.ends.Sub(now)
	}
	var weights, used int64
	for name, other := range c.teams {
		if now.Sub(other.last) > u.config.Active {
			delete(c.teams, name)
			continue
		}
		weights += other.weight
		used += other.used
	}
	// Rounded up, so that of a few left a team can take the last.
	part := ((left+used)*t.weight + weights - 1) / weights
	if t.used < part {
		return 0
	}
	return min(w.ends.Sub(now), u.config.Active)
}

// credential returns the known state of a credential, nothing at first.
func (u *Upstream) credential(name string) *credential {
	c := u.credentials[name]
	if c == nil {
		c = &credential{windows: make(map[string]*upstreamWindow), teams: make(map[string]*teamUse)}
		u.credentials[name] = c
	}
	return c
}

// tightest returns the window with the least left among those that run low, nil
// if none does.
func (c *credential) tightest(now time.Time, threshold int) *upstreamWindow {
	var tight *upstreamWindow
	for name, w := range c.windows {
		switch left := w.remaining - c.flying; {
		case !now.Before(w.ends):
			delete(c.windows, name)
		case left*100 >= w.limit*int64(threshold):
		case tight == nil || w.remaining < tight.remaining:
			tight = w
		}
	}
	return tight
}

// untighten forgets who used how much, once there is enough for all.
func (c *credential) untighten() {
	for _, t := range c.teams {
		t.used = 0
	}
}

// Observe notes the platform's answer to a call that was admitted. Status and
// headers are those of the answer; status 0 and nil if there was none.
func (u *Upstream) Observe(name string, status int, h http.Header) {
	if !u.config.Enabled {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.clock.Now()
	c := u.credential(name)
	c.flying = max(0, c.flying-1)
	if status == http.StatusTooManyRequests {
		if s, err := strconv.ParseInt(h.Get("Retry-After"), 10, 32); err == nil && s > 0 {
			c.blocked = now.Add(time.Duration(s) * time.Second)
		}
	}
	quotas := members(h.Values("RateLimit-Policy"))
	for window, state := range members(h.Values("RateLimit")) {
		c.observe(window, quotas[window], state, now)
	}
}

// observe takes one window of an answer. Answers overtake each other: within one
// window the least remaining is the latest.
func (c *credential) observe(name string, quota, state params, now time.Time) {
	remaining, ok := state["r"]
	reset, timed := state["t"]
	if !ok || !timed || remaining < 0 || reset < 0 || reset > maxReset {
		return
	}
	limit := quota["q"]
	ends := now.Add(time.Duration(reset) * time.Second)
	w := c.windows[name]
	if w == nil || ends.Sub(w.ends) > sameWindow || !now.Before(w.ends) {
		c.windows[name] = &upstreamWindow{limit: max(limit, remaining), remaining: remaining, ends: ends}
		return
	}
	w.remaining = min(w.remaining, remaining)
	w.limit = max(w.limit, limit)
}

const (
	// sameWindow is how far apart two ends of one window can seem, told in whole
	// seconds as they are.
	sameWindow = 2 * time.Second
	// maxReset is the longest time to a reset that is believed, in seconds.
	maxReset = 366 * 24 * 3600
)

// params are the integer parameters of a member of a structured list.
type params map[string]int64

// members reads a structured list whose members are strings or tokens with
// parameters; nil if it is not one.
func members(lines []string) map[string]params {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return nil
	}
	out := make(map[string]params, len(list))
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok {
			continue
		}
		var name string
		switch v := item.Value.(type) {
		case string:
			name = v
		case httpsfv.Token:
			name = string(v)
		default:
			continue
		}
		p := make(params)
		for _, key := range item.Params.Names() {
			value, _ := item.Params.Get(key)
			if n, ok := value.(int64); ok {
				p[key] = n
			}
		}
		out[name] = p
	}
	return out
}
