package translate

import (
	"context"
	"errors"
	"time"
)

// memoryTime is the timeout of one store operation. A less exact response is better than a late one.
const memoryTime = time.Second

// errStoreDown is the error for a store operation that was skipped because an earlier one failed.
var errStoreDown = errors.New("the store is not called because an earlier call failed")

// everyID is the ID that represents all records of a kind.
const everyID = ""

// memory tracks store failures of a Client. After a failed read it skips further reads, and after a failed write it skips further writes. A
// hanging store thus costs a request at most two timeouts.
type memory struct {
	unreadable, unwritable bool
	// unread holds the records that could not be read, by kind and id.
	unread map[[2]string]bool
}

// readStore runs a read of the given records if the store exists.
func (d *Client) readStore(ctx context.Context, kind string, ids []string, read func(ctx context.Context) error) error {
	if d.deps.Store == nil {
		return nil
	}
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
		d.deps.Logger.WarnContext(ctx, "cannot read the translation store", "kind", kind, "error", err)
	}
	d.Warn("memory", "the store could not be read, so details of "+kind+"s are missing")
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

// writeStore runs a write that replaces the record with the given id, if the store exists and can be written. id is "" if the write
// replaces no record.
func (d *Client) writeStore(ctx context.Context, kind, id string, write func(ctx context.Context) error) {
	d.mu.Lock()
	unread := id != "" && (d.memory.unread[[2]string{kind, id}] || d.memory.unread[[2]string{kind, everyID}])
	away := d.memory.unwritable || unread
	d.mu.Unlock()
	if !away {
		if d.deps.Store == nil || d.deps.StoreIsReadOnly {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, memoryTime)
		defer cancel()
		err := write(ctx)
		if err == nil {
			return
		}
		d.deps.Logger.WarnContext(ctx, "cannot write to the translation store", "kind", kind, "error", err)
	}
	d.Warn("memory", "the store could not be written, so details of "+kind+"s might be missing later")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.memory.unwritable = d.memory.unwritable || !unread
}
