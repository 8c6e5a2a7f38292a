package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/isolate"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// Source follows one organisation's bundle. It may be used from several
// goroutines at once.
type Source struct {
	org string
	cfg Config

	mu       sync.Mutex
	etag     string
	mine     compiler.OrgRego // of the last good bundle
	revision string           // as its manifest says
	have     bool             // mine is set
	// persisted is the digest of what cfg.Persist holds, as far as known.
	persisted string
	fetched   time.Time
	failures  int
	err       error
	next      time.Time // when to look again
}

// Open takes the persisted bundle, or the file itself, so that the organisation
// can be served at once. A bundle that is only to be had over the network leaves
// the source without Rego until it is fetched, and so does a persisted bundle
// that cannot be read or verified any more: Status says why. A bundle whose Rego is not yet
// known to compile ([isolate.ErrCompiling]) is an error.
func Open(org string, cfg Config, admit Admit) (*Source, error) {
	s := &Source{org: org, cfg: cfg}
	kept, revision, err := cfg.open(org, cfg.Persist.Path, admit)
	if errors.Is(err, os.ErrNotExist) {
		kept, err = compiler.OrgRego{}, nil // nothing persisted yet
	} else if err != nil && cfg.File.IsZero() && !errors.Is(err, isolate.ErrCompiling) {
		s.err = &policyconfig.Error{Org: org, File: cfg.Persist.String(), Message: "the persisted bundle cannot be used: " + err.Error()}
		kept, err = compiler.OrgRego{}, nil
	}
	s.persisted = kept.Digest()
	if !cfg.File.IsZero() {
		// Beside the file, the kept bundle only tells which policies there were; one that cannot
		// be read any more tells nothing.
		last := kept
		if kept, revision, err = cfg.open(org, cfg.File, admit); err == nil {
			err = cfg.admit(org, last, kept)
		}
	}
	if err != nil {
		if _, isLocated := errors.AsType[*policyconfig.Error](err); !isLocated {
			err = &policyconfig.Error{Org: org, Path: "bundle", Message: err.Error()}
		}
		return nil, err
	}
	if kept.Digest() == "" {
		return s, nil
	}
	if cfg.File.IsZero() {
		s.err = cfg.admit(org, compiler.OrgRego{}, kept)
	}
	if s.err == nil { // otherwise it is as if there were none
		s.mine, s.revision, s.have = kept, revision, true
	}
	return s, nil
}

// Unfit takes back the persisted bundle that Open found, since its Rego does not
// compile: it counts as none, and Status says why. It returns err if the Rego is not
// of such a bundle.
func (s *Source) Unfit(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.cfg.File.IsZero() || !s.fetched.IsZero() {
		return err
	}
	s.mine, s.revision, s.have = compiler.OrgRego{}, "", false
	s.err = &policyconfig.Error{Org: s.org, File: s.cfg.Persist.String(), Message: "the persisted bundle cannot be used: " + err.Error()}
	return nil
}

// Current returns the Rego of the last good bundle; ok is false when there has
// been none.
func (s *Source) Current() (mine compiler.OrgRego, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mine, s.have
}

// Follows returns the source for a section: s itself if it gets its bundle from the same
// place, with its present one; nil if it does not. s may be nil.
func (s *Source) Follows(cfg Config) *Source {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.have || !samePlace(s.cfg, cfg):
		return nil
	case s.cfg.MayDrop == cfg.MayDrop:
		return s
	default: // a look under way keeps the old one
		return &Source{org: s.org, cfg: cfg, mine: s.mine, revision: s.revision, have: true, persisted: s.persisted, fetched: s.fetched}
	}
}

// samePlace reports whether two sections get their bundle from the same place.
func samePlace(a, b Config) bool {
	var ka, kb policyconfig.BundleKey
	if a.Key != nil {
		ka = *a.Key
	}
	if b.Key != nil {
		kb = *b.Key
	}
	hadKeys := (a.Key == nil) == (b.Key == nil)
	a.Key, b.Key = nil, nil
	a.MayDrop, b.MayDrop = false, false
	return a == b && ka == kb && hadKeys
}

// Found is the result of a look.
type Found struct {
	// Rego is the organisation's, and New whether it is not that of the last good bundle.
	Rego compiler.OrgRego
	New  bool

	look
	revision string
}

// Look fetches the bundle, verifies it and parses it if admit lets it. It changes nothing: see
// Took.
func (s *Source) Look(ctx context.Context, admit Admit) (*Found, error) {
	s.mu.Lock()
	etag, last := s.etag, s.mine
	s.mu.Unlock()
	got, err := s.cfg.fetch(ctx, etag)
	if err != nil || got.unchanged {
		return &Found{Rego: last, look: got}, err
	}
	mine, revision, err := s.cfg.parse(s.org, got.raw, admit)
	if err == nil {
		err = s.cfg.admit(s.org, last, mine)
	}
	return &Found{Rego: mine, New: mine.Digest() != last.Digest(), look: got, revision: revision}, err
}

// Admits returns why s may not take a bundle that another source of the same place found, nil if it may.
func (s *Source) Admits(found *Found) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.admit(s.org, s.mine, found.Rego)
}

// Took ends a look: with err, the found bundle is not in force. It keeps a new bundle and
// sets when to look again. It returns how the look before ended, how this one did, and
// whether the bundle was sent.
func (s *Source) Took(found *Found, err error, now time.Time) (before, after error, sent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.err = s.err, err
	s.wait(now)
	if err != nil || found.unchanged {
		return before, err, false
	}
	s.mine, s.revision, s.have, s.etag = found.Rego, found.revision, true, found.etag
	if !s.cfg.Persist.IsZero() && s.persisted != found.Rego.Digest() {
		if s.err = s.cfg.Persist.Replace(found.raw); s.err == nil {
			s.persisted = found.Rego.Digest()
		} else {
			s.err = fmt.Errorf("keeping the bundle: %w", s.err)
		}
	}
	return before, s.err, true
}

// wait sets when the next look is due.
func (s *Source) wait(now time.Time) {
	poll := cmp.Or(s.cfg.Poll, defaultPoll)
	if s.err != nil {
		s.failures = min(s.failures+1, 4)
		poll = min(poll<<(s.failures-1), 10*poll)
	} else {
		s.failures, s.fetched = 0, now
	}
	spread := int64(poll / 5) // a tenth more or less, so that gateways do not poll in step
	s.next = now.Add(poll - time.Duration(spread/2) + time.Duration(rand.Int64N(spread+1)))
}

// Next is when the next look is due.
func (s *Source) Next() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// Status is how a source is doing.
type Status struct {
	// Revision is the one in the manifest of the last good bundle.
	Revision string
	// Fetched is when the bundle was last seen to be current.
	Fetched time.Time
	// Err is why the last look failed; nil when it did not.
	Err error
}

// Status returns how the source is doing.
func (s *Source) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{Revision: s.revision, Fetched: s.fetched, Err: s.err}
}
