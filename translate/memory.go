package translate

import (
	"context"
	"errors"
	"time"
)

// memoryTime is how long one exchange with the store may take. The memory is
// advisory: an answer that is less exact is better than one that is late.
const memoryTime = time.Second

// errStoreDown stands for an exchange that was not tried because one before it
// failed.
var errStoreDown = errors.New("the memory was away a moment ago")

// everyID stands for all records of a kind.
const everyID = ""

// memory is a Dialogue's view of its store: it asks no more after a failed
// read and writes no more after a failed write, so a store that hangs costs a
// request two exchanges at most, however many it would make.
type memory struct {
	unreadable, unwritable bool
	// unread are the records that could not be read, by kind and id.
	unread map[[2]string]bool
}

// readStore runs a read of some records.
func (d *Client) readStore(ctx context.Context, kind string, ids []string, read func(ctx context.Context) error) error {
	d.mu.Lock()
	away := d.memory.unreadable
	d.mu.Unlock()
	err := errStoreDown
	if !away {
		ctx, cancel := context.WithTimeout(ctx, memoryTime)
		defer cancel()
		if err = read(ctx); err == nil {
			return nil
		}
		d.deps.Logger.WarnContext(ctx, "translation memory unreadable", "kind", kind, "error", err)
	}
	d.Warn("memory", "could not be read, what the platform does not tell about "+kind+"s is missing")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.memory.unreadable = true
	if d.memory.unread == nil {
		d.memory.unread = make(map[[2]string]bool)
	}
	for _, id := range ids {
		d.memory.unread[[2]string{kind, id}] = true
	}
	return err
}

// writeStore runs a write that would replace the record with the id, "" when it
// replaces none.
func (d *Client) writeStore(ctx context.Context, kind, id string, write func(ctx context.Context) error) {
	d.mu.Lock()
	unread := id != "" && (d.memory.unread[[2]string{kind, id}] || d.memory.unread[[2]string{kind, everyID}])
	away := d.memory.unwritable || unread
	d.mu.Unlock()
	if !away {
		ctx, cancel := context.WithTimeout(ctx, memoryTime)
		defer cancel()
		err := write(ctx)
		if err == nil {
			return
		}
		d.deps.Logger.WarnContext(ctx, "translation memory not written", "kind", kind, "error", err)
	}
	d.Warn("memory", "could not be written, what the platform does not tell about "+kind+"s may be missing later")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.memory.unwritable = d.memory.unwritable || !unread
}
