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

// Source polls the bundle of one organisation. It is safe for concurrent use.
type Source struct {
	org string
	cfg Config

	mu       sync.Mutex
	etag     string
	mine     compiler.OrgRego // Rego of the last valid bundle; the zero value if no valid bundle has been found yet
	revision string           // revision in its manifest
	// persisted is the digest of the file cfg.Persist, as far as known.
	persisted string
	fetched   time.Time
	failures  int
	err       error
	next      time.Time // when to poll again
}

// Open checks the verification key, and reads the persisted bundle, or the bundle file, so that the organisation can be served
// immediately. The source has no Rego if the bundle must be downloaded first, or if the persisted bundle cannot be read or verified; Status
// returns the reason. If the Rego has not been compiled yet, Open returns an error that wraps [isolate.ErrCompiling].
func Open(org string, cfg Config, admit Admit) (*Source, error) {
	if err := cfg.checkKey(org); err != nil {
		return nil, err
	}
	s := &Source{org: org, cfg: cfg}
	kept, revision, err := cfg.open(org, cfg.Persist.Path, admit)
	if errors.Is(err, os.ErrNotExist) {
		kept, err = compiler.OrgRego{}, nil // nothing has been persisted yet
	} else if err != nil && cfg.File.IsZero() && !errors.Is(err, isolate.ErrCompiling) {
		s.err = &policyconfig.Error{Org: org, File: cfg.Persist.String(), Message: "cannot use the persisted bundle: " + err.Error()}
		kept, err = compiler.OrgRego{}, nil
	}
	s.persisted = kept.Digest()
	if !cfg.File.IsZero() {
		// If there is a bundle file, the persisted bundle is only used to detect dropped policies. If it cannot be read, that check
		// is skipped.
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
	if s.err == nil { // otherwise treat it as missing
		s.mine, s.revision = kept, revision
	}
	return s, nil
}

// Discard removes the Rego of the persisted bundle from s. Call it if this Rego does not compile; err is the compiler's error, which Status
// returns afterwards. If the Rego of s is from a file or was fetched, Discard leaves s unchanged and returns err.
func (s *Source) Discard(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.cfg.File.IsZero() || !s.fetched.IsZero() {
		return err
	}
	s.mine, s.revision = compiler.OrgRego{}, ""
	s.err = &policyconfig.Error{Org: s.org, File: s.cfg.Persist.String(), Message: "cannot use the persisted bundle: " + err.Error()}
	return nil
}

// Current returns the Rego of the last valid bundle, or the zero value if no valid bundle has been found yet.
func (s *Source) Current() compiler.OrgRego {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mine
}

// Matches reports whether s has a valid bundle and cfg has the same location and key as s.
func (s *Source) Matches(cfg Config) bool {
	return s.Current().Digest() != "" && sameSource(s.cfg, cfg)
}

// sameSource reports whether two configurations have the same location and key. They may still differ in MayDrop.
func sameSource(a, b Config) bool {
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

// Found is the result of a poll.
type Found struct {
	// Rego is the organisation's Rego. New reports whether it differs from the Rego of the last valid bundle.
	Rego compiler.OrgRego
	New  bool

	download
	revision string
}

// Poll fetches and verifies the bundle, and parses it if admit permits. Poll does not change s. The caller must pass the results to
// FinishPoll.
func (s *Source) Poll(ctx context.Context, admit Admit) (*Found, error) {
	s.mu.Lock()
	etag, last := s.etag, s.mine
	s.mu.Unlock()
	got, err := s.cfg.fetch(ctx, etag)
	if err != nil || got.unchanged {
		return &Found{Rego: last, download: got}, err
	}
	mine, revision, err := s.cfg.parse(s.org, got.raw, admit)
	if err == nil {
		err = s.cfg.admit(s.org, last, mine)
	}
	return &Found{Rego: mine, New: mine.Digest() != last.Digest(), download: got, revision: revision}, err
}

// Admits returns an error if s must not use a bundle that another source with the same location has found.
func (s *Source) Admits(found *Found) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.admit(s.org, s.mine, found.Rego)
}

// FinishPoll ends a poll. A non-nil err means that the bundle was not put in force. If err is nil, FinishPoll persists the bundle if it is
// new. In both cases it schedules the next poll. FinishPoll returns the error of the previous poll and the error of this poll, and reports
// whether the server sent the bundle.
func (s *Source) FinishPoll(found *Found, err error, now time.Time) (before, after error, sent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.err = s.err, err
	s.wait(now)
	if err != nil || found.unchanged {
		return before, err, false
	}
	s.mine, s.revision, s.etag = found.Rego, found.revision, found.etag
	if !s.cfg.Persist.IsZero() && s.persisted != found.Rego.Digest() {
		if s.err = s.cfg.Persist.Replace(found.raw); s.err == nil {
			s.persisted = found.Rego.Digest()
		} else {
			s.err = fmt.Errorf("persist bundle: %w", s.err)
		}
	}
	return before, s.err, true
}

// wait schedules the next poll.
func (s *Source) wait(now time.Time) {
	poll := cmp.Or(s.cfg.Poll, defaultPoll)
	if s.err != nil {
		s.failures = min(s.failures+1, 4)
		poll = min(poll<<(s.failures-1), 10*poll)
	} else {
		s.failures, s.fetched = 0, now
	}
	spread := int64(poll / 5) // vary by up to 10%, so that gateways do not poll at the same time
	s.next = now.Add(poll - time.Duration(spread/2) + time.Duration(rand.Int64N(spread+1)))
}

// Next returns when the next poll is due.
func (s *Source) Next() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// Status returns the revision in the manifest of the last valid bundle, the time when the bundle was last confirmed to be current, and the
// error of the last poll, or nil.
func (s *Source) Status() (revision string, fetched time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision, s.fetched, s.err
}
