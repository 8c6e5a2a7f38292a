package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// line is a line of a journal. It records one fact about the ledger of an organisation.
type line struct {
	Org string `json:"org"`
	// Resource belongs to Owned; without Owned, the resource no longer exists.
	Resource string     `json:"resource,omitempty"`
	Owned    *Ownership `json:"owned,omitempty"`
	// Hold is in flight or open. Ended is the ID of a hold that has ended.
	Hold  *Hold  `json:"hold,omitempty"`
	Ended string `json:"ended,omitempty"`
	// Read identifies the ledger state that the snapshot was last read from.
	Read *snapshotRead `json:"read,omitempty"`
	// Seen is the latest position reported by the store.
	Seen *Position `json:"seen,omitempty"`
}

// snapshotRead identifies a state of a ledger, with its time by the store's clock.
type snapshotRead struct {
	Epoch int64     `json:"epoch"`
	At    time.Time `json:"at"`
}

// Position identifies a state of a ledger in a store. Later states have larger positions.
type Position struct {
	Epoch int64 `json:"epoch"`
	Seq   int64 `json:"seq"`
}

// behind reports whether p is an earlier state than other.
func (p Position) behind(other Position) bool {
	return p.Epoch < other.Epoch || p.Epoch == other.Epoch && p.Seq < other.Seq
}

// journalState is the part of a snapshot that a journal stores.
type journalState struct {
	read   snapshotRead
	seen   Position
	owners map[string]Ownership
	holds  map[string]Hold
}

func of(all map[string]*journalState, org string) *journalState {
	if all[org] == nil {
		all[org] = &journalState{owners: make(map[string]Ownership), holds: make(map[string]Hold)}
	}
	return all[org]
}

// apply applies a line to m, and reports whether the line may have changed something.
func (m *journalState) apply(l *line) bool {
	known := true
	switch {
	case l.Owned != nil:
		m.owners[l.Resource] = *l.Owned
	case l.Resource != "":
		_, known = m.owners[l.Resource]
		delete(m.owners, l.Resource)
	case l.Hold != nil:
		m.holds[l.Hold.ID] = *l.Hold
	case l.Ended != "":
		_, known = m.holds[l.Ended]
		delete(m.holds, l.Ended)
	case l.Read != nil:
		m.read = *l.Read
	case l.Seen != nil:
		m.seen = *l.Seen
	}
	return known
}

// changes returns the lines that turn m into image, without the position.
func (m *journalState) changes(org string, image *journalState) (lines []line) {
	for id := range m.owners {
		if _, known := image.owners[id]; !known {
			lines = append(lines, line{Org: org, Resource: id})
		}
	}
	for id, owned := range image.owners {
		if was, known := m.owners[id]; !known || was != owned {
			lines = append(lines, line{Org: org, Resource: id, Owned: &owned})
		}
	}
	for id := range m.holds {
		if _, known := image.holds[id]; !known {
			lines = append(lines, line{Org: org, Ended: id})
		}
	}
	for id, h := range image.holds {
		if was, known := m.holds[id]; !known || was.Open != h.Open || !was.Until.Equal(h.Until) {
			lines = append(lines, line{Org: org, Hold: &h})
		}
	}
	if was := m.read; was.Epoch != image.read.Epoch || !was.At.Equal(image.read.At) {
		lines = append(lines, line{Org: org, Read: &image.read})
	}
	return lines
}

// join merges the state of another gateway. Where the two differ, the state that was read later is used.
func (m *journalState) join(other *journalState) {
	if other.read.At.After(m.read.At) {
		m.read, other.read = other.read, m.read
		m.owners, other.owners = other.owners, m.owners
		m.holds, other.holds = other.holds, m.holds
	}
	for id, owned := range other.owners {
		if _, known := m.owners[id]; !known {
			m.owners[id] = owned
		}
	}
	for id, h := range other.holds {
		if _, known := m.holds[id]; !known {
			m.holds[id] = h
		}
	}
	if m.seen.behind(other.seen) {
		m.seen = other.seen
	}
}

// maxLine is the longest line of a journal, in bytes.
const maxLine = 1 << 20

// readJournal adds the content of a file to all, by organisation, and returns the number of unreadable lines. A file that does not
// exist counts as empty.
func readJournal(path string, all map[string]*journalState) (skipped int, err error) {
	f, err := files.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	read := make(map[string]*journalState)
	in := bufio.NewScanner(f)
	in.Buffer(make([]byte, 0, 4<<10), maxLine)
	for in.Scan() {
		var l line
		if json.Unmarshal(in.Bytes(), &l) != nil || l.Org == "" {
			skipped++
			continue
		}
		of(read, l.Org).apply(&l)
	}
	for org, m := range read {
		of(all, org).join(m)
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return skipped + 1, nil
	}
	return skipped, in.Err()
}

// heldLongest is the maximum age of a hold of an earlier process that is restored. The call of an older hold has ended, and the platform
// lists any resource that the call created.
const heldLongest = 15 * time.Minute

// forgetOld removes the holds of calls that ended long ago, and ledgers that have not been read for longer than owners are kept.
func forgetOld(all map[string]*journalState, now time.Time) {
	for org, m := range all {
		if !m.read.At.IsZero() && now.Sub(m.read.At) > OwnerRetention {
			delete(all, org)
			continue
		}
		for id, h := range m.holds {
			if now.Sub(h.At) > heldLongest && now.After(h.Until) {
				delete(m.holds, id)
			}
		}
	}
}

// recover loads the memory and the positions of earlier processes from the journal.
func (m *Snapshots) recover() {
	if m.Journal == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for org, was := range m.Journal.memory {
		img := m.of(org)
		img.state = State{Epoch: was.read.Epoch, Now: was.read.At}
		for id, owned := range was.owners {
			img.state.Resources = append(img.state.Resources, Record{ID: id, Owner: owned.Owner, Metadata: owned.About})
		}
		img.held = make(map[string]*heldCall, len(was.holds))
		for id, h := range was.holds {
			img.held[id] = &heldCall{Hold: h, recovered: true}
		}
		m.Store.SetPosition(org, was.seen)
	}
}

// record writes a snapshot to the journal. The caller holds the mutex of the Snapshots.
func (m *Snapshots) record(org string, img *snapshot) {
	if m.Journal == nil {
		return
	}
	now := &journalState{read: snapshotRead{img.state.Epoch, img.state.Now}, holds: make(map[string]Hold, len(img.held))}
	for _, h := range img.state.Holds {
		if h.Open && h.journaled() && !slices.Contains(img.ended, h.ID) {
			now.holds[h.ID] = h
		}
	}
	for id, h := range img.held {
		if h.journaled() {
			now.holds[id] = h.Hold
		}
	}
	m.Journal.add(change{line{Org: org}, &snapshotState{now, img.state.Resources, slices.Clone(img.settled)}})
}

// snapshotState is the complete content of a snapshot.
type snapshotState struct {
	partial   *journalState // without owners
	resources []Record
	settled   []outcome
}

// memory returns the state with its owners. It runs outside the lock, because copying thousands of owners would delay calls.
func (k *snapshotState) memory() *journalState {
	k.partial.owners = ownersOf(k.resources, k.settled)
	return k.partial
}

// recordOwner writes the owner of a resource to the journal; nil means that the resource no longer exists.
func (m *Snapshots) recordOwner(org, resource string, owned *Ownership) {
	if resource != "" {
		m.Journal.add(change{line: line{Org: org, Resource: resource, Owned: owned}})
	}
}

// recordHold writes the current state of a hold to the journal; nil means that the hold has ended. The caller holds the mutex of the
// Snapshots.
func (m *Snapshots) recordHold(org, id string, h *heldCall) {
	switch {
	case h == nil:
		m.Journal.add(change{line: line{Org: org, Ended: id}})
	case h.journaled():
		hold := h.Hold
		m.Journal.add(change{line: line{Org: org, Hold: &hold}})
	}
}

// journaled reports whether the journal stores a hold. It does not store the holds of runs, which are numerous and leave no resource.
func (h *Hold) journaled() bool { return h.Kind != string(operation.KindJob) }
