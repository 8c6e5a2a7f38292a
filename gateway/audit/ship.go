package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/tollgate-dev/tollgate/config/files"
)

// Receiver takes lines.
type Receiver interface {
	// Deliver delivers lines in order and returns how many were taken, all of them without
	// an error. Those that were not come again.
	Deliver(ctx context.Context, lines []Line) (taken int, err error)
}

// Shipper delivers the lines of a log to a receiver, each at least once: where it stands
// is in a file beside the log, so that the next process goes on there. A receiver that
// is away holds up nothing but its own deliveries. Use Log.Ship.
type Shipper struct {
	log      *Log
	name     string
	receiver Receiver
	logger   *slog.Logger
	written  chan struct{} // has something after a line was written

	mu      sync.Mutex // guards what follows
	at      position   // of the last line that was taken
	waiting time.Time  // when the first line that was not was written, zero without one
	lost    int64
}

// Backlog is the part of the log that a receiver has not taken.
type Backlog struct {
	// Lines wait, Lost were in files that are gone.
	Lines, Lost int64
	// Since is when the oldest that waits was written, zero for none, and Age the time since then.
	Since time.Time
	Age   time.Duration
}

const (
	// maxPause bounds the time between two attempts, and lookAgain that between two
	// looks at the files.
	maxPause  = time.Minute
	lookAgain = 10 * time.Second
	// lastAttempt bounds the delivery after the end of Run's context.
	lastAttempt = 5 * time.Second
)

// Ship returns a shipper to a receiver, whose name is part of a file name. Run runs it.
func (l *Log) Ship(name string, r Receiver, logger *slog.Logger) (*Shipper, error) {
	s := &Shipper{log: l, name: name, receiver: r, logger: logger, written: make(chan struct{}, 1)}
	text, err := files.Read(s.path(), maxLine)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("audit log: %w", err)
	case json.Unmarshal(text, &s.at) != nil:
		logger.Warn("where the audit log was shipped to cannot be read: it is shipped from its beginning", "file", s.path())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shippers = append(l.shippers, s)
	return s, nil
}

// path is where the position is kept.
func (s *Shipper) path() string { return s.log.config.Path + "." + s.name }

// Name returns the name of the receiver.
func (s *Shipper) Name() string { return s.name }

// Backlog returns the part that the receiver has not taken.
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

// wake makes Run look for lines.
func (s *Shipper) wake() {
	select {
	case s.written <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends, and then the rest, if the receiver takes it at once.
func (s *Shipper) Run(ctx context.Context) {
	d := &delivery{Shipper: s, from: follower{cfg: s.log.config}}
	defer func() { _ = d.from.close() }() // it was read only
	switch known, err := d.from.seek(s.at); {
	case err != nil:
		s.logger.WarnContext(ctx, "the audit log cannot be read to be shipped", "receiver", s.name, "error", err.Error())
	case !known:
		s.logger.WarnContext(ctx, "the audit log has no line where its shipping stood", "receiver", s.name, "line", s.at.Seq)
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.MaxInterval = maxPause
	failing := false
	for ctx.Err() == nil {
		pause, written := lookAgain, s.written
		err := d.deliver(ctx)
		switch {
		case err != nil:
			pause, written = min(pauses.NextBackOff(), maxPause), nil // it may return half as much again
			if asked, ok := errors.AsType[*backoff.RetryAfterError](err); ok {
				pause = max(pause, asked.Duration)
			}
			if !failing && ctx.Err() == nil {
				s.logger.WarnContext(ctx, "the audit log is not shipped", "receiver", s.name, "error", err.Error())
			}
		case failing:
			s.logger.InfoContext(ctx, "the audit log is shipped again", "receiver", s.name)
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
		s.logger.WarnContext(ctx, "the end of the audit log is not shipped", "receiver", s.name, "error", err.Error())
	}
}

// delivery is the state of Run.
type delivery struct {
	*Shipper

	from    follower
	pending []Line // read, and not taken
}

// deliver delivers all lines, until it fails.
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

// note keeps what Backlog tells of lines that wait.
func (d *delivery) note(pending []Line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if lost := d.from.lost; lost > d.lost {
		d.logger.Error("lines of the audit log were removed before they were shipped", "receiver", d.name, "lines", lost-d.lost)
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

// taken keeps the position of a line.
func (s *Shipper) taken(ctx context.Context, l *Line) {
	at := position{l.Seq, sum(l.Text)}
	s.mu.Lock()
	s.at = at
	s.mu.Unlock()
	if err := replace(s.path(), at); err != nil {
		s.logger.WarnContext(ctx, "where the audit log was shipped to cannot be kept: lines may come twice", "receiver", s.name, "error", err.Error())
	}
}

// replace writes a file as a whole.
func replace(path string, at position) error {
	text, err := json.Marshal(at)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
