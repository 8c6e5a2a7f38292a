package ledger

import (
	"os"
	"time"
)

// Path returns the path of the journal's file.
func (j *Journal) Path() string { return j.path }

// Fail has the journal write to another file, which fails, until it is replaced.
func (j *Journal) Fail(f *os.File) { j.file = f }

// Keep gives the components a journal.
func (b *Components) Keep(j *Journal) {
	b.Watch.Journal = j
	b.Watch.recover()
}

// Hear sets when the store answered the gateway for the first time, and SetNow its clock.
func (b *Components) Hear(at time.Time)           { b.Watch.heard = at }
func (b *Components) SetNow(now func() time.Time) { b.Watch.Now = now }

// Kicked returns how many organisations wait for a pass.
func (l *Loop) Kicked() int { return len(l.kicks) }

// InHand reports whether this gateway is going to settle a hold.
func (o *Outbox) InHand(org, hold string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of(org).has(hold)
}
