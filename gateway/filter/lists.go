package filter

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// The memory needed for a list, as a multiple of its length in bytes. translatedSize applies to lists that are decoded: for 20,000 pods,
// the text takes 11 MB, the decoded values 32 MB, and the response built from them up to 36 MB. joinedSize applies to lists sent unchanged,
// for which the pages and the joined list are in memory.
const (
	translatedSize = 7
	joinedSize     = 2
)

// limitListMemory makes the exchange wait for memory before it reads a list for a v2 caller.
func (ex *Exchange) limitListMemory(p *overload.Pool) {
	ex.Translation.lists = &memoryUse{pool: p, org: orgOf(ex), factor: translatedSize}
	if ex.PassesListThrough() {
		ex.Translation.lists.factor = joinedSize
	}
}

// smallList is the longest list that is not counted against the memory limit; 480 pods fit. unknownList is the length assumed for longer
// lists of unknown length. Both are in bytes.
const (
	smallList   = 256 << 10
	unknownList = 1 << 20
)

// waitForList waits for the memory of a list with the given length, -1 if unknown.
func (ex *Exchange) waitForList(ctx context.Context, length int64) error {
	if ex.Translation.lists == nil || length <= smallList {
		return nil
	}
	_, err := ex.Translation.lists.wait(ctx, ex.Translation.lists.factor*length)
	return err
}

// readUnknown reads and closes a body of unknown length. After smallList bytes it waits for the memory of a list of unknownList bytes.
// After unknownList bytes it waits for all memory that its organisation can hold, because the length is still unknown. At the end it
// releases the unused memory.
func (ex *Exchange) readUnknown(ctx context.Context, body io.ReadCloser) (text []byte, err error) {
	lists, taken := ex.Translation.lists, int64(0)
	if lists == nil {
		return upstream.ReadAll(body, maxAnswer)
	}
	defer func() { lists.release(taken - lists.factor*int64(len(text))) }()
	var read bytes.Buffer
	for _, step := range []struct{ most, next int64 }{{smallList, lists.factor * unknownList}, {unknownList, lists.pool.Most()}, {maxAnswer + 1, 0}} {
		_, err = read.ReadFrom(io.LimitReader(body, step.most-int64(read.Len())))
		if text = read.Bytes(); err == nil && int64(len(text)) == step.most {
			lists.release(taken) // otherwise wait would not block
			if taken, err = lists.wait(ctx, step.next); err == nil {
				continue
			}
		}
		return text, errors.Join(err, body.Close())
	}
	return text[:maxAnswer], errors.Join(upstream.ErrTooLong, body.Close())
}

// ReleaseMemory releases the memory that the exchange has reserved for lists. It must be called after the response has been written.
func (ex *Exchange) ReleaseMemory() {
	if ex.Translation.lists != nil {
		ex.Translation.lists.releaseAll()
	}
}
