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

// Idle defines the idle resources of an organisation, and the action on them.
// The zero Idle finds nothing.
type Idle struct {
	For       time.Duration `yaml:"for" doc:"how long a running pod must be used less than the bounds, an endpoint with workers have no job, or a sandbox no activity, to be idle; at least 1m and twice spend.reconcile; 0 looks for nothing"`
	GPUBelow  int64         `yaml:"gpu_below" doc:"bound of the use of a pod's busiest GPU; 0 is 5" unit:"percent"`
	CPUBelow  int64         `yaml:"cpu_below" doc:"bound of the use of its processors; 0 is 10" unit:"percent"`
	Forgotten time.Duration `yaml:"forgotten" doc:"how long a pod that pays for storage must be stopped, or a network volume be mounted by nothing, to be idle; 0 is 24h"`
	Action    Action        `yaml:"action" doc:"action on idle resources: list shows them, notify also tells the receiver of alerts, stop also stops pods after notice, but for those that are locked, that have no owner, or whose owner keeps them; empty is list. Nothing is deleted"`
	Notice    time.Duration `yaml:"notice" doc:"minimum time between the delivery of the notice and the stop of a pod; a pod whose notice was not delivered is not stopped; 0 is 15m"`
}

// Action is done to idle resources. The zero Action is ActionList.
type Action string

// The actions, each including those before it.
const (
	ActionList   Action = "list"
	ActionNotify Action = "notify"
	ActionStop   Action = "stop"
)

// Values lists the actions.
func (Action) Values() []string {
	return []string{string(ActionList), string(ActionNotify), string(ActionStop)}
}

const (
	defaultGPUBelow  = 5
	defaultCPUBelow  = 10
	defaultForgotten = 24 * time.Hour
	minIdle          = time.Minute
	// MaxSnooze is how long a resource can be kept at a time.
	MaxSnooze = 30 * 24 * time.Hour
)

// Validate reports every fault, each with its path below the section.
func (i Idle) Validate() error {
	var errs fault.Found
	errs.If(i.For != 0 && i.For < minIdle, "for", "must be at least %s, got %s", minIdle, i.For)
	errs.If(i.For == 0 && i != (Idle{}), "for", "is required beside the other members")
	for name, percent := range map[string]int64{"gpu_below": i.GPUBelow, "cpu_below": i.CPUBelow} {
		errs.If(percent < 0 || percent > 100, name, "must be from 0 to 100")
	}
	for name, d := range map[string]time.Duration{"forgotten": i.Forgotten, "notice": i.Notice} {
		errs.If(d < 0, name, "must not be negative")
	}
	return errors.Join(errs...)
}

// Usage is how much a resource is used, as the platform shows it.
type Usage struct {
	// Stopped is true of a pod that holds no machine.
	Stopped bool
	// SetCreated is true of a running pod that reports its use: GPU is that of its busiest
	// GPU, 0 if it has none, CPU that of its processors; in percent.
	Known    bool
	GPU, CPU int64
	// Uptime is how long ago a pod was last started, by the platform's clock; -1 if the
	// platform does not say.
	Uptime time.Duration
	// Workers is how many workers an endpoint has, Busy how many of them have a job or
	// are being started for one.
	Workers, Busy int64
	// InactiveryOnly is true of a sandbox that was last active more than a minute ago.
	Inactive bool
	// Mounted is true of a network volume that a pod or an endpoint names.
	Mounted bool
	// Burn is the resource's cost as it stands, in micro-dollars per hour.
	Burn int64
}

// Reason says why a resource is idle.
type Reason string

// The reasons.
const (
	// Unused is a running pod whose GPUs and processors are used less than the bounds.
	Unused Reason = "unused"
	// NoJobs is an endpoint that has workers, none of which has a job.
	NoJobs Reason = "no_jobs"
	// Inactive is a sandbox without activity, which its own timeout has not ended yet.
	Inactive Reason = "inactive"
	// Stopped is a stopped pod that pays for storage.
	Stopped Reason = "stopped"
	// Unmounted is a network volume that nothing mounts.
	Unmounted Reason = "unmounted"
)

// reason returns why a resource is idle at this moment, "" if it is not, or if that is
// not known.
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

// works reports whether the resource may work at any time, so that only the observed time without work counts.
func (r Reason) works() bool { return r == Unused || r == NoJobs || r == Inactive }

// after is how long a reason must last.
func (i *Idle) after(r Reason) time.Duration {
	if r.works() {
		return i.For
	}
	return cmp.Or(i.Forgotten, defaultForgotten)
}

// IdleResource is something that costs money and does not work.
type IdleResource struct {
	ID     string    `json:"-"`
	Kind   string    `json:"kind"`
	Name   string    `json:"name,omitempty"`
	Reason Reason    `json:"reason"`
	Since  time.Time `json:"since"` // the first look that found it so
	// Observed is the idle time since then that looks have covered; see [Idle.look].
	Observed time.Duration `json:"observed"`
	Burn     int64         `json:"burn"` // micro-dollars per hour
	// SnoozedUntil is until when its owner keeps it, StopAt when it will be stopped; zero for
	// neither.
	SnoozedUntil time.Time `json:"-"`
	StopAt       time.Time `json:"-"`
}

// sightings are the resources that did not work at the last look, whether for long enough or not.
type sightings struct {
	At   time.Time               `json:"at"`
	Idle map[string]IdleResource `json:"idle"` // by id
}

// look compares the listed resources with the previous look, and returns the idle ones. interval is the regular time
// between two looks. The idle time of pods and endpoints is the observed time alone: a look covers at most one interval
// before it, and after more than two intervals without a look the idle time starts from zero, because the resource may
// have worked meanwhile. It also starts from zero when a pod was started since the previous look.
func (i *Idle) look(before *sightings, found map[string]*PlatformResource, now time.Time, interval time.Duration) sightings {
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

// Keys of Notices for idle resources, beside their alerts.
const (
	idleField  = "idle"
	idlePrefix = "idle:"
	keepPrefix = "keep:"
)

// Snoozer leaves resources alone although they are idle, because their owners say so.
type Snoozer struct {
	// Store is a [Store], or the part of one that a dry run reads.
	Store interface {
		Show(ctx context.Context, org string) (State, error)
		Notice(ctx context.Context, org, name, value string) error
	}
}

// Snooze leaves a resource alone for a time although it is idle, and returns until when;
// 0 ends that. May refuses, with the error that Keep then returns. It returns
// [ErrNoResource] for a resource missing from the ledger.
func (k *Snoozer) Snooze(ctx context.Context, org, id string, length time.Duration, may func(*Record) error) (until time.Time, err error) {
	state, err := k.Store.Show(ctx, org)
	if err != nil {
		return until, err
	}
	i := slices.IndexFunc(state.Resources, func(r Record) bool { return r.ID == id })
	switch {
	case i < 0 && !state.Complete:
		return until, fmt.Errorf("%w: it is being rebuilt", ErrUnavailable)
	case i < 0:
		return until, ErrNoResource
	}
	if err := may(&state.Resources[i]); err != nil {
		return until, err
	}
	value := ""
	if length > 0 {
		until = state.Now.Add(length).Truncate(time.Second).UTC()
		value = until.Format(time.RFC3339)
	}
	return until, k.Store.Notice(ctx, org, keepPrefix+id, value)
}

// List returns the resources that the last look found idle for long enough, and when that was, from
// the organisation's Notices. The zero time means that there was no look.
func (i *Idle) List(noticed map[string]string) (at time.Time, list []IdleResource, err error) {
	var s sightings
	if text := noticed[idleField]; text != "" {
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return at, nil, fmt.Errorf("idle resources: %w", err)
		}
	}
	return s.At, i.list(&s, noticed), nil
}

// SnoozedUntil returns until when resources are kept, by id, out of the notices of an organisation.
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
		r.StopAt, _ = time.Parse(time.RFC3339, noticed[idlePrefix+id]) // any other text says that it was announced
		if kept, err := time.Parse(time.RFC3339, noticed[keepPrefix+id]); err == nil && s.At.Before(kept) {
			r.SnoozedUntil = kept
		}
		list = append(list, r)
	}
	return list
}

// idle brings the idle resources up to date and returns the consequences.
func (p *pass) idle(ctx context.Context, i *Idle, noticed map[string]string) ([]due, error) {
	var before sightings
	_ = json.Unmarshal([]byte(noticed[idleField]), &before) // an unreadable entry is seen anew
	s := i.look(&before, p.found, p.state.Now, p.Interval)
	text, err := json.Marshal(s)
	if err == nil {
		err = p.Store.Notice(ctx, p.org, idleField, string(text))
	}
	if err != nil {
		return nil, err
	}
	var all []due
	told := make(map[string]bool)
	for _, r := range i.list(&s, noticed) {
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
	for name, value := range noticed {
		until, isTime := time.Parse(time.RFC3339, value)
		over := strings.HasPrefix(name, idlePrefix) && !told[name] || strings.HasPrefix(name, keepPrefix) && (isTime != nil || !p.state.Now.Before(until))
		if over {
			all = append(all, due{name: name})
		}
	}
	return all, nil
}
