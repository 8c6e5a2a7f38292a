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
	// syncPause is how long written changes may stay in the memory of the system, and the time between two attempts to replace a file
	// that could not be written.
	syncPause = time.Second
	// maxChanges bounds the number of changes that wait for a disk that does not respond.
	maxChanges = 100_000
	// journalSlack is by how many bytes a file may be larger than twice its content before it is replaced.
	journalSlack = 1 << 20
	// maxJournal bounds the content of a file, in bytes: about 200,000 resources.
	maxJournal = 64 << 20
	// maxJournals bounds the number of journals in one directory.
	maxJournals = 64
)

// Journal keeps this gateway's memory of ledgers in a file, for its next start: the owners of resources, and the reservations of its
// own calls that create or change resources. Calls never wait for the disk: they queue their changes. Run writes queued changes at once,
// so that only those of the last moment are lost with the process, and syncs them within a second. When the file cannot be written, Run
// replaces it by the whole memory as soon as the disk permits.
//
// Each line of the file is a JSON object, see [line]. Lines that cannot be read are skipped. Gateways can share a directory: each
// locks a file of its own, and a gateway that starts takes over all files that are not locked.
//
// A nil Journal keeps nothing. A Journal is safe for concurrent use.
type Journal struct {
	store  RecoveryStore
	logger *slog.Logger
	wake   chan struct{}
	// broken says that the file lacks changes.
	broken atomic.Bool

	mu      sync.Mutex // guards queue and dropped
	queue   []change
	dropped int

	// Run alone uses the fields below, once OpenJournal has returned.
	memory map[string]*journalState // by organisation
	path   string
	file   *os.File
	// size is the size of the file, and least its size when it was replaced last.
	size, least int64
	// locks are the locks of the file and of former, the files that were taken over and are in memory.
	locks  []*os.File
	former []string
	// unsynced says that the disk may lack changes that are in the file.
	unsynced bool
}

// change is a change of the memory: one line, or everything that an organisation's image knows.
type change struct {
	line

	image *snapshotState
}

// OpenJournal opens a journal in a directory, which it creates, with the memory of all journals of that name that no gateway has
// locked. Store has the ledgers.
func OpenJournal(dir, name string, store RecoveryStore, logger *slog.Logger) (*Journal, error) {
	j := &Journal{store: store, logger: logger, wake: make(chan struct{}, 1), memory: make(map[string]*journalState)}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for n := range maxJournals {
		if err := j.take(filepath.Join(dir, fmt.Sprintf("%s-%d", name, n))); err != nil {
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

// take locks and reads a journal unless another gateway has locked it. The first journal becomes that of this gateway, others are read
// if they exist.
func (j *Journal) take(stem string) error {
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
		j.logger.Warn("lines of a journal of owners cannot be read", "file", path, "lines", skipped)
	}
	if j.path == "" {
		j.path = path
	} else {
		j.former = append(j.former, path)
	}
	return nil
}

// Broken reports whether the file lacks changes because it could not be written.
func (j *Journal) Broken() bool { return j.broken.Load() }

// Close releases the file for the next gateway. Changes are written by Run, which has ended.
func (j *Journal) Close() {
	if j == nil {
		return
	}
	if j.file != nil {
		_ = j.file.Close() // Run has synced it
	}
	for _, lock := range j.locks {
		_ = lock.Close() // it has no content
	}
}

// add queues a change. When the disk has not responded for so long that the queue is full, it drops the change: the next image of
// the organisation has it.
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
	default: // Run is awake
	}
}

// Run writes changes until ctx ends, and then the rest of them.
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
		j.logger.Error("journal of owners has dropped changes: the disk did not respond", "file", j.path, "count", dropped)
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

// sync has the disk take what was written, or replaces a file that lacks changes.
func (j *Journal) sync() {
	switch {
	case j.Broken():
		j.done(j.replace())
	case j.unsynced:
		j.unsynced = false
		j.done(j.file.Sync())
	}
}

// done notes the outcome of a write, and logs the first failure and the end of failures.
func (j *Journal) done(err error) {
	switch was := j.broken.Swap(err != nil); {
	case err != nil && !was:
		j.logger.Error("journal of owners cannot be written; calls go on, but owners are lost if Redis and all gateways are lost together",
			"file", j.path, "error", err.Error())
	case err == nil && was:
		j.logger.Info("journal of owners is written again", "file", j.path)
	}
}

// replace writes the whole memory into a new file, and removes the files that were taken over.
func (j *Journal) replace() error {
	var text bytes.Buffer
	for org, m := range j.memory {
		now := journalState{owners: make(map[string]Ownership), holds: make(map[string]Hold)}
		now.write(&text, now.changes(org, m)...)
		now.write(&text, line{Org: org, Seen: &m.seen})
	}
	if text.Len() > maxJournal {
		return fmt.Errorf("%w: %d bytes of owners, at most %d are kept", files.ErrTooLarge, text.Len(), maxJournal)
	}
	if err := files.UnrestrictedTarget(j.path).Replace(text.Bytes()); err != nil {
		return err
	}
	file, err := files.Append(j.path)
	if err != nil {
		return err
	}
	if j.file != nil {
		_ = j.file.Close() // another file has its name
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

// write applies lines to m, and appends those that change something to text.
func (m *journalState) write(text *bytes.Buffer, lines ...line) {
	out := json.NewEncoder(text)
	for i := range lines {
		if !m.apply(&lines[i]) {
			continue
		}
		_ = out.Encode(&lines[i]) // a buffer takes everything, and a line has no value that JSON cannot express
	}
}
