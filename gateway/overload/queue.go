package overload

import (
	"cmp"
	"container/list"
	"slices"
	"time"
)

// waiter is a request that waits. All but its priority is guarded by the gate.
type waiter struct {
	priority Priority
	since    time.Time
	org      *org
	// queue is where it waits, nil when that is over; slot is the slot it got then, nil
	// if it was shed. done is closed when it is over by another's doing.
	queue *queue
	place *list.Element
	slot  *Slot
	done  chan struct{}
}

// queue holds waiting requests of one organisation and priority, oldest first.
type queue struct{ list.List }

func (q *queue) oldest() *waiter {
	w, _ := q.Front().Value.(*waiter)
	return w
}

// next returns whose turn it is: the oldest one's, or the newest one's once the
// oldest has waited for longer than standing.
func (q *queue) next(now time.Time, standing time.Duration) *waiter {
	if w := q.oldest(); now.Sub(w.since) <= standing {
		return w
	}
	w, _ := q.Back().Value.(*waiter)
	return w
}

// enqueue has a request wait, and another shed if too many do. It may be admitted
// when enqueue returns. g.mu is held.
func (g *Gate) enqueue(o *org, w *waiter) {
	if o.open+o.waiting == 0 {
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
		g.shed[v.priority][QueueFull]++
		close(v.done)
	}
}

// withdraw ends the waiting of a request. g.mu is held.
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

// dispatch admits requests that wait, as long as there is room. g.mu is held.
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

// nextTurn returns the organisation and the priority whose turn it is; ok is false when
// there is no room for any. g.mu is held.
func (g *Gate) nextTurn() (best *org, priority Priority, ok bool) {
	var least rank
	for _, o := range g.queued {
		p := o.firstPriority()
		if !g.hasRoom(p) {
			continue
		}
		if r := g.rank(o, p); !ok || r.before(least) {
			best, priority, least, ok = o, p, r, true
		}
	}
	return best, priority, ok
}

// firstPriority returns the first priority in which an organisation has a request waiting.
func (o *org) firstPriority() Priority {
	for p := range o.queues {
		if o.queues[p].Len() > 0 {
			return Priority(p)
		}
	}
	return priorities
}

// rank is the order of organisations whose requests wait.
type rank struct {
	atShare  bool // it has its part already
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

// rank places an organisation by its share of that of both bounds of which it has
// most (dominant resource fairness). Its part is an equal one. g.mu is held.
func (g *Gate) rank(o *org, p Priority) rank {
	share := max(float64(o.working)/float64(g.limits.Working), float64(o.open)/float64(g.limits.Open))
	return rank{share*float64(g.active) >= 1, p, share}
}

// victim returns the request that is shed when too many wait: of organisations that
// have as many in the queue, one of that which has more slots. g.mu is held.
func (g *Gate) victim() *waiter {
	most := slices.MaxFunc(g.queued, func(a, b *org) int { return cmp.Or(a.waiting-b.waiting, a.open-b.open) })
	for _, p := range slices.Backward(Priorities()) {
		if most.queues[p].Len() > 0 {
			return most.queues[p].oldest()
		}
	}
	return nil
}
