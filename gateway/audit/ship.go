package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/tollgate-dev/tollgate/config/files"
)

// Receiver receives audit log lines.
type Receiver interface {
	// Deliver delivers lines in order and returns the number of accepted lines. If it returns no error, all lines were accepted.
	// Lines that were not accepted are delivered again.
	Deliver(ctx context.Context, lines []Line) (taken int, err error)
}

// Shipper delivers the lines of a log to a receiver, each at least once. Its position is stored in a file next to the log, so that
// the next process continues there. A failing receiver delays only its own deliveries. Create a Shipper with Log.Ship.
type Shipper struct {
	log      *Log
	name     string
	receiver Receiver
	logger   *slog.Logger
	written  chan struct{} // receives a value after a line was written

	mu      sync.Mutex // guards the fields below
	at      position   // of the last accepted line
	waiting time.Time  // when the oldest undelivered line was written, or zero
	lost    int64
}

// Backlog describes the part of the log that a receiver has not accepted.
type Backlog struct {
	// Lines is the number of undelivered lines. Lost counts lines whose files were removed before delivery.
	Lines, Lost int64
	// Since is the time when the oldest undelivered line was written, or the zero time. Age is the time since then.
	Since time.Time
	Age   time.Duration
}

const (
	// maxPause limits the time between two attempts, and lookAgain is the interval at which the files are checked.
	maxPause  = time.Minute
	lookAgain = 10 * time.Second
	// lastAttempt limits the delivery after Run's context has ended.
	lastAttempt = 5 * time.Second
)

// Ship returns a Shipper that sends to the given receiver. The name becomes part of a file name. Call Run to start the Shipper.
func (l *Log) Ship(name string, r Receiver, logger *slog.Logger) (*Shipper, error) {
	s := &Shipper{log: l, name: name, receiver: r, logger: logger, written: make(chan struct{}, 1)}
	text, err := files.Read(s.path(), maxLine)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("audit log: %w", err)
	case json.Unmarshal(text, &s.at) != nil:
		logger.Warn("cannot read the audit log shipping position, shipping from the beginning", "file", s.path())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shippers = append(l.shippers, s)
	return s, nil
}

// path returns the file that stores the position.
func (s *Shipper) path() string { return s.log.config.Path + "." + s.name }

// Name returns the name of the receiver.
func (s *Shipper) Name() string { return s.name }

// Backlog returns the current backlog of the receiver.
func (s *Shipper) Backlog() Backlog {
	last := s.log.last()
	s.mu.Lock()
	defer s.mu.Unlock()
	b := Backlog{Lines: max(0, last-s.at.Seq), Lost: s.lost, Since: s.waiting}
	if !b.Since.IsZero() {
		b.Age = s.log.now().Sub(b.Since)
	}
	return b
}

// wake makes Run check for new lines.
func (s *Shipper) wake() {
	select {
	case s.written <- struct{}{}:
	default:
	}
}

// Run delivers lines until ctx ends. It then makes one attempt to deliver the remaining lines.
func (s *Shipper) Run(ctx context.Context) {
	d := &delivery{Shipper: s, from: follower{cfg: s.log.config}}
	defer func() { _ = d.from.close() }() // opened for reading only
	switch known, err := d.from.seek(s.at); {
	case err != nil:
		s.logger.WarnContext(ctx, "cannot read the audit log for shipping", "receiver", s.name, "error", err.Error())
	case !known:
		s.logger.WarnContext(ctx, "audit log does not contain the shipping position", "receiver", s.name, "line", s.at.Seq)
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.MaxInterval = maxPause
	failing := false
	for ctx.Err() == nil {
		pause, written := lookAgain, s.written
		err := d.deliver(ctx)
		switch {
		case err != nil:
			pause, written = min(pauses.NextBackOff(), maxPause), nil // NextBackOff can exceed the maximum by half
			if asked, ok := errors.AsType[*backoff.RetryAfterError](err); ok {
				pause = max(pause, asked.Duration)
			}
			if !failing && ctx.Err() == nil {
				s.logger.WarnContext(ctx, "audit log shipping failed", "receiver", s.name, "error", err.Error())
			}
		case failing:
			s.logger.InfoContext(ctx, "audit log shipping recovered", "receiver", s.name)
			fallthrough
		default:
			pauses.Reset()
		}
		failing = err != nil
		select {
		case <-ctx.Done():
		case <-written:
		case <-time.After(pause):
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAttempt)
	defer cancel()
	if err := d.deliver(last); err != nil && !failing {
		s.logger.WarnContext(ctx, "audit log was not completely shipped at shutdown", "receiver", s.name, "error", err.Error())
	}
}

// delivery is the state of Run.
type delivery struct {
	*Shipper

	from    follower
	pending []Line // read but not accepted
}

// deliver delivers all lines, or stops at the first error.
func (d *delivery) deliver(ctx context.Context) error {
	for {
		if len(d.pending) == 0 {
			var err error
			if d.pending, err = d.from.next(); err != nil || len(d.pending) == 0 {
				d.note(nil)
				return err
			}
			d.note(d.pending)
		}
		n, err := d.receiver.Deliver(ctx, d.pending)
		if n > 0 {
			d.taken(ctx, &d.pending[n-1])
			d.pending = d.pending[n:]
			d.note(d.pending)
		}
		if err != nil {
			return err
		}
	}
}

// note updates the backlog.
func (d *delivery) note(pending []Line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if lost := d.from.lost; lost > d.lost {
		d.logger.Error("audit log lines were removed before they were shipped", "receiver", d.name, "lines", lost-d.lost)
		d.lost = lost
	}
	d.waiting = time.Time{}
	for _, l := range pending {
		if !l.Time.IsZero() {
			d.waiting = l.Time
			return
		}
	}
}

// taken stores the position of a line.
func (s *Shipper) taken(ctx context.Context, l *Line) {
	at := position{l.Seq, sum(l.Text)}
	s.mu.Lock()
	s.at = at
	s.mu.Unlock()
	text, err := json.Marshal(at)
	if err == nil {
		err = files.UnrestrictedTarget(s.path()).Replace(text)
	}
	if err != nil {
		s.logger.WarnContext(ctx, "cannot store the audit log shipping position: lines may be delivered twice",
			"receiver", s.name, "error", err.Error())
	}
}
