package filter

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// The memory that a list takes, in lengths of its text. translatedSize is for a list that is decoded: the text, its values, and the response
// made of them; 20,000 pods are 11 MB, 32 MB and up to 36 MB. joinedSize is for a list that is sent as it is: its pages, and all of them
// joined.
const (
	translatedSize = 7
	joinedSize     = 2
)

// limitListMemory bounds the memory of the list that a caller of v2 is sent.
func (ex *Exchange) limitListMemory(m *Memory) {
	ex.Translation.lists = &memoryUse{memory: m, factor: translatedSize}
	if ex.PassesListThrough() {
		ex.Translation.lists.factor = joinedSize
	}
}

// smallList is the length of lists up to which they take no memory: 480 pods. unknownList is the
// one that is expected of a list beyond it that does not say. Both are in bytes.
const (
	smallList   = 256 << 10
	unknownList = 1 << 20
)

// waitForList waits until there is memory for a list of a length, -1 for none yet.
func (ex *Exchange) waitForList(ctx context.Context, length int64) error {
	if ex.Translation.lists == nil || length <= smallList {
		return nil
	}
	_, err := ex.Translation.lists.wait(ctx, ex.Translation.lists.factor*length)
	return err
}

// readUnknown reads and closes a body of a length that is not known. A list that turns out to be large waits for memory before its
// rest is read: for all there is, since it may be of any length, of which it gives back what it does not need.
func (ex *Exchange) readUnknown(ctx context.Context, body io.ReadCloser) (text []byte, err error) {
	lists, taken := ex.Translation.lists, int64(0)
	if lists == nil {
		return upstream.ReadAll(body, maxAnswer)
	}
	defer func() { lists.release(taken - lists.factor*int64(len(text))) }()
	for _, step := range []struct{ most, next int64 }{{smallList, lists.factor * unknownList}, {unknownList, lists.memory.size}} {
		more, err := io.ReadAll(io.LimitReader(body, step.most-int64(len(text))))
		if text = append(text, more...); err != nil || int64(len(text)) < step.most {
			return text, errors.Join(err, body.Close())
		}
		lists.release(taken) // or it would not wait
		if taken, err = lists.wait(ctx, step.next); err != nil {
			return text, errors.Join(err, body.Close())
		}
	}
	return upstream.ReadAll(struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), body), body}, maxAnswer)
}

// ReleaseMemory gives back the memory of an answer that was made of lists. The door calls it when the
// answer is written.
func (ex *Exchange) ReleaseMemory() {
	if ex.Translation.lists != nil {
		ex.Translation.lists.releaseAll()
	}
}
