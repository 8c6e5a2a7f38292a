package overload

import (
	"cmp"
	"container/list"
	"slices"
	"time"
)

// waiter is a queued request. All fields except priority are guarded by the gate.
type waiter struct {
	priority Priority
	since    time.Time
	org      *org
	// queue is the queue that contains the request, or nil after the wait. Then slot is the slot that the request received, or nil if the
	// request was refused. done is closed when another goroutine ends the wait.
	queue *queue
	place *list.Element
	slot  *Slot
	done  chan struct{}
}

// queue contains the queued requests of one organisation and priority, oldest first.
type queue struct{ list.List }

func (q *queue) oldest() *waiter {
	w, _ := q.Front().Value.(*waiter)
	return w
}

// next returns the oldest request, or the newest once the oldest has waited longer than standing.
func (q *queue) next(now time.Time, standing time.Duration) *waiter {
	if w := q.oldest(); now.Sub(w.since) <= standing {
		return w
	}
	w, _ := q.Back().Value.(*waiter)
	return w
}

// enqueue queues a request, which may be admitted before enqueue returns. If the queue is too long, enqueue refuses one of the queued
// requests. g.mu must be held.
func (g *Gate) enqueue(o *org, w *waiter) {
	if o.idle() {
		g.active++
	}
	if o.waiting == 0 {
		g.queued = append(g.queued, o)
	}
	w.org, w.queue = o, &o.queues[w.priority]
	w.place = w.queue.PushBack(w)
	o.waiting++
	g.waiting++
	g.dispatch()
	if g.waiting > g.limits.Waiting {
		v := g.victim()
		g.withdraw(v)
		g.shed[v.priority][queueFull]++
		close(v.done)
	}
}

// withdraw removes a request from its queue. g.mu must be held.
func (g *Gate) withdraw(w *waiter) {
	o := w.org
	w.queue.Remove(w.place)
	w.queue = nil
	o.waiting--
	g.waiting--
	if o.waiting == 0 {
		i := slices.Index(g.queued, o)
		g.queued = slices.Delete(g.queued, i, i+1)
	}
	g.countIdle(o)
}

// dispatch admits queued requests while slots are free. g.mu must be held.
func (g *Gate) dispatch() {
	for g.waiting > 0 {
		o, p, ok := g.nextTurn()
		if !ok {
			return
		}
		w := o.queues[p].next(time.Now(), g.limits.Wait/2)
		w.slot = g.acquire(o, p)
		g.withdraw(w)
		close(w.done)
	}
}

// nextTurn returns the organisation and priority to serve next. ok is false if no queued request may be admitted. g.mu must be held.
func (g *Gate) nextTurn() (best *org, priority Priority, ok bool) {
	var least rank
	for _, o := range g.queued {
		p, room := g.firstPriority(o)
		if r := g.rank(o, p); room && (!ok || r.before(least)) {
			best, priority, least, ok = o, p, r, true
		}
	}
	return best, priority, ok
}

// firstPriority returns the highest priority of the organisation's queued requests that may be admitted. If no request may be admitted, ok
// is false. g.mu must be held.
func (g *Gate) firstPriority(o *org) (p Priority, ok bool) {
	for _, p := range Priorities() {
		if o.queues[p].Len() > 0 && g.hasRoom(o, p) {
			return p, true
		}
	}
	return 0, false
}

// rank orders organisations with queued requests.
type rank struct {
	atShare  bool // has its equal share already
	priority Priority
	share    float64
}

func (r rank) before(other rank) bool {
	switch {
	case r.atShare != other.atShare:
		return other.atShare
	case r.priority != other.priority:
		return r.priority < other.priority
	default:
		return r.share < other.share
	}
}

// rank ranks an organisation by the larger of its shares of working and open slots (dominant resource fairness). g.mu must be held.
func (g *Gate) rank(o *org, p Priority) rank {
	share := max(float64(o.working)/float64(g.limits.Working), float64(sum(o.open[:]))/float64(g.limits.Open))
	return rank{share*float64(g.active) >= 1, p, share}
}

// victim returns the request to refuse when the queue is full. It takes the organisation with the most queued requests, and among equals
// the one with more slots. g.mu must be held.
func (g *Gate) victim() *waiter {
	most := slices.MaxFunc(g.queued, func(a, b *org) int { return cmp.Or(a.waiting-b.waiting, sum(a.open[:])-sum(b.open[:])) })
	for _, p := range slices.Backward(Priorities()) {
		if most.queues[p].Len() > 0 {
			return most.queues[p].oldest()
		}
	}
	return nil
}
