package ratelimit

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/dunglas/httpsfv"
)

// UpstreamConfig configures how the platform's own rate limits are shared among teams.
type UpstreamConfig struct {
	Enabled bool `yaml:"enabled" doc:"share the platform's rate limits among teams"`
}

const (
	// sharedPercent is a percentage of a quota. When less than this part remains, the remainder is shared among teams.
	sharedPercent = 20
	// teamActive is how long a team counts as active after a call.
	teamActive = 10 * time.Second
)

// Upstream shares the platform's rate limits among teams. It reads the limits of each platform credential from the RateLimit headers of the
// platform's responses. Once a limit runs low, the rest is shared among the active teams in proportion to their weights, so that one busy
// team cannot use it all. A team that is active alone may use everything. Above the threshold, no team has to wait.
//
// It knows only this gateway's calls and the platform's responses, so it is a best effort, not a guarantee. It is safe for concurrent
// use.
type Upstream struct {
	config UpstreamConfig
	now    func() time.Time

	mu          sync.Mutex
	credentials map[string]*credential
}

// credential is the known state of one credential.
type credential struct {
	windows map[string]*upstreamWindow
	teams   map[string]*teamUse
	// inFlight is the number of calls sent and not answered yet. The platform may not have counted them.
	inFlight int64
	// blocked is the time until which the platform has asked not to retry.
	blocked time.Time
}

// upstreamWindow is one window as last reported by the platform.
type upstreamWindow struct {
	limit, remaining int64
	ends             time.Time
}

// teamUse is a team's use of a credential that is running low.
type teamUse struct {
	weight, used int64
	last         time.Time
}

// NewUpstream returns an Upstream.
func NewUpstream(config UpstreamConfig, now func() time.Time) *Upstream {
	return &Upstream{config: config, now: now, credentials: make(map[string]*credential)}
}

// Admit reports whether a team may use a credential for one call now. If not, retryAfter is the time to wait before asking again. name
// identifies the credential and must not be its secret. Each admitted call must be followed by a call of Observe. A weight below 1 counts
// as 1.
func (u *Upstream) Admit(name, team string, weight int64) (ok bool, retryAfter time.Duration) {
	if !u.config.Enabled {
		return true, 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
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
	if w := c.tightest(now); w == nil {
		c.untighten()
	} else if wait := u.waitFor(c, t, w, now); wait > 0 {
		return false, wait
	} else {
		t.used++
	}
	c.inFlight++
	return true, 0
}

// waitFor returns how long t must wait because of a window that is running low.
func (u *Upstream) waitFor(c *credential, t *teamUse, w *upstreamWindow, now time.Time) time.Duration {
	left := w.remaining - c.inFlight
	if left <= 0 {
		return w.ends.Sub(now)
	}
	var weights, used int64
	for name, other := range c.teams {
		if now.Sub(other.last) > teamActive {
			delete(c.teams, name)
			continue
		}
		weights += other.weight
		used += other.used
	}
	// Rounded up, so that a team can take the last units.
	part := ((left+used)*t.weight + weights - 1) / weights
	if t.used < part {
		return 0
	}
	return min(w.ends.Sub(now), teamActive)
}

// credential returns the state of a credential, creating it if needed.
func (u *Upstream) credential(name string) *credential {
	c := u.credentials[name]
	if c == nil {
		c = &credential{windows: make(map[string]*upstreamWindow), teams: make(map[string]*teamUse)}
		u.credentials[name] = c
	}
	return c
}

// tightest returns the window with the least units left among those running low, or nil.
func (c *credential) tightest(now time.Time) *upstreamWindow {
	var tight *upstreamWindow
	for name, w := range c.windows {
		switch left := w.remaining - c.inFlight; {
		case !now.Before(w.ends):
			delete(c.windows, name)
		case left*100 >= w.limit*sharedPercent:
		case tight == nil || w.remaining < tight.remaining:
			tight = w
		}
	}
	return tight
}

// untighten drops the recorded usage of teams once there are enough units for all.
func (c *credential) untighten() {
	for _, t := range c.teams {
		t.used = 0
	}
}

// Observe records the platform's response to an admitted call. If there was no response, status is 0 and h is nil.
func (u *Upstream) Observe(name string, status int, h http.Header) {
	if !u.config.Enabled {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	c := u.credential(name)
	c.inFlight = max(0, c.inFlight-1)
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

// observe records one window of a response. Responses can arrive out of order: within one window, the smallest remaining number is the
// latest.
func (c *credential) observe(name string, quota, state params, now time.Time) {
	remaining, ok := state[paramRemaining]
	reset, timed := state[paramReset]
	if !ok || !timed || remaining < 0 || reset < 0 || reset > maxReset {
		return
	}
	limit := quota[paramQuota]
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
	// sameWindow is the largest difference between two reported ends of the same window, which are in whole seconds.
	sameWindow = 2 * time.Second
	// maxReset is the longest accepted time to a reset, in seconds.
	maxReset = 366 * 24 * 3600
)

// params are the integer parameters of a member of a structured list.
type params map[string]int64

// members parses a structured list whose members are strings or tokens with parameters. It returns nil if lines is not such a list.
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
