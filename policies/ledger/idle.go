package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Idle defines the idle resources of an organisation and the action on them. The zero Idle disables idle detection.
type Idle struct {
	For       time.Duration `yaml:"for" doc:"time after which an unused resource counts as idle: a running pod with usage below both thresholds, an endpoint with workers but no jobs, or a sandbox without activity. At least 1m and twice spend.reconcile; 0 disables idle detection"`
	GPUBelow  int64         `yaml:"gpu_below" doc:"usage of the busiest GPU below which a pod is unused; default 5" unit:"percent"`
	CPUBelow  int64         `yaml:"cpu_below" doc:"CPU usage below which a pod is unused; default 10" unit:"percent"`
	Forgotten time.Duration `yaml:"forgotten" doc:"time after which a stopped pod with storage cost, or an unmounted network volume, is idle; default 24h"`
	Action    Action        `yaml:"action" doc:"list (default) shows idle resources; notify also sends an alert; stop also stops pods after a notice. Pods that are locked, snoozed or without an owner are not stopped, and nothing is deleted"`
	Notice    time.Duration `yaml:"notice" doc:"minimum time from the notice to the stop of the pod; default 15m. If alerts.webhook is set, a pod is not stopped before its notice is delivered"`
}

// Action is the action on idle resources. The zero Action is ActionList.
type Action string

// Actions on idle resources. Each includes the actions before it.
const (
	ActionList   Action = "list"
	ActionNotify Action = "notify"
	ActionStop   Action = "stop"
)

// Values returns the actions.
func (Action) Values() []string {
	return []string{string(ActionList), string(ActionNotify), string(ActionStop)}
}

const (
	defaultGPUBelow  = 5
	defaultCPUBelow  = 10
	defaultForgotten = 24 * time.Hour
	minIdle          = time.Minute
	// MaxSnooze is the longest duration of a snooze.
	MaxSnooze = 30 * 24 * time.Hour
)

// Validate checks i and joins the errors it finds, each with its path.
func (i Idle) Validate() error {
	var errs fault.Found
	errs.If(i.For != 0 && i.For < minIdle, "for", "must be at least %s, got %s", minIdle, i.For)
	errs.If(i.For == 0 && i != (Idle{}), "for", "is required if any other member is set")
	for name, percent := range map[string]int64{"gpu_below": i.GPUBelow, "cpu_below": i.CPUBelow} {
		errs.If(percent < 0 || percent > 100, name, "must be between 0 and 100")
	}
	for name, d := range map[string]time.Duration{"forgotten": i.Forgotten, "notice": i.Notice} {
		errs.If(d < 0, name, "must not be negative")
	}
	return errors.Join(errs...)
}

// Usage is the current usage of a resource as reported by the platform.
type Usage struct {
	// Stopped is set for a pod that holds no machine.
	Stopped bool
	// Known is set for a running pod that reports its usage. GPU is the usage of the busiest GPU, 0 if the pod has no GPU, and CPU the
	// usage of the processors, both in percent.
	Known    bool
	GPU, CPU int64
	// Uptime is the time since a pod was last started, by the platform's clock; -1 if the platform does not report it.
	Uptime time.Duration
	// Workers is the number of workers of an endpoint. Busy is the number of workers that have a job or are being started for one.
	Workers, Busy int64
	// Inactive is set for a sandbox without activity for more than a minute.
	Inactive bool
	// Mounted is set for a network volume that a pod or an endpoint uses.
	Mounted bool
	// Burn is the current cost of the resource in micro-dollars per hour.
	Burn int64
}

// Reason is why a resource is idle.
type Reason string

// Reasons for being idle.
const (
	// Unused is a running pod whose GPUs and processors are used less than the thresholds.
	Unused Reason = "unused"
	// NoJobs is an endpoint with workers but no jobs.
	NoJobs Reason = "no_jobs"
	// Inactive is a sandbox without activity whose timeout has not ended it yet.
	Inactive Reason = "inactive"
	// Stopped is a stopped pod that still costs storage.
	Stopped Reason = "stopped"
	// Unmounted is a network volume that nothing mounts.
	Unmounted Reason = "unmounted"
)

// reason returns why a resource is idle at this moment. It returns "" if the resource is not idle or if its usage is unknown.
func (i *Idle) reason(f *PlatformResource) Reason {
	u := &f.Use
	switch {
	case f.Kind == operation.KindPod && u.Stopped && u.Burn > 0:
		return Stopped
	case f.Kind == operation.KindPod && u.Known && u.GPU < cmp.Or(i.GPUBelow, defaultGPUBelow) && u.CPU < cmp.Or(i.CPUBelow, defaultCPUBelow):
		return Unused
	case f.Kind == operation.KindEndpoint && u.Workers > 0 && u.Busy == 0:
		return NoJobs
	case f.Kind == operation.KindSandbox && u.Inactive:
		return Inactive
	case f.Kind == operation.KindVolume && !u.Mounted:
		return Unmounted
	}
	return ""
}

// works reports whether the resource may do work between two passes, so that only the observed idle time counts.
func (r Reason) works() bool { return r == Unused || r == NoJobs || r == Inactive }

// after returns how long a reason must persist before the resource is idle.
func (i *Idle) after(r Reason) time.Duration {
	if r.works() {
		return i.For
	}
	return cmp.Or(i.Forgotten, defaultForgotten)
}

// IdleResource is a resource that costs money but does no work.
type IdleResource struct {
	ID     string    `json:"-"`
	Kind   string    `json:"kind"`
	Name   string    `json:"name,omitempty"`
	Reason Reason    `json:"reason"`
	Since  time.Time `json:"since"` // first pass that found the resource without work
	// Observed is the idle time since then that passes have confirmed. For a running resource, each pass adds the time since the previous
	// pass, at most Deps.Interval, so that an outage of the gateway does not make it idle.
	Observed time.Duration `json:"observed"`
	Burn     int64         `json:"burn"` // micro-dollars per hour
	// SnoozedUntil is the end of the snooze, and StopAt the time of the planned stop; zero if not applicable.
	SnoozedUntil time.Time `json:"-"`
	StopAt       time.Time `json:"-"`
}

// sightings are the resources without work in the latest pass, including those not idle for long enough yet.
type sightings struct {
	At   time.Time               `json:"at"`
	Idle map[string]IdleResource `json:"idle"` // by ID
}

// compare compares the listed resources with the previous pass and returns the resources without work. interval is the regular time between
// two passes. For pods, endpoints and sandboxes only observed idle time counts, and each pass observes at most the interval before it.
// After more than two intervals without a pass, the idle time restarts from zero, because the resource may have worked in the meantime. It
// also restarts from zero if a pod was started since the previous pass.
func (i *Idle) compare(before *sightings, found map[string]*PlatformResource, now time.Time, interval time.Duration) sightings {
	next := sightings{At: now, Idle: make(map[string]IdleResource)}
	gap := now.Sub(before.At)
	for id, f := range found {
		reason := i.reason(f)
		if reason == "" {
			continue
		}
		was, works := before.Idle[id], reason.works()
		started := f.Kind == operation.KindPod && f.Use.Uptime >= 0 && f.Use.Uptime < now.Sub(was.Since)
		r := IdleResource{Kind: string(f.Kind), Name: f.Name, Reason: reason, Since: was.Since, Burn: f.Use.Burn}
		switch {
		case was.Reason != reason || started || works && gap > 2*interval:
			r.Since = now
		case works:
			r.Observed = was.Observed + max(0, min(gap, interval))
		default:
			r.Observed = now.Sub(r.Since)
		}
		next.Idle[id] = r
	}
	return next
}

// Keys for idle resources in the NoticeStore, next to the keys of alerts.
const (
	idleField  = "idle"
	idlePrefix = "idle:"
	keepPrefix = "keep:"
)

// Snoozer suppresses the idle handling of resources at the request of their owners.
type Snoozer struct {
	// Store is a [Store], or the read-only part of one in a dry run.
	Store interface {
		Show(ctx context.Context, org string) (State, error)
		Notice(ctx context.Context, org, name, value string) error
	}
}

// Snooze suppresses the idle handling of a resource for the given time and returns when the snooze ends. A length of 0 ends an existing
// snooze. Snooze first calls check with the record of the resource; if check returns an error, Snooze changes nothing and returns
// the error. It returns [ErrNoResource] if the resource is not in the ledger.
func (k *Snoozer) Snooze(ctx context.Context, org, id string, length time.Duration, check func(*Record) error) (end time.Time, err error) {
	state, err := k.Store.Show(ctx, org)
	if err != nil {
		return end, err
	}
	i := slices.IndexFunc(state.Resources, func(r Record) bool { return r.ID == id })
	switch {
	case i < 0 && !state.Complete:
		return end, fmt.Errorf("%w: the ledger is being rebuilt", ErrUnavailable)
	case i < 0:
		return end, ErrNoResource
	}
	if err := check(&state.Resources[i]); err != nil {
		return end, err
	}
	value := ""
	if length > 0 {
		end = state.Now.Add(length).Truncate(time.Second).UTC()
		value = end.Format(time.RFC3339)
	}
	return end, k.Store.Notice(ctx, org, keepPrefix+id, value)
}

// List returns the idle resources and the time of the latest pass. noticed contains the organisation's values in the NoticeStore. The time
// is zero if there was no pass.
func (i *Idle) List(noticed map[string]string) (at time.Time, list []IdleResource, err error) {
	var s sightings
	if text := noticed[idleField]; text != "" {
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return at, nil, fmt.Errorf("idle resources: %w", err)
		}
	}
	return s.At, i.list(&s, noticed), nil
}

// SnoozedUntil returns the end of each snooze, by resource ID. noticed contains an organisation's values in the NoticeStore.
func SnoozedUntil(noticed map[string]string) map[string]time.Time {
	out := make(map[string]time.Time)
	for name, text := range noticed {
		id, is := strings.CutPrefix(name, keepPrefix)
		if until, err := time.Parse(time.RFC3339, text); is && err == nil {
			out[id] = until
		}
	}
	return out
}

func (i *Idle) list(s *sightings, noticed map[string]string) (list []IdleResource) {
	for _, id := range slices.Sorted(maps.Keys(s.Idle)) {
		r := s.Idle[id]
		if r.Observed < i.after(r.Reason) {
			continue
		}
		r.ID = id
		r.StopAt, _ = time.Parse(time.RFC3339, noticed[idlePrefix+id]) // any other value means that the stop was announced
		if kept, err := time.Parse(time.RFC3339, noticed[keepPrefix+id]); err == nil && s.At.Before(kept) {
			r.SnoozedUntil = kept
		}
		list = append(list, r)
	}
	return list
}

// idle updates the idle resources and returns the resulting actions.
func (p *pass) idle(ctx context.Context, i *Idle) ([]due, error) {
	if p.noticed[idleField] == "" { // the first pass, or the values were lost
		restored, err := p.images.restoreSnoozes(ctx, p.org, p.noticed)
		if err != nil {
			return nil, err
		}
		maps.Copy(p.noticed, restored)
	}
	p.images.rememberSnoozes(p.org, p.noticed)
	var before sightings
	_ = json.Unmarshal([]byte(p.noticed[idleField]), &before) // an unreadable value counts as no previous pass
	s := i.compare(&before, p.found, p.state.Now, p.Interval)
	text, err := json.Marshal(s)
	if err == nil {
		err = p.notice(ctx, idleField, string(text))
	}
	if err != nil {
		return nil, err
	}
	var all []due
	told := make(map[string]bool)
	for _, r := range i.list(&s, p.noticed) {
		if i.Action == ActionNotify || i.Action == ActionStop {
			told[idlePrefix+r.ID] = r.SnoozedUntil.IsZero()
		}
		if !told[idlePrefix+r.ID] {
			continue
		}
		d := due{Cause: Cause{Org: p.org, Idle: &r}, name: idlePrefix + r.ID}
		known := p.records[r.ID]
		if i.Action == ActionStop && r.Reason == Unused && p.found[r.ID].Stoppable && known != nil && known.Owner != (Owner{}) {
			d.notice, d.pods = cmp.Or(i.Notice, defaultNotice), []*Record{known}
		}
		all = append(all, d)
	}
	for name, value := range p.noticed {
		until, isTime := time.Parse(time.RFC3339, value)
		over := strings.HasPrefix(name, idlePrefix) && !told[name] || strings.HasPrefix(name, keepPrefix) &&
			(isTime != nil || !p.state.Now.Before(until))
		if over {
			all = append(all, due{name: name})
		}
	}
	return all, nil
}
