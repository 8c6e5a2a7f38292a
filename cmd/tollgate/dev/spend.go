package dev

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// labelsHeader is the request header with the labels of an endpoint.
const labelsHeader = "X-Tollgate-Labels"

// quote requests the price of a change and prints the price before the change is made. It returns an error if the change would exceed the
// cost limit of the session. If the gateway refuses the label dev, quote retries without the label.
func (s *Session) quote(ctx context.Context, e *Endpoint, method, path string, body map[string]any) (quote, error) {
	header := http.Header{}
	if s.set.User != "" && !s.unlabelled.Load() {
		header.Set(labelsHeader, "dev="+s.set.User)
	}
	q, err := s.gateway.estimate(ctx, method, path, header, body)
	if q.labels != "" && strings.Contains(fmt.Sprint(q.refusal.Detail, err), labelsHeader) {
		if !s.unlabelled.Swap(true) {
			s.say("Label dev omitted: the organisation does not allow it for this key.")
		}
		q, err = s.gateway.estimate(ctx, method, path, http.Header{}, body)
	}
	if err != nil {
		return q, err
	}
	if !q.priced {
		s.say("%s%s: the gateway has no price for this endpoint, with workers %d", livePrefix, e.name(), e.Config.Workers[1])
		return q, s.room(e, q)
	}
	line := []string{fmt.Sprintf("%s%s: at most %.4g USD an hour, %.2f a month, with workers %d",
		livePrefix, e.name(), q.hourly, q.monthly, e.Config.Workers[1])}
	for _, b := range q.budgets {
		if strings.Contains(b.Budget, " per_") {
			line = append(line, fmt.Sprintf("%s then has %.4g of %.4g USD left", b.Budget, max(b.Limit-b.After, 0), b.Limit))
		}
	}
	s.say("%s", strings.Join(line, "; "))
	return q, s.room(e, q)
}

// room returns an error if a change would exceed the cost limit of the session, or if there is a limit and the price of the change is
// unknown.
func (s *Session) room(e *Endpoint, q quote) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	spent, rate := s.spent()
	left := s.set.MaxUSD - spent
	switch {
	case s.set.MaxUSD == 0:
		return nil
	case s.over || left <= 0:
		return s.overError()
	case !q.priced && q.refusal.Status != 0:
		return &q.refusal
	case !q.priced:
		return &refusalError{
			Status: http.StatusPaymentRequired,
			Detail: "--max-usd requires a price, but the price of this endpoint is unknown: nothing was rented",
		}
	}
	if rate += q.hourly - s.rented[e.name()].hourly; rate > 0 {
		lasts := time.Duration(min(left/rate, 1e5) * float64(time.Hour)).Round(time.Second)
		s.say("--max-usd has %.4g of %.4g USD left: %s with every worker running", left, s.set.MaxUSD, lasts)
	}
	return nil
}

// overError returns the error for calls after the cost limit of the session was reached.
func (s *Session) overError() error {
	return &refusalError{
		Status: http.StatusPaymentRequired,
		Detail: fmt.Sprintf("the cost of the session may have reached the %.4g USD of --max-usd: no more endpoints are rented",
			s.set.MaxUSD),
	}
}

// rental is an endpoint of the session with its maximum cost.
type rental struct {
	id     string
	hourly float64
	since  time.Time
}

// rent starts to count the cost of an endpoint.
func (s *Session) rent(name string, entry *Entry) {
	s.giveUp(name)
	s.mu.Lock()
	s.rented[name] = rental{id: entry.ID, hourly: entry.Hourly, since: s.set.Now()}
	s.mu.Unlock()
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// giveUp stops counting the cost of an endpoint.
func (s *Session) giveUp(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.rented[name]; ok {
		s.ended += r.hourly * s.set.Now().Sub(r.since).Hours()
		delete(s.rented, name)
	}
}

// spent returns the maximum cost of the session so far, and its maximum cost per hour. Both assume that every endpoint always runs its
// maximum number of workers.
func (s *Session) spent() (usd, rate float64) {
	usd = s.ended
	for _, r := range s.rented {
		usd += r.hourly * s.set.Now().Sub(r.since).Hours()
		rate += r.hourly
	}
	return usd, rate
}

// removePatience is the time limit for removing an endpoint, and the pause before a retry.
const removePatience = 20 * time.Second

// Guard limits the cost of the session. It computes the maximum that the session's endpoints can have cost so far, and deletes the
// endpoints when this amount reaches [Settings.MaxUSD]. Guard runs until ctx ends, and then returns nil.
func (s *Session) Guard(ctx context.Context) error {
	for {
		s.mu.Lock()
		spent, rate := s.spent()
		s.mu.Unlock()
		wait := 24 * time.Hour
		if left := s.set.MaxUSD - spent; s.set.MaxUSD > 0 && rate > 0 {
			wait = min(wait, max(time.Duration(left/rate*float64(time.Hour)), 0))
		}
		if s.set.MaxUSD > 0 && rate > 0 && wait < time.Millisecond {
			s.mu.Lock()
			s.over = true
			s.mu.Unlock()
			s.say("The cost of the session may have reached the %.4g USD of --max-usd: removing its endpoints.", s.set.MaxUSD)
			wait = removePatience
			if s.RemoveAll(ctx) {
				continue
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.kick:
		case <-time.After(wait):
		}
	}
}

// RemoveAll deletes all endpoints of the session. It returns false if at least one of them could not be deleted.
func (s *Session) RemoveAll(ctx context.Context) bool {
	s.mu.Lock()
	names := slices.Sorted(maps.Keys(s.rented))
	s.mu.Unlock()
	all := true
	for _, name := range names {
		ctx, cancel := context.WithTimeout(ctx, removePatience)
		err := s.Remove(ctx, name)
		cancel()
		if err != nil {
			s.say("%v", err)
			all = false
			continue
		}
		s.say("%s%s removed", livePrefix, name)
	}
	return all
}

// ListRemaining prints the session's endpoints that still exist, with their maximum costs. It prints nothing for an emulator.
func (s *Session) ListRemaining() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set.Emulated {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.rented)) {
		r, cost := s.rented[name], "price unknown"
		if r.hourly > 0 {
			cost = fmt.Sprintf("at most %.4g USD an hour while its workers run", r.hourly)
		}
		s.say("%s%s (%s) still exists: %s.", livePrefix, name, r.id, cost)
	}
	if len(s.rented) > 0 {
		s.say("To remove them, run 'tollgate dev undeploy --all'. To remove endpoints at the end of a session, use 'tollgate dev --rm'.")
	}
}
