package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/config/files"
)

const (
	// syncPause is the longest time that written changes remain unsynced, and the interval between attempts to replace a file that could
	// not be written.
	syncPause = time.Second
	// maxChanges limits the number of changes that wait for a disk that does not respond.
	maxChanges = 100_000
	// journalSlack is the number of bytes that a file may have in addition to twice its content before it is replaced.
	journalSlack = 1 << 20
	// maxJournal limits the content of a file, in bytes: about 200,000 resources.
	maxJournal = 64 << 20
	// maxJournals limits the number of journals in one directory.
	maxJournals = 64
)

// Journal stores this gateway's memory of ledgers in a file for its next start: the owners of resources, and the reservations of its
// own calls that create or change resources. Calls never wait for the disk: they queue their changes. Run writes queued changes at once
// and syncs them within a second, so that only the latest changes are lost with the process. If the file cannot be written, Run
// replaces it with the whole memory as soon as the disk permits.
//
// Each line of the file is a JSON object. Unreadable lines are skipped. Gateways can share a directory: each gateway locks its own file,
// and a starting gateway takes over all files that are not locked.
//
// A nil Journal stores nothing. A Journal is safe for concurrent use.
type Journal struct {
	store  RecoveryStore
	logger *slog.Logger
	wake   chan struct{}
	// broken is set if changes are missing from the file.
	broken atomic.Bool

	mu      sync.Mutex // guards queue and dropped
	queue   []change
	dropped int

	// The fields below belong to Run once OpenJournal has returned.
	memory map[string]*journalState // by organisation
	path   string
	file   *os.File
	// size is the current size of the file in bytes. least is its size when it was last replaced.
	size, least int64
	// locks are the locks of the file and of former, the files that were taken over and whose content is in memory.
	locks  []*os.File
	former []string
	// unsynced is set if changes in the file may be missing on the disk.
	unsynced bool
}

// change is a change of the memory: one line, or the whole snapshot of an organisation.
type change struct {
	line

	image *snapshotState
}

// OpenJournal opens the journal of this gateway in dir, and creates dir if needed. It loads the content of all journals in dir with the
// given name that no other gateway has locked. store is the store of the ledgers.
func OpenJournal(dir, name string, store RecoveryStore, logger *slog.Logger) (*Journal, error) {
	j := &Journal{store: store, logger: logger, wake: make(chan struct{}, 1), memory: make(map[string]*journalState)}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for n := range maxJournals {
		if err := j.load(filepath.Join(dir, fmt.Sprintf("%s-%d", name, n))); err != nil {
			j.Close()
			return nil, err
		}
	}
	if j.path == "" {
		return nil, fmt.Errorf("state directory %s: all %d journals are locked", dir, maxJournals)
	}
	forgetOld(j.memory, time.Now())
	j.done(j.replace())
	return j, nil
}

// load locks and reads a journal unless another gateway has locked it. The first journal becomes the journal of this gateway; the
// others are read if they exist.
func (j *Journal) load(stem string) error {
	path := stem + ".jsonl"
	if _, err := os.Stat(path); j.path != "" && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := files.Lock(stem + ".lock")
	if errors.Is(err, files.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	j.locks = append(j.locks, lock)
	skipped, err := readJournal(path, j.memory)
	if err != nil {
		return err
	}
	if skipped > 0 {
		j.logger.Warn("skipped unreadable lines in the owner journal", "file", path, "lines", skipped)
	}
	if j.path == "" {
		j.path = path
	} else {
		j.former = append(j.former, path)
	}
	return nil
}

// Broken reports whether changes are missing from the file because it could not be written.
func (j *Journal) Broken() bool { return j.broken.Load() }

// Close releases the file for the next gateway. It must be called after Run has returned, because Run writes the changes.
func (j *Journal) Close() {
	if j == nil {
		return
	}
	if j.file != nil {
		_ = j.file.Close() // synced by Run
	}
	for _, lock := range j.locks {
		_ = lock.Close() // lock files have no content
	}
}

// add queues a change. If the disk has been unresponsive for so long that the queue is full, add drops the change; the next snapshot of
// the organisation contains it.
func (j *Journal) add(c change) {
	if j == nil {
		return
	}
	j.mu.Lock()
	if len(j.queue) < maxChanges {
		j.queue = append(j.queue, c)
	} else {
		j.dropped++
	}
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default: // Run has been woken already
	}
}

// Run writes changes until ctx is done, and then the remaining ones.
func (j *Journal) Run(ctx context.Context) error {
	if j == nil {
		return nil
	}
	sync := time.NewTimer(syncPause)
	defer sync.Stop()
	for {
		select {
		case <-j.wake:
			if idle := !j.Broken() && !j.unsynced; idle {
				sync.Reset(syncPause)
			}
			j.flush()
		case <-sync.C:
			j.sync()
			if j.Broken() {
				sync.Reset(syncPause)
			}
		case <-ctx.Done():
			j.flush()
			j.sync()
			return ctx.Err()
		}
	}
}

// flush writes the queued changes.
func (j *Journal) flush() {
	j.mu.Lock()
	queue, dropped := j.queue, j.dropped
	j.queue, j.dropped = nil, 0
	j.mu.Unlock()
	if dropped > 0 {
		j.logger.Error("owner journal dropped changes because the disk did not respond", "file", j.path, "count", dropped)
	}
	var text bytes.Buffer
	changed := make(map[string]*journalState)
	for i := range queue {
		c := &queue[i]
		m := of(j.memory, c.Org)
		changed[c.Org] = m
		lines := []line{c.line}
		if c.image != nil {
			lines = m.changes(c.Org, c.image.memory())
		}
		m.write(&text, lines...)
	}
	for org, m := range changed {
		if p := j.store.Position(org); p != m.seen {
			m.write(&text, line{Org: org, Seen: &p})
		}
	}
	switch {
	case text.Len() == 0, j.Broken(): // sync replaces a broken file
	case j.size+int64(text.Len()) > 2*j.least+journalSlack:
		j.done(j.replace())
	default:
		n, err := j.file.Write(text.Bytes())
		j.size += int64(n)
		j.unsynced = true
		j.done(err)
	}
}

// sync syncs the written changes to disk, or replaces a file with missing changes.
func (j *Journal) sync() {
	switch {
	case j.Broken():
		j.done(j.replace())
	case j.unsynced:
		j.unsynced = false
		j.done(j.file.Sync())
	}
}

// done handles the result of a write. It logs the first failure, and the first success after failures.
func (j *Journal) done(err error) {
	switch was := j.broken.Swap(err != nil); {
	case err != nil && !was:
		j.logger.Error("cannot write the owner journal: owners are lost if Redis and all gateways fail at the same time",
			"file", j.path, "error", err.Error())
	case err == nil && was:
		j.logger.Info("owner journal is writable again", "file", j.path)
	}
}

// replace writes the whole memory to a new file and removes the files that were taken over.
func (j *Journal) replace() error {
	var text bytes.Buffer
	for org, m := range j.memory {
		now := journalState{owners: make(map[string]Ownership), holds: make(map[string]Hold)}
		now.write(&text, now.changes(org, m)...)
		now.write(&text, line{Org: org, Seen: &m.seen})
	}
	if text.Len() > maxJournal {
		return fmt.Errorf("%w: the owner records take %d bytes, but the limit is %d", files.ErrTooLarge, text.Len(), maxJournal)
	}
	if err := files.UnrestrictedTarget(j.path).Replace(text.Bytes()); err != nil {
		return err
	}
	file, err := files.Append(j.path)
	if err != nil {
		return err
	}
	if j.file != nil {
		_ = j.file.Close() // the new file has its name now
	}
	j.file, j.unsynced = file, false
	j.size, j.least = int64(text.Len()), int64(text.Len())
	for _, path := range j.former {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	j.former = nil
	return nil
}

// write applies lines to m and appends those that change something to text.
func (m *journalState) write(text *bytes.Buffer, lines ...line) {
	out := json.NewEncoder(text)
	for i := range lines {
		if !m.apply(&lines[i]) {
			continue
		}
		_ = out.Encode(&lines[i]) // writing to a buffer cannot fail, and every value of a line can be encoded
	}
}
