package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// running is a target that runs by a binary; one that only ratios are taken to has no samples.
type running struct {
	turn
	*instance
	base bool
}

// heat measures turns of one target: their starts and idle connections each by
// itself, and the kinds of requests side by side with the bare proxy.
func (r *runner) heat(ctx context.Context, turns []turn, ks []kind) error {
	var all []running
	defer func() {
		for _, run := range all {
			run.stop()
		}
	}()
	for _, t := range turns {
		if r.left[t.key("")] {
			continue
		}
		i, err := r.started(ctx, t)
		if err != nil {
			if err := r.leave(ctx, t, "", err); err != nil {
				return err
			}
			continue
		}
		all = append(all, running{t, i, false})
		r.report.add(t.sample(lifeKind, map[string]float64{ready: i.took().Seconds()}))
	}
	if len(all) == 0 {
		return nil
	}
	if t := all[0].turn; t.target.name != t.base {
		base, err := choose([]string{t.base}, targets(), func(t target) string { return t.name })
		if err != nil {
			return err
		}
		turn := turn{base[0], binary{}, t.round}
		i, err := r.start(ctx, turn.target, turn.binary)
		if err != nil {
			return err
		}
		all = append(all, running{turn, i, true})
	}
	for _, at := range rand.Perm(len(ks)) {
		if err := r.kind(ctx, all, ks[at], int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// started starts a turn. Before that it starts it for each of the connections that it holds.
func (r *runner) started(ctx context.Context, t turn) (*instance, error) {
	for _, hold := range r.holds(t) {
		i, err := r.start(ctx, t.target, t.binary)
		if err != nil {
			return nil, err
		}
		err = r.hold(ctx, t, i, hold)
		i.stop()
		if err != nil {
			return nil, err
		}
	}
	return r.start(ctx, t.target, t.binary)
}

// lane is a kind of request on its way to a target, and the load that sends it.
type lane struct {
	running
	kind   kind
	load   *sender // nil before it is warm
	before map[string]float64
	values map[string]float64
}

// kind measures one kind of request, a slice of the time after the other in turn for all
// targets that take it: a machine that is slow for a while is slow for them all. The requests of
// a place in the table have numbers of their own.
func (r *runner) kind(ctx context.Context, all []running, k kind, place int64) error {
	lanes, err := r.lanes(ctx, all, k, place)
	defer func() {
		for _, l := range lanes {
			if l.load != nil {
				l.load.stop()
			}
		}
	}()
	if err != nil {
		return err
	}
	const least = 100 * time.Millisecond // a slice of the open load has 30 requests
	slots := max(1, int(r.settings.Time/least))
	if k.live {
		slots = 1
	}
	for range slots {
		for _, at := range rand.Perm(len(lanes)) {
			l := lanes[at]
			if err := r.slice(ctx, l, place, r.settings.Time/time.Duration(slots)); err != nil {
				return r.leave(ctx, l.turn, l.kind.name, fmt.Errorf("%s: %w%s", l.kind.name, err, l.said()))
			}
		}
	}
	var base map[string]float64
	for _, l := range slices.Backward(lanes) { // the bare proxy is the last
		if err := l.sum(ctx); err != nil {
			return err
		}
		if l.target.name == l.target.base {
			base = l.values
		}
		if base != nil {
			l.values[cpuRatio], l.values[perSecondRatio] = l.values[cpu]/base[cpu], l.values[perSecond]/base[perSecond]
		}
		if !l.base {
			r.report.add(l.sample(l.kind.name, l.values))
		}
	}
	return nil
}

// lanes are those of the targets that take a kind, warm unless it is live.
func (r *runner) lanes(ctx context.Context, all []running, k kind, place int64) (lanes []*lane, err error) {
	for _, run := range all {
		if run.base && len(lanes) == 0 {
			break // nobody needs the ratio
		}
		of := k
		if run.base && k.base != k.name {
			bases, err := choose([]string{k.base}, kinds(), func(k kind) string { return k.name })
			if err != nil {
				return lanes, err
			}
			of = bases[0]
		}
		if r.left[run.key(of.name)] || !run.takes(of) {
			continue
		}
		l := &lane{running: run, kind: of}
		if !k.live {
			if err := r.warm(ctx, l, place); err != nil {
				if err := r.leave(ctx, l.turn, of.name, fmt.Errorf("%s: %w%s", of.name, err, l.said())); err != nil {
					return lanes, err
				}
				continue
			}
		}
		lanes = append(lanes, l)
	}
	return lanes, nil
}

// warm starts the load of a lane.
func (r *runner) warm(ctx context.Context, l *lane, place int64) (err error) {
	const numbers = 5_000_000
	k := l.kind
	request := strings.ReplaceAll(k.request, "{pod}", r.platform.Pod)
	if l.lite {
		request = liteRequest(request)
	}
	send := task{
		Addr: l.addr, CA: l.ca, Request: request, Status: k.status, Without: k.without, Live: k.live,
		First: place * numbers, Connections: r.settings.Connections * (1 + l.further), Warm: r.settings.Time / 4,
	}
	if k.open {
		send.Rate = r.settings.Rate
	}
	l.load, err = r.machine.warm(ctx, send)
	return err
}

// slice sends for a time. Streams of events, which come whether or not they are read, are
// open meanwhile alone.
func (r *runner) slice(ctx context.Context, l *lane, place int64, long time.Duration) (err error) {
	if l.load == nil {
		if err := r.warm(ctx, l, place); err != nil {
			return err
		}
	}
	if l.before == nil {
		if l.before, err = l.spent(ctx); err != nil {
			return err
		}
	}
	if err := l.load.send(long); err != nil || !l.kind.live {
		return err
	}
	l.load.stop()
	return nil
}

// sum takes the figures of all slices together.
func (l *lane) sum(ctx context.Context) error {
	after, err := l.spent(ctx)
	if err != nil {
		return err
	}
	loaded, err := l.memory()
	if err != nil {
		return err
	}
	o := l.load.outcome
	l.values = map[string]float64{
		perSecond: float64(o.Requests) / o.Took.Seconds(), loadedMemory: float64(loaded),
		p50: o.Latency.P50.Seconds(), p99: o.Latency.P99.Seconds(), p999: o.Latency.P999.Seconds(),
	}
	if o.Failed > 0 {
		l.values[failed] = float64(o.Failed) / float64(o.Requests)
	}
	for name := range after {
		l.values[name] = (after[name] - l.before[name]) / float64(o.Requests)
	}
	return nil
}
