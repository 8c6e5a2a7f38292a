package policies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// source follows one organisation's bundle. Its fields are the poller's, under
// Engine.mu.
type source struct {
	cfg      Bundle
	etag     string
	mine     own    // of the last good bundle
	revision string // as its manifest says
	have     bool   // mine is set
	// persisted is the digest of what cfg.Persist holds, as far as known.
	persisted string
	fetched   time.Time
	failures  int
	lastErr   error
	next      time.Time // when to look again
}

// fetched is what one look brought.
type look struct {
	raw       []byte
	etag      string
	unchanged bool
}

// restore takes the persisted bundle, or the file itself, so that the
// organisation can be served at once. A bundle that is only to be had over the
// network leaves the organisation without policies until Run has fetched it.
func (s *source) restore(org string) error {
	kept, revision, err := s.cfg.open(org, s.cfg.Persist)
	if errors.Is(err, os.ErrNotExist) {
		kept, err = own{}, nil // nothing persisted yet
	}
	if s.cfg.File != "" {
		// Beside the file, what was kept only tells which policies there were; one
		// that cannot be read any more tells nothing.
		last := kept
		if kept, revision, err = s.cfg.open(org, s.cfg.File); err == nil {
			err = s.cfg.admit(org, last, kept)
		}
		s.persisted = last.digest
	} else {
		s.persisted = kept.digest
	}
	if err != nil {
		if _, located := errors.AsType[*LoadError](err); !located {
			err = &LoadError{Org: org, Message: "bundle: " + err.Error()}
		}
		return err
	}
	if kept.digest == "" {
		return nil
	}
	if s.cfg.File == "" {
		s.lastErr = s.cfg.admit(org, own{}, kept)
	}
	if s.lastErr == nil { // otherwise it is as if there were none
		s.mine, s.revision, s.have = kept, revision, true
	}
	return nil
}

// open reads a bundle on disk; "" is none.
func (b *Bundle) open(org, file string) (own, string, error) {
	if file == "" {
		return own{}, "", nil
	}
	raw, err := readBundleFile(file)
	if err != nil {
		return own{}, "", err // it names the file
	}
	return b.parse(org, raw)
}

func readBundleFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readBounded(f)
}

func readBounded(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxBundleBytes+1))
	if err == nil && len(raw) > maxBundleBytes {
		err = fmt.Errorf("larger than %d bytes", maxBundleBytes)
	}
	return raw, err
}

// fetch looks at the bundle's place once.
func (b *Bundle) fetch(ctx context.Context, client *http.Client, etag string) (look, error) {
	if b.File != "" {
		raw, err := readBundleFile(b.File)
		return look{raw: raw}, err
	}
	timeout := b.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL, http.NoBody)
	if err != nil {
		return look{}, err
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	if b.TokenFile != "" {
		token, err := os.ReadFile(b.TokenFile)
		if err != nil {
			return look{}, fmt.Errorf("token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := client.Do(req)
	if err != nil {
		return look{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusNotModified:
		return look{unchanged: true}, nil
	case http.StatusOK:
		raw, err := readBounded(resp.Body)
		return look{raw: raw, etag: resp.Header.Get("ETag")}, err
	default:
		return look{}, fmt.Errorf("the bundle server answered %d", resp.StatusCode)
	}
}

// Run follows the bundles of all organisations until the context ends; its
// error is the context's cause. Without bundles it only waits. A bundle that
// cannot be fetched, verified or compiled changes nothing and is seen in
// Status; the first of several in a row is logged.
func (e *Engine) Run(ctx context.Context) error {
	defer e.deps.HTTPClient.CloseIdleConnections()
	for {
		wait := e.pollDue(ctx)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-e.changed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// idle is how long Run waits when there is nothing to follow.
const idle = time.Hour

// polls is how many bundles are looked at in parallel.
const polls = 4

// pollDue looks at every bundle that is due and says when the next is.
func (e *Engine) pollDue(ctx context.Context) time.Duration {
	now := e.deps.Now()
	var looks errgroup.Group
	looks.SetLimit(polls)
	for _, org := range e.bundleOrgs() {
		if _, due := e.nextLook(org, now); due {
			looks.Go(func() error {
				e.poll(ctx, org)
				return nil
			})
		}
	}
	_ = looks.Wait() // no look fails the others
	wait := idle
	now = e.deps.Now()
	for _, org := range e.bundleOrgs() {
		at, _ := e.nextLook(org, now)
		wait = min(wait, max(at.Sub(now), time.Millisecond))
	}
	return wait
}

// poll looks at one bundle, and logs when its looks begin to fail or to succeed.
func (e *Engine) poll(ctx context.Context, org string) {
	before, after := e.look(ctx, org)
	switch {
	case (before == nil) == (after == nil), ctx.Err() != nil:
	case after != nil:
		e.deps.Logger.LogAttrs(ctx, slog.LevelError, "policy bundle not taken, the last good one stays",
			slog.String("org", org), slog.String("fault", after.Error()))
	default:
		e.deps.Logger.LogAttrs(ctx, slog.LevelInfo, "policy bundle taken again", slog.String("org", org))
	}
}

// look looks at one bundle and activates it if it is new and good. It returns
// how the look before went, and this one.
func (e *Engine) look(ctx context.Context, org string) (before, after error) {
	e.mu.Lock()
	s := e.sources[org]
	if s == nil {
		e.mu.Unlock()
		return nil, nil
	}
	cfg, etag, last, section, reloads := s.cfg, s.etag, s.mine, e.configs[org], e.reloads
	e.mu.Unlock()

	got, err := cfg.fetch(ctx, e.deps.HTTPClient, etag)
	var mine own
	var next *orgState
	revision := ""
	if err == nil && !got.unchanged {
		mine, revision, err = cfg.parse(org, got.raw)
	}
	if err == nil && !got.unchanged {
		err = cfg.admit(org, last, mine)
	}
	if err == nil && !got.unchanged && mine.digest != last.digest {
		// Nothing is locked meanwhile: compiling can take as long as the bundle's
		// author likes.
		next, err = e.prepare(ctx, org, section, mine)
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sources[org] != s || e.reloads != reloads { // reloaded meanwhile
		return nil, nil
	}
	before = s.lastErr
	if next != nil {
		e.activate(org, next)
	}
	s.looked(e.deps.Now(), err)
	if err != nil || got.unchanged {
		return before, err
	}
	s.mine, s.revision, s.have, s.etag = mine, revision, true, got.etag
	if cfg.Persist != "" && s.persisted != mine.digest {
		if s.lastErr = persist(cfg.Persist, got.raw); s.lastErr == nil {
			s.persisted = mine.digest
		}
	}
	if e.deps.Changed != nil {
		e.deps.Changed()
	}
	return before, s.lastErr
}

// looked notes how a look went and when the next is due.
func (s *source) looked(now time.Time, err error) {
	s.lastErr = err
	poll := s.cfg.Poll
	if poll == 0 {
		poll = defaultPoll
	}
	if err != nil {
		s.failures = min(s.failures+1, 4)
		poll = min(poll<<(s.failures-1), 10*poll)
	} else {
		s.failures, s.fetched = 0, now
	}
	spread := int64(poll / 5) // a tenth more or less, so that gateways do not march in step
	s.next = now.Add(poll - time.Duration(spread/2) + time.Duration(rand.Int64N(spread+1)))
}

// persist replaces the file at once, so that a crash leaves the old or the new
// bundle.
func persist(file string, raw []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".bundle-*")
	if err != nil {
		return fmt.Errorf("keeping the bundle: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone after the rename
	_, err = tmp.Write(raw)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("keeping the bundle: %w", err)
	}
	return nil
}
